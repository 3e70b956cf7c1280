//! `mainstay uninstall`: deletes the objects of a revision, or of all installations.

use std::fmt::Write as _;
use std::time::Duration;

use mainstay_cluster::desired::ObjectId;
use mainstay_cluster::install::{Installer, RemovalEvent, RemovalPlan, UninstallRequest};

use super::install::confirm;
use super::manifest::inputs::{ClusterDefaults, InputFlags};
use crate::commands::{print, print_styled};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};
use crate::ui::counted;

/// Maximum number of listed proxies. Further proxies are only counted.
const MAX_LISTED: usize = 30;

/// Arguments of `uninstall`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay uninstall --revision canary
  mainstay uninstall --revision default --dry-run
  mainstay uninstall -f mesh.yaml
  mainstay uninstall --purge -y

A revision is removed without what other revisions share, such as custom resource definitions; -f selects the
revision that a file configures; --purge removes everything that `mainstay install` and `mainstay tag set`
wrote. Namespaces stay.

Exit codes: 0 if everything is deleted, 1 otherwise, 2 for wrong usage.")]
#[allow(clippy::struct_excessive_bools, reason = "one per flag")]
pub(crate) struct Args {
    /// Revision to uninstall; `default` is the installation without one
    #[arg(
        short,
        long,
        value_name = "NAME",
        required_unless_present_any = ["purge", "filename"],
        conflicts_with = "purge"
    )]
    revision: Option<String>,

    /// Uninstall the revision of an `IstioOperator` file, `-` for stdin (several: repeat)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["revision", "purge"])]
    filename: Vec<String>,

    /// Uninstall all revisions, tags and shared objects; custom resources are deleted with their definitions
    #[arg(long)]
    purge: bool,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    skip_confirmation: bool,

    /// Uninstall although proxies or tags use the revision
    #[arg(long)]
    force: bool,

    /// List what would be deleted; delete nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let request = request(args)?;
    block_on(async {
        let installer = Installer::new(args.cluster.client().await?, Duration::ZERO);
        let plan = installer.plan_removal(&request).await?;
        if plan.is_empty() {
            return print(b"No installations found\n");
        }
        print_styled(&warnings(&plan))?;
        if args.dry_run {
            return list(&plan);
        }
        check_users(args, &plan)?;
        let count = plan.objects().count();
        let prompt = format!("{count} objects will be deleted. Proceed?");
        if !args.skip_confirmation && !confirm(&prompt)? {
            return Err(CliError::new(Kind::Usage, "canceled").unless_quiet_exit(1));
        }
        let show = |event: RemovalEvent<'_>| drop(print(event_line(&event).as_bytes()));
        let deleted = installer.uninstall(plan, &show).await?;
        print(format!("Uninstall complete: {deleted} objects deleted\n").as_bytes())
    })
}

fn request(args: &Args) -> Result<UninstallRequest, CliError> {
    if args.purge {
        return Ok(UninstallRequest::Purge);
    }
    if let Some(revision) = &args.revision {
        return Ok(UninstallRequest::Revision(revision.clone()));
    }
    let inputs = InputFlags::for_files(args.filename.clone(), args.force);
    let revision = inputs.plan(&ClusterDefaults::default(), |plan, _| Ok(plan.revision))?;
    Ok(UninstallRequest::Revision(revision))
}

fn event_line(event: &RemovalEvent<'_>) -> String {
    match event {
        RemovalEvent::Deleted(id) => format!("deleted {}\n", name(id)),
        RemovalEvent::Waiting {
            count: 1,
            object,
            reason,
        } => format!("waiting for {} ({reason})\n", name(object)),
        RemovalEvent::Waiting {
            count,
            object,
            reason,
        } => format!(
            "waiting for {count} objects, such as {} ({reason})\n",
            name(object)
        ),
    }
}

/// Rejects an uninstallation that disconnects proxies and tags without `--force`.
fn check_users(args: &Args, plan: &RemovalPlan) -> Result<(), CliError> {
    if args.force || (plan.proxies.is_empty() && plan.tags.is_empty()) {
        return Ok(());
    }
    let proxies = counted(plan.proxies.len(), "proxy", "proxies");
    let tags = counted(plan.tags.len(), "tag", "tags");
    let message = format!("the revision is in use by {proxies} and {tags}");
    let hint = "migrate the workloads and move the tags first, or continue with --force";
    Err(CliError::new(Kind::Cluster, message).hint(hint))
}

fn warnings(plan: &RemovalPlan) -> String {
    let mut text = String::new();
    for tag in &plan.tags {
        let _ = writeln!(text, "tag {tag} points to this revision");
    }
    for proxy in plan.proxies.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "proxy {proxy} is connected to this revision");
    }
    if plan.proxies.len() > MAX_LISTED {
        let _ = writeln!(text, "{} more proxies", plan.proxies.len() - MAX_LISTED);
    }
    for gateway in plan.gateways() {
        let _ = writeln!(
            text,
            "gateway {}/{} will be removed",
            gateway.namespace, gateway.name
        );
    }
    text
}

fn list(plan: &RemovalPlan) -> Result<(), CliError> {
    let mut text = String::new();
    for id in plan.objects() {
        let _ = writeln!(text, "would delete {}", name(id));
    }
    let _ = writeln!(text, "{} objects to delete", plan.objects().count());
    print(text.as_bytes())
}

fn name(id: &ObjectId) -> String {
    if id.namespace.is_empty() {
        format!("{} {}", id.kind, id.name)
    } else {
        format!("{} {}/{}", id.kind, id.namespace, id.name)
    }
}
