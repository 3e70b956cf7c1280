//! `mainstay rollout undo`: returns to the state before the last rollout, or changes the spec to an older
//! revision.

use mainstay_api::delivery::{
    ActionVerb, ApplicationDeployment, ApplicationRevision, Kind as DeliveryKind, Resource,
};
use serde_json::{Value, json};

use super::action::{Common, Request};
use super::api::{Delivery, FIELD_MANAGER, failed};
use super::flags::DryRun;
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};

/// Arguments of `rollout undo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout undo example-app-deploy
  mainstay rollout undo example-app-deploy --to-revision example-app-v1
  mainstay rollout undo example-app-deploy --to-revision example-app-v1 --dry-run -o yaml

Without --to-revision the spec stays as it is and a DeploymentAction is created. With it the only revision in
the spec is replaced, which starts a rollout with the strategy of the spec.")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,

    /// Replace the revision in the spec by this one
    #[arg(long, value_name = "REVISION")]
    to_revision: Option<String>,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let delivery = Delivery::connect(&args.common.scope).await?;
    let deployment = delivery.deployment(&args.common.name).await?;
    match &args.to_revision {
        None => {
            Request::new(&args.common, ActionVerb::Rollback)
                .send(&delivery, &deployment)
                .await
        }
        Some(revision) => replace(args, &delivery, &deployment, revision).await,
    }
}

/// A revision of the spec, and the one that replaces it.
#[derive(Clone, Copy)]
struct Replacement<'a> {
    from: &'a str,
    to: &'a str,
}

async fn replace(
    args: &Args,
    delivery: &Delivery,
    deployment: &ApplicationDeployment,
    to: &str,
) -> Result<(), CliError> {
    let from = only_revision(deployment)?;
    if from == to {
        let message = format!("{} already runs revision {to:?}", deployment.name());
        return Err(CliError::new(Kind::Usage, message).hint("name another revision"));
    }
    let replacement = Replacement { from: &from, to };
    check_revision(delivery, deployment, &from, to).await?;
    let change = replaced(deployment, &from, to);
    if args.common.dry_run == Some(DryRun::Client) {
        return show(args, deployment, replacement, &change);
    }
    let dry = if args.common.dry_run.is_some() {
        "&dryRun=All"
    } else {
        ""
    };
    let kind = mainstay_api::delivery::ApplicationDeploymentSpec::PLURAL;
    let path = format!(
        "/apis/{}/namespaces/{}/{kind}/{}?fieldManager={FIELD_MANAGER}{dry}",
        mainstay_api::delivery::API_VERSION,
        delivery.namespace,
        deployment.name()
    );
    let stored = super::api::merge(&delivery.client, &path, &change).await;
    let stored = stored.map_err(|error| failed(&error, kind))?;
    show(args, deployment, replacement, &stored)
}

fn show(
    args: &Args,
    deployment: &ApplicationDeployment,
    replacement: Replacement<'_>,
    object: &Value,
) -> Result<(), CliError> {
    if !matches!(args.common.output, Format::Text | Format::Wide) {
        return print_styled(&structured(object, args.common.output)?);
    }
    let suffix = match args.common.dry_run {
        None => "",
        Some(DryRun::Client) => " (client dry run)",
        Some(DryRun::Server) => " (server dry run)",
    };
    let (name, Replacement { from, to }) = (deployment.name(), replacement);
    print_styled(&format!(
        "{name}: replace {from} by {to} with the strategy of the spec\napplicationdeployment/{name} configured{suffix}\n"
    ))
}

/// Returns the revision of the spec.
fn only_revision(deployment: &ApplicationDeployment) -> Result<String, CliError> {
    match deployment.spec.app_revisions.as_slice() {
        [only] => Ok(only.revision_name.clone()),
        several => {
            let names: Vec<&str> = several
                .iter()
                .map(|revision| revision.revision_name.as_str())
                .collect();
            let message = format!(
                "{} has {} revisions in its spec: {}",
                deployment.name(),
                several.len(),
                names.join(", ")
            );
            Err(CliError::new(Kind::Cluster, message)
                .hint("change spec.appRevisions and spec.traffic with `mainstay rollout apply`"))
        }
    }
}

/// Checks that the revision exists, belongs to the same application and has the components of the routes.
async fn check_revision(
    delivery: &Delivery,
    deployment: &ApplicationDeployment,
    from: &str,
    to: &str,
) -> Result<(), CliError> {
    let all: Vec<ApplicationRevision> = delivery.list(false).await?;
    let find = |name: &str| all.iter().find(|revision| revision.name() == name);
    let Some(revision) = find(to) else {
        let application = find(from).map(|revision| revision.spec.application_name.as_str());
        let same = |revision: &&ApplicationRevision| {
            application.is_none_or(|name| revision.spec.application_name == name)
        };
        let names: Vec<&str> = all.iter().filter(same).map(Resource::name).collect();
        let hint = if names.is_empty() {
            "apply the Application or the ApplicationRevision first".to_owned()
        } else {
            format!("use one of {}", names.join(", "))
        };
        return Err(CliError::new(Kind::Cluster, format!("applicationrevision {to:?} not found")).hint(hint));
    };
    let rules = deployment.spec.traffic.iter().flat_map(|traffic| &traffic.http);
    let missing = rules.flat_map(|rule| &rule.weighted_targets).find(|target| {
        let mut components = revision.spec.components.iter();
        !components.any(|component| component.name == target.component_name)
    });
    match missing {
        Some(target) => {
            let message = format!("revision {to:?} has no component {:?}", target.component_name);
            Err(CliError::new(Kind::Cluster, message)
                .hint("use a revision with this component, or change spec.traffic"))
        }
        None => Ok(()),
    }
}

/// Returns the change of the spec, with the observed version as its precondition.
fn replaced(deployment: &ApplicationDeployment, from: &str, to: &str) -> Value {
    let mut spec = deployment.spec.clone();
    for revision in &mut spec.app_revisions {
        if revision.revision_name == from {
            to.clone_into(&mut revision.revision_name);
        }
    }
    let rules = spec.traffic.iter_mut().flat_map(|traffic| &mut traffic.http);
    for target in rules.flat_map(|rule| &mut rule.weighted_targets) {
        if target.revision_name == from {
            to.clone_into(&mut target.revision_name);
        }
    }
    json!({
        "metadata": {"resourceVersion": deployment.metadata.resource_version},
        "spec": {"appRevisions": spec.app_revisions, "traffic": spec.traffic},
    })
}
