//! `mainstay rollout watch`: follows a rollout until it ends.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use mainstay_api::ConditionType;
use mainstay_api::delivery::{ApplicationDeployment, DeploymentPhase, Direction};
use tokio::time::sleep;

use super::api::{Delivery, ScopeFlags};
use super::page::{cluster_name, progress, shares};
use super::status::outcome;
use crate::commands::revision::{Format, stream_entry};
use crate::commands::{escape_control_characters, print_styled};
use crate::error::CliError;
use crate::ui::{BarRow, Bars};

/// Polling interval.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of bars; further ones are not shown.
const MAX_BARS: usize = 16;

/// Arguments of `rollout watch`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay rollout watch example-app-deploy
  mainstay rollout watch example-app-deploy -n shop -o json | jq -r .status.phase

Press Ctrl-C to stop watching; the rollout continues.

Exit codes: 0 healthy, 2 degraded, aborted or failed, 1 the cluster could not be read.")]
pub(crate) struct Args {
    /// Name of the deployment
    name: String,

    /// Also follow pauses that wait for a user
    #[arg(long)]
    keep: bool,

    /// Output format; `json` prints one line per change, `yaml` one document
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    tokio::select! {
        done = follow(args) => done,
        stopped = tokio::signal::ctrl_c() => Ok(stopped?),
    }
}

async fn follow(args: &Args) -> Result<(), CliError> {
    let delivery = Delivery::connect(&args.scope).await?;
    let mut display = Display::new(args.output);
    loop {
        let deployment = delivery.deployment(&args.name).await?;
        display.show(&deployment)?;
        if has_ended(&deployment) || (waits_for_user(&deployment) && !args.keep) {
            return outcome(&[deployment]);
        }
        sleep(PERIOD).await;
    }
}

/// Whether the status describes the current spec and nothing moves any more.
fn has_ended(deployment: &ApplicationDeployment) -> bool {
    let status = &deployment.status;
    let is_current = status.observed_generation == deployment.metadata.generation;
    let is_complete = status
        .rollout
        .as_ref()
        .is_some_and(|rollout| rollout.completed_at.is_some());
    is_current && is_complete && status.phase != DeploymentPhase::Deleting
}

fn waits_for_user(deployment: &ApplicationDeployment) -> bool {
    let status = &deployment.status;
    let progressing = status.conditions.find(&ConditionType::Progressing);
    let is_timed =
        progressing.is_some_and(|condition| condition.reason == mainstay_api::Reason::WaitingForTime);
    status.phase == DeploymentPhase::Paused && !is_timed
}

struct Display {
    output: Output,
    last: Vec<String>,
}

enum Output {
    /// JSON lines or YAML documents.
    Data(Format),
    Lines,
    Bars(Bars),
}

impl Display {
    fn new(format: Format) -> Self {
        let output = match format {
            Format::Json | Format::Yaml => Output::Data(format),
            Format::Text | Format::Wide if std::io::stdout().is_terminal() => Output::Bars(Bars::new()),
            Format::Text | Format::Wide => Output::Lines,
        };
        Self {
            output,
            last: Vec::new(),
        }
    }

    /// Shows what changed since the last call.
    fn show(&mut self, deployment: &ApplicationDeployment) -> Result<(), CliError> {
        let lines = match &self.output {
            Output::Data(format) => vec![stream_entry(deployment, *format)?.trim_end().to_owned()],
            Output::Lines | Output::Bars(_) => lines(deployment),
        };
        let new: Vec<&String> = lines.iter().filter(|line| !self.last.contains(line)).collect();
        let text: String = new.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        match &mut self.output {
            Output::Bars(bars) => {
                if let Some(first) = new.first().filter(|first| lines.first() == Some(**first)) {
                    bars.print(&escape_control_characters(first));
                }
                bars.show(&rows(deployment));
            }
            Output::Data(_) | Output::Lines => print_styled(&text)?,
        }
        self.last = lines;
        Ok(())
    }
}

/// Returns the summary, one line per cluster and revision, and one line per group of equal weights.
fn lines(deployment: &ApplicationDeployment) -> Vec<String> {
    let status = &deployment.status;
    let mut lines = vec![summary(deployment)];
    for revision in &status.placement {
        for cluster in &revision.clusters {
            lines.push(format!(
                "  {} in {}: {} of {} available",
                revision.revision_name,
                cluster_name(&cluster.cluster_name),
                cluster.available.unwrap_or_default(),
                cluster
                    .replicas
                    .map_or_else(|| "?".to_owned(), |count| count.to_string())
            ));
        }
    }
    for group in &status.traffic {
        let names: Vec<&str> = group
            .cluster_names
            .iter()
            .map(|name| cluster_name(name))
            .collect();
        for route in &group.routes {
            lines.push(format!(
                "  weights in {}: {}",
                names.join(", "),
                shares(&route.shares)
            ));
        }
    }
    lines
}

/// Returns phase, step and reason in one line.
fn summary(deployment: &ApplicationDeployment) -> String {
    let status = &deployment.status;
    let mut line = format!("{} {:?}", deployment.name(), status.phase);
    let rollout = status.rollout.as_ref();
    let is_running = rollout
        .is_some_and(|rollout| rollout.completed_at.is_none() && rollout.direction == Direction::Forward);
    if let Some(progress) = progress(deployment).filter(|_| is_running) {
        line.push_str(": ");
        line.push_str(&progress);
    }
    if let Some(condition) = status.conditions.find(&ConditionType::Progressing) {
        let _ = write!(line, "; {}", condition.reason);
        if !condition.message.is_empty() {
            let _ = write!(line, ": {}", condition.message);
        }
    }
    line
}

/// Returns one bar per revision and cluster.
fn rows(deployment: &ApplicationDeployment) -> Vec<BarRow> {
    let status = &deployment.status;
    let mut rows = Vec::new();
    for revision in &status.placement {
        for cluster in &revision.clusters {
            let name = cluster_name(&cluster.cluster_name);
            rows.push(BarRow {
                label: escape_control_characters(&format!("{} {name}", revision.revision_name)),
                done: cluster.available.unwrap_or_default() as usize,
                total: cluster.replicas.unwrap_or_default() as usize,
                note: weight_note(deployment, &revision.revision_name, &cluster.cluster_name),
            });
        }
    }
    rows.truncate(MAX_BARS);
    rows
}

fn weight_note(deployment: &ApplicationDeployment, revision: &str, cluster: &str) -> String {
    let traffic = deployment.status.traffic.iter();
    let group = traffic
        .into_iter()
        .find(|group| group.cluster_names.iter().any(|name| name == cluster));
    let shares = group
        .into_iter()
        .flat_map(|group| &group.routes)
        .flat_map(|route| &route.shares);
    let own = shares
        .filter(|share| share.revision_name == revision)
        .find_map(|share| share.weight);
    own.map(|weight| format!("{weight}%")).unwrap_or_default()
}
