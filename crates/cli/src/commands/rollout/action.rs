//! `mainstay rollout promote`, `pause`, `resume`, `abort` and `retry`: each creates a `DeploymentAction`
//! after checking that the action is applicable.

use std::time::Duration;

use jiff::SignedDuration;
use mainstay_api::Reason;
use mainstay_api::delivery::{
    API_VERSION, ActionResult, ActionSpec, ActionVerb, ApplicationDeployment, DeploymentAction, Direction,
};
use mainstay_rollout::check_action;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::api::{Delivery, ScopeFlags};
use super::flags::DryRun;
use super::page::step_count;
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};

/// Polling interval of `--wait`.
const PERIOD: Duration = Duration::from_millis(500);

/// Arguments of every action.
#[derive(clap::Args)]
pub(super) struct Common {
    /// Name of the deployment
    pub(super) name: String,

    /// Show what would happen, without creating the action
    #[arg(long, value_enum, value_name = "WHERE", num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    pub(super) dry_run: Option<DryRun>,

    /// Wait this long for the operator to handle the action
    #[arg(long, value_name = "DURATION", value_parser = crate::flag_value::signed_duration)]
    pub(super) wait: Option<SignedDuration>,

    /// Output format; `json` and `yaml` print the action
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub(super) output: Format,

    #[command(flatten)]
    pub(super) scope: ScopeFlags,
}

/// Arguments of `rollout promote`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout promote example-app-deploy
  mainstay rollout promote example-app-deploy --step 3
  mainstay rollout promote example-app-deploy --full
  mainstay rollout promote example-app-deploy --skip-analysis --wait 30s

The action names the current step: if the rollout has moved on when it is handled, it is rejected.")]
pub(crate) struct PromoteArgs {
    #[command(flatten)]
    common: Common,

    /// Skip all remaining steps and waves
    #[arg(long, conflicts_with_all = ["step", "skip_analysis"])]
    full: bool,

    /// Promote only if this is the current step, counted from 1
    #[arg(long, value_name = "N")]
    step: Option<u32>,

    /// Do not wait for the current analysis
    #[arg(long)]
    skip_analysis: bool,
}

/// Arguments of `rollout pause`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout pause example-app-deploy
  mainstay rollout pause example-app-deploy -n shop --wait 30s")]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    common: Common,
}

/// Arguments of `rollout resume`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout resume example-app-deploy

Ends a pause that an action or a failure started. A pause of a step is ended by `mainstay rollout promote`.")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    common: Common,
}

/// Arguments of `rollout abort`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout abort example-app-deploy
  mainstay rollout abort example-app-deploy --dry-run

Restores the replicas of the stable state first, then its weights, then removes what the rollout added.")]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    common: Common,
}

/// Arguments of `rollout retry`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout retry example-app-deploy
  mainstay rollout retry example-app-deploy --wait 30s

Starts a rollout again that was aborted, or continues one that a failure paused. The spec stays as it is.")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    common: Common,
}

pub(super) async fn promote(args: &PromoteArgs) -> Result<(), CliError> {
    let verb = if args.full {
        ActionVerb::PromoteFull
    } else if args.skip_analysis {
        ActionVerb::SkipAnalysis
    } else {
        ActionVerb::Promote
    };
    let request = Request {
        common: &args.common,
        verb,
        step: args.step,
    };
    request.run().await
}

pub(super) async fn pause(args: &PauseArgs) -> Result<(), CliError> {
    Request::new(&args.common, ActionVerb::Pause).run().await
}

pub(super) async fn resume(args: &ResumeArgs) -> Result<(), CliError> {
    Request::new(&args.common, ActionVerb::Resume).run().await
}

pub(super) async fn abort(args: &AbortArgs) -> Result<(), CliError> {
    Request::new(&args.common, ActionVerb::Abort).run().await
}

pub(super) async fn retry(args: &RetryArgs) -> Result<(), CliError> {
    Request::new(&args.common, ActionVerb::Retry).run().await
}

/// One request to a rollout.
pub(super) struct Request<'a> {
    common: &'a Common,
    verb: ActionVerb,
    step: Option<u32>,
}

impl<'a> Request<'a> {
    pub(super) fn new(common: &'a Common, verb: ActionVerb) -> Self {
        Self {
            common,
            verb,
            step: None,
        }
    }

