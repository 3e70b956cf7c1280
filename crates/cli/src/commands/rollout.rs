//! `mainstay rollout`: plans, applies, shows and controls deployments of several revisions over several
//! clusters.

pub(crate) mod action;
pub(crate) mod api;
mod apply;
pub(crate) mod documents;
mod flags;
pub(crate) mod page;
pub(crate) mod plan;
mod status;
mod undo;
#[cfg(feature = "simulator")]
mod validate;
mod warnings;
mod watch;

use crate::error::CliError;
use crate::kubeconfig::block_on;
use documents::Located;

/// Arguments of `rollout`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout plan -f deployment.yaml
  mainstay rollout apply -f deployment.yaml
  mainstay rollout watch example-app-deploy
  mainstay rollout promote example-app-deploy
  mainstay rollout undo example-app-deploy")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what a deployment would change, with replicas and weights over time
    Plan(Box<plan::Args>),
    /// Apply deployments, applications, clusters and analysis templates
    Apply(Box<apply::Args>),
    /// Show the status of deployments
    Status(Box<status::Args>),
    /// Watch a rollout until it ends
    Watch(Box<watch::Args>),
    /// Continue a rollout that waits for a promotion
    Promote(Box<action::PromoteArgs>),
    /// Pause a rollout; nothing further starts
    Pause(Box<action::PauseArgs>),
    /// Resume a rollout that an action or a failure paused
    Resume(Box<action::ResumeArgs>),
    /// Return a running rollout to the state before it
    Abort(Box<action::AbortArgs>),
    /// Start an aborted rollout again
    Retry(Box<action::RetryArgs>),
    /// Return to the state before the last rollout, or to a revision
    Undo(Box<undo::Args>),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Plan(it) => plan::run(it),
        Command::Apply(it) => block_on(apply::run(it)),
        Command::Status(it) => block_on(status::run(it)),
        Command::Watch(it) => block_on(watch::run(it)),
        Command::Promote(it) => block_on(action::promote(it)),
        Command::Pause(it) => block_on(action::pause(it)),
        Command::Resume(it) => block_on(action::resume(it)),
        Command::Abort(it) => block_on(action::abort(it)),
        Command::Retry(it) => block_on(action::retry(it)),
        Command::Undo(it) => block_on(undo::run(it)),
    }
}

/// Validates documents without a cluster.
#[cfg(feature = "simulator")]
async fn validate_documents(objects: &[Located]) -> Result<(), CliError> {
    validate::validate(objects).await
}

/// Without the simulator only the server validates.
#[cfg(not(feature = "simulator"))]
#[allow(
    clippy::unused_async,
    reason = "the signature of the function with the simulator"
)]
async fn validate_documents(_: &[Located]) -> Result<(), CliError> {
    Ok(())
}
