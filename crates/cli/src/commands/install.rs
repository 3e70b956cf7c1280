//! `mainstay install` and `mainstay upgrade`: applies the objects of `IstioOperator` files to a cluster.

mod confirm;
mod diff;
mod planning;
mod progress;

use std::fmt::Write as _;
use std::time::Duration;

use mainstay_cluster::apply::ApplyError;
use mainstay_cluster::install::{InstallError, Installer};
use mainstay_manifest::Severity;

use crate::commands::manifest::inputs::InputFlags;
use crate::commands::{print, verify};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

pub(crate) use confirm::confirm;
pub(crate) use diff::show_preview;
pub(crate) use planning::{Planned, plan_installation, print_findings};
use progress::ComponentDisplay;

/// Arguments of `install` and `upgrade`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay install
  mainstay install --profile demo -y
  mainstay install -f mesh.yaml --set meshConfig.accessLogFile=/dev/stdout
  mainstay install -f mesh.yaml --revision canary --dry-run
  mainstay install -f mesh.yaml --readiness-timeout 10m --verify

Exit codes: 0 if everything is ready, 1 otherwise, 2 for wrong usage. A run that was interrupted is continued
by the next one.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,

    #[command(flatten)]
    run: RunFlags,
}

/// Arguments of `upgrade`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay upgrade                                     # the installed configuration, to the default version
  mainstay upgrade --istio-version 1.29.1 --dry-run
  mainstay upgrade -f mesh.yaml --revision canary -y

Without --filename and --set the configuration of the last installation is used. Before anything is written,
versions, the webhooks and the cluster are checked; --force continues in spite of errors.

Exit codes: 0 if everything is ready, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    inputs: InputFlags,

    #[command(flatten)]
    run: RunFlags,
}

/// Flags of commands that write an installation.
#[derive(clap::Args)]
struct RunFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Maximum time until a component is ready, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::flag_value::duration)]
    readiness_timeout: Duration,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    skip_confirmation: bool,

    /// Show what the API server would change; write nothing
    #[arg(long)]
    dry_run: bool,

    /// Compare the cluster with the configuration afterwards
    #[arg(long)]
    verify: bool,
}

/// Runs `install`.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    block_on(execute(&args.inputs, &args.run, Purpose::Install))
}

pub(crate) fn run_upgrade(args: &UpgradeArgs) -> Result<(), CliError> {
    block_on(execute(&args.inputs, &args.run, Purpose::Upgrade))
}

/// Purpose of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Install a control plane, or change an existing one.
    Install,
    /// Upgrade an existing control plane to a newer version.
    Upgrade,
    /// Compare the cluster with the plan.
    Verify,
    /// Run the checks only.
    Precheck,
}

async fn execute(inputs: &InputFlags, flags: &RunFlags, purpose: Purpose) -> Result<(), CliError> {
    let client = flags.cluster.client().await?;
    let installer = Installer::new(client.clone(), flags.readiness_timeout);
    let planned = plan_installation(&client, &installer, inputs, purpose).await?;
    print_findings(&planned.findings);
    if planned.findings.iter().any(|one| one.severity == Severity::Error) && !inputs.is_forced() {
        let message = "the cluster is not eligible";
        return Err(CliError::new(Kind::Cluster, message).hint("fix the errors, or continue with --force"));
    }
    if flags.dry_run {
        return dry_run(&installer, &planned).await;
    }
    let prompt = format!(
        "Istio {} will be installed in namespace {} with revision {}. Proceed?",
        planned.plan.version, planned.plan.namespace, planned.plan.revision
    );
    if !flags.skip_confirmation && !confirm(&prompt)? {
        return Err(CliError::new(Kind::Usage, "canceled").unless_quiet_exit(1));
    }
    let display = ComponentDisplay::new();
    let done = installer
        .install(&planned.plan, &|event| display.show(event))
        .await;
    drop(display);
    let done = done?;
    let text = format!(
        "Installation complete: {} objects, {} written, {} pruned\n",
        done.objects, done.written, done.pruned
    );
    print(text.as_bytes())?;
    if flags.verify {
        return verify::verify_plan(&installer, &planned.plan, verify::Output::Text).await;
    }
    Ok(())
}

async fn dry_run(installer: &Installer, planned: &Planned) -> Result<(), CliError> {
    let previews = installer.preview(&planned.plan).await?;
    let mut text = String::new();
    let (mut created, mut changed) = (0, 0);
    for preview in &previews {
        match preview.before {
            None => created += 1,
            Some(_) => changed += 1,
        }
        text.push_str(&show_preview(preview));
    }
    let all: usize = planned.plan.components.iter().map(|one| one.objects.len()).sum();
    let unchanged = all.saturating_sub(created + changed);
    let _ = writeln!(
        text,
        "{created} objects to create, {changed} to change, {unchanged} unchanged"
    );
    crate::commands::print_styled(&text)
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        let result = Self::new(Kind::Cluster, error.to_string());
        match error {
            InstallError::Apply(_, source) | InstallError::Set { error: source, .. }
                if matches!(*source, ApplyError::Foreign { .. }) =>
            {
                result.hint("uninstall it with the tool that made it, or remove the object")
            }
            InstallError::Failed { .. } => {
                result.hint("fix the cause, then run the command again: it continues where it stopped")
            }
            InstallError::NotDeleted { .. } => {
                result.hint("check its finalizers with `kubectl describe`, then run the command again: it continues where it stopped")
            }
            InstallError::UnknownRevision(_) => {
                result.hint("list installations with `kubectl get configmaps -A -l app.kubernetes.io/component=istio-installation`")
            }
            _ => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use mainstay_cluster::desired::ObjectId;

    use super::*;

    fn object() -> ObjectId {
        let object =
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "istio"}});
        ObjectId::from_object(&object).unwrap()
    }

    #[test]
    fn only_a_foreign_object_has_the_hint_to_remove_it() {
        let has_hint =
            |error: InstallError| format!("{:?}", CliError::from(error)).contains("or remove the object");
        let set = |error| InstallError::Set {
            set: "istio".into(),
            error: Box::new(error),
        };
        let reason = "it is a member of another set".to_owned();
        assert!(has_hint(set(ApplyError::Foreign {
            id: Box::new(object()),
            reason,
        })));
        assert!(!has_hint(set(ApplyError::Deleting(Box::new(object())))));
    }
}