    async fn run(&self) -> Result<(), CliError> {
        let delivery = Delivery::connect(&self.common.scope).await?;
        let deployment = delivery.deployment(&self.common.name).await?;
        self.send(&delivery, &deployment).await
    }

    /// Checks the request, prints its effect, and creates the action.
    pub(super) async fn send(
        &self,
        delivery: &Delivery,
        deployment: &ApplicationDeployment,
    ) -> Result<(), CliError> {
        self.check_step(deployment)?;
        let spec = self.spec(deployment);
        let rollout = deployment.status.rollout.as_ref();
        check_action(rollout, &spec).map_err(|reason| self.not_applicable(deployment, &reason))?;
        let text = matches!(self.common.output, Format::Text | Format::Wide);
        if text {
            print_styled(&format!("{}\n", self.describe_effect(deployment)))?;
        }
        let action = action_object(&spec, &delivery.namespace);
        if self.common.dry_run == Some(DryRun::Client) {
            return if text { Ok(()) } else { self.print(&action) };
        }
        let created = self.create(delivery, &action).await?;
        if text {
            let suffix = if self.common.dry_run.is_some() {
                " (server dry run)"
            } else {
                ""
            };
            print_styled(&format!("deploymentaction/{} created{suffix}\n", created.name()))?;
        } else {
            self.print(&serde_json::to_value(&created).unwrap_or_default())?;
        }
        match self.common.wait.filter(|_| self.common.dry_run.is_none()) {
            Some(wait) => await_result(delivery, &created, wait, text).await,
            None => Ok(()),
        }
    }

    fn print(&self, action: &serde_json::Value) -> Result<(), CliError> {
        print_styled(&structured(action, self.common.output)?)
    }

    async fn create(
        &self,
        delivery: &Delivery,
        action: &serde_json::Value,
    ) -> Result<DeploymentAction, CliError> {
        delivery.create(action, self.common.dry_run.is_some()).await
    }

    fn check_step(&self, deployment: &ApplicationDeployment) -> Result<(), CliError> {
        let current = deployment
            .status
            .rollout
            .as_ref()
            .map_or(0, |rollout| rollout.step + 1);
        match self.step {
            Some(step) if step != current => {
                let total = step_count(deployment);
                let message = format!("the rollout is at step {current} of {total}, not at step {step}");
                Err(CliError::new(Kind::Usage, message)
                    .hint(format!("run `mainstay rollout status {}`", deployment.name())))
            }
            _ => Ok(()),
        }
    }

    fn spec(&self, deployment: &ApplicationDeployment) -> ActionSpec {
        let hash = deployment
            .status
            .rollout
            .as_ref()
            .map(|rollout| rollout.step_hash.clone());
        let is_bound = matches!(self.verb, ActionVerb::Promote | ActionVerb::SkipAnalysis);
        ActionSpec {
            deployment_name: deployment.name().to_owned(),
            verb: self.verb,
            step_hash: hash.filter(|hash| is_bound && !hash.is_empty()),
        }
    }

    fn not_applicable(&self, deployment: &ApplicationDeployment, reason: &Reason) -> CliError {
        let verb = verb_word(self.verb);
        let message = format!(
            "cannot {verb} {}: {} ({reason})",
            deployment.name(),
            describe_state(self.verb, deployment)
        );
        CliError::new(Kind::Cluster, message).hint(remedy(self.verb, deployment))
    }

    fn describe_effect(&self, deployment: &ApplicationDeployment) -> String {
        let name = deployment.name();
        let rollout = deployment.status.rollout.clone().unwrap_or_default();
        let total = step_count(deployment);
        let step = rollout.step as usize + 1;
        match self.verb {
            ActionVerb::Promote if step < total => {
                format!("{name}: continue with step {} of {total}", step + 1)
            }
            ActionVerb::Promote if total > 0 => format!("{name}: finish after the last step"),
            ActionVerb::Promote => format!("{name}: end the current wait"),
            ActionVerb::SkipAnalysis => format!("{name}: continue without waiting for the analysis"),
            ActionVerb::PromoteFull => {
                format!("{name}: skip all remaining steps and waves and go to the target")
            }
            ActionVerb::Pause => format!("{name}: start no further step; workloads in progress continue"),
            ActionVerb::Resume => format!("{name}: continue at step {}", step.min(total.max(1))),
            ActionVerb::Abort | ActionVerb::Rollback => {
                format!("{name}: return to {}", stable(deployment))
            }
            ActionVerb::Retry => format!("{name}: start the rollout again"),
        }
    }
}

