//! `mainstay rollout status`: prints one deployment, or all of them.

use mainstay_api::delivery::{ApplicationDeployment, DeploymentPhase, PauseCause};

use super::api::{Delivery, ScopeFlags};
use super::page;
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};

/// Arguments of `rollout status`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout status
  mainstay rollout status -A
  mainstay rollout status example-app-deploy -n shop
  mainstay rollout status example-app-deploy -o json | jq -r '.status.conditions[].reason'

Exit codes: 0 healthy or in progress, 2 degraded, aborted or failed, 1 the cluster could not be read.")]
pub(crate) struct Args {
    /// Name of the deployment; lists all if omitted
    name: Option<String>,

    /// List deployments of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace"])]
    all_namespaces: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let delivery = Delivery::connect(&args.scope).await?;
    if let Some(name) = &args.name {
        let deployment = delivery.deployment(name).await?;
        print_styled(&match args.output {
            Format::Text | Format::Wide => page::page(&deployment),
            other => structured(&deployment, other)?,
        })?;
        return outcome(&[deployment]);
    }
    let mut deployments: Vec<ApplicationDeployment> = delivery.list(args.all_namespaces).await?;
    deployments.sort_by(|left, right| {
        let key = |one: &ApplicationDeployment| (one.namespace().to_owned(), one.name().to_owned());
        key(left).cmp(&key(right))
    });
    print_styled(&match args.output {
        Format::Text | Format::Wide => page::list(&deployments, args.all_namespaces),
        other => structured(&deployments, other)?,
    })?;
    outcome(&deployments)
}

/// Returns the result of the command by the health of the deployments.
pub(super) fn outcome(deployments: &[ApplicationDeployment]) -> Result<(), CliError> {
    if deployments.iter().any(is_failed) {
        return Err(CliError::new(Kind::Attention, ""));
    }
    Ok(())
}

/// Whether a deployment needs attention.
pub(super) fn is_failed(deployment: &ApplicationDeployment) -> bool {
    let status = &deployment.status;
    let cause = status.rollout.as_ref().and_then(|rollout| rollout.paused);
    matches!(status.phase, DeploymentPhase::Degraded | DeploymentPhase::Aborted)
        || cause == Some(PauseCause::Failure)
}