/// Returns the object of an action, with a generated name.
pub(crate) fn action_object(spec: &ActionSpec, namespace: &str) -> serde_json::Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "DeploymentAction",
        "metadata": {"generateName": format!("{}-", verb_word(spec.verb)), "namespace": namespace},
        "spec": spec,
    })
}

fn verb_word(verb: ActionVerb) -> &'static str {
    match verb {
        ActionVerb::Promote | ActionVerb::PromoteFull | ActionVerb::SkipAnalysis => "promote",
        ActionVerb::Pause => "pause",
        ActionVerb::Resume => "resume",
        ActionVerb::Abort => "abort",
        ActionVerb::Retry => "retry",
        ActionVerb::Rollback => "undo",
    }
}

/// Describes the state of a rollout in which an action is not applicable.
fn describe_state(verb: ActionVerb, deployment: &ApplicationDeployment) -> String {
    let Some(rollout) = &deployment.status.rollout else {
        return "no rollout has started".to_owned();
    };
    let returns = matches!(verb, ActionVerb::Abort | ActionVerb::Rollback);
    if returns
        && rollout.stable.placement.is_empty()
        && (rollout.completed_at.is_none() || verb == ActionVerb::Rollback)
    {
        return "it is the first deployment, there is no state before it".to_owned();
    }
    match (rollout.direction, rollout.completed_at, rollout.paused) {
        (Direction::Back, None, _) => "the rollout is returning to the stable state".to_owned(),
        (Direction::Back, Some(_), _) => "the rollout was aborted".to_owned(),
        (Direction::Forward, Some(_), _) => "the rollout is complete".to_owned(),
        (Direction::Forward, None, Some(_)) => "the rollout is paused".to_owned(),
        (Direction::Forward, None, None) => "the rollout is in progress".to_owned(),
    }
}

fn remedy(verb: ActionVerb, deployment: &ApplicationDeployment) -> String {
    let name = deployment.name();
    let rollout = deployment.status.rollout.as_ref();
    let is_complete = rollout.is_some_and(|rollout| rollout.completed_at.is_some());
    match verb {
        ActionVerb::Abort if is_complete => format!("use `mainstay rollout undo {name}`"),
        ActionVerb::Resume if !is_complete => format!("use `mainstay rollout promote {name}`"),
        ActionVerb::Pause if !is_complete => format!("use `mainstay rollout resume {name}` to continue"),
        _ => format!("run `mainstay rollout status {name}`"),
    }
}

/// Describes the state to which an abort returns.
fn stable(deployment: &ApplicationDeployment) -> String {
    let rollout = deployment.status.rollout.clone().unwrap_or_default();
    let revision = |placement: &mainstay_api::delivery::RevisionPlacement| {
        let replicas = placement.clusters.iter().filter_map(|cluster| cluster.replicas);
        format!(
            "{} with {} replicas in {}",
            placement.revision_name,
            replicas.sum::<u32>(),
            many(placement.clusters.len(), "cluster")
        )
    };
    let all: Vec<String> = rollout.stable.placement.iter().map(revision).collect();
    all.join(", ")
}

fn many(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

async fn await_result(
    delivery: &Delivery,
    action: &DeploymentAction,
    wait: SignedDuration,
    text: bool,
) -> Result<(), CliError> {
    let until = Instant::now() + wait.unsigned_abs();
    loop {
        let found: Option<DeploymentAction> = delivery.find(action.name()).await?;
        let status = found.unwrap_or_default().status;
        match status.result {
            Some(ActionResult::Accepted) if text => {
                return print_styled(&format!("accepted: {}\n", status.reason));
            }
            Some(ActionResult::Accepted) => return Ok(()),
            Some(ActionResult::Rejected) => {
                let message = format!(
                    "deploymentaction/{} was rejected: {}",
                    action.name(),
                    status.reason
                );
                return Err(CliError::new(Kind::Cluster, message).hint(format!(
                    "run `mainstay rollout status {}`",
                    action.spec.deployment_name
                )));
            }
            None if Instant::now() >= until => {
                let message = format!("deploymentaction/{} was not handled in time", action.name());
                return Err(CliError::new(Kind::Cluster, message)
                    .hint("check that the operator runs with `mainstay status`"));
            }
            None => sleep(PERIOD).await,
        }
    }
}
