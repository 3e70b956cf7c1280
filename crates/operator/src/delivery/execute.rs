//! Executes plans: sends the writes of each step and passes the responses to the index. Makes no decisions.

mod host;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use mainstay_api::Reason;
use mainstay_api::delivery::ApplicationDeployment;
use mainstay_cluster::write::{WriteError, Writer};
use mainstay_mesh::ErrorClass;
use mainstay_rollout::plan::{Action, Plan, Step};
use tokio::time::timeout;

pub(crate) use host::{EventSubject, HostObject};

use super::analysis::MetricSource;
use super::index::{Link, Outage};
use super::names::{ClusterKey, Name};
use super::shared::Shared;
use crate::report::{Observer, Report};

/// Timeout of one call to another cluster.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay before a cluster is probed after a failed call.
const PROBE_PAUSE: Duration = Duration::from_millis(500);

/// Outcome of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every step in the host cluster succeeded.
    Succeeded,
    /// An object was changed by another client, and was read again.
    Stale,
    /// A step failed.
    Failed(String),
}

/// Class of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The object was changed by another client.
    Stale,
    /// The cluster does not respond, or rejects the credential.
    Unreachable,
    /// Any other error.
    Rejected,
}

fn classify(error: &WriteError) -> Failure {
    match error.code {
        404 | 409 | 410 => Failure::Stale,
        0 | 401 | 502..=504 => Failure::Unreachable,
        _ => Failure::Rejected,
    }
}

/// Executor of delivery plans.
pub(crate) struct Executor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Writer,
    pub(crate) metrics: Arc<dyn MetricSource>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) identity: String,
}

impl Executor {
    /// Executes the plan of a deployment: the `prepare` steps in order, then the steps of all clusters
    /// concurrently, then the `finish` steps in order.
    pub(crate) async fn execute(&self, deployment: &ApplicationDeployment, plan: &Plan) -> Outcome {
        let name = Name::new(deployment.namespace(), deployment.name());
        for step in &plan.prepare {
            if let Err(error) = self.run_host_step(deployment, step).await {
                return outcome_for_error(&error);
            }
        }
        let mut stale = false;
        let mut clusters: FuturesUnordered<_> = plan
            .clusters
            .iter()
            .map(|(cluster, steps)| self.run_cluster(&name, cluster, steps))
            .collect();
        while let Some(is_stale) = clusters.next().await {
            stale |= is_stale;
        }
        for step in &plan.finish {
            if let Err(error) = self.run_host_step(deployment, step).await {
                return outcome_for_error(&error);
            }
        }
        if stale { Outcome::Stale } else { Outcome::Succeeded }
    }

    /// Runs the steps of one cluster until one fails. Returns whether an object was changed by another
    /// client.
    async fn run_cluster(&self, name: &Name, cluster: &str, steps: &[Step]) -> bool {
        let key = ClusterKey::for_name(&name.namespace, cluster);
        for step in steps {
            let Some(writer) = self.shared.writer(&key) else {
                return false;
            };
            let done = self.run_object_step(&key, &writer, &step.action);
            let done = match key {
                ClusterKey::Host => done.await,
                ClusterKey::Remote(_) => timeout(REMOTE_TIMEOUT, done)
                    .await
                    .unwrap_or_else(|_| Err(timeout_error())),
            };
            match done {
                Ok(()) => self.report_written(step),
                Err(error) => return self.step_failed(name, cluster, &error),
            }
        }
        let now = self.shared.now();
        self.shared
            .with(|index| index.record_step_result(name, cluster, None, now));
        false
    }

    fn step_failed(&self, name: &Name, cluster: &str, error: &WriteError) -> bool {
        let key = ClusterKey::for_name(&name.namespace, cluster);
        let now = self.shared.now();
        match classify(error) {
            Failure::Stale => return true,
            Failure::Unreachable if key != ClusterKey::Host => self.report_unreachable(&key, error, now),
            _ => {
                tracing::warn!(deployment = %name, cluster, error = %error, "a step failed");
                self.shared
                    .with(|index| index.record_step_result(name, cluster, Some(error.message.clone()), now));
            }
        }
        false
    }

    /// Opens the circuit breaker of a cluster, and requests a probe from its link.
    fn report_unreachable(&self, key: &ClusterKey, error: &WriteError, now: Timestamp) {
        let reason = if error.code == 401 {
            Reason::CredentialRejected
        } else {
            Reason::ClusterUnreachable
        };
        let outage = Outage {
            since: now,
            retry_at: now.checked_add(PROBE_PAUSE).unwrap_or(Timestamp::MAX),
            reason,
            message: error.message.clone(),
        };
        self.shared.set_writer(key, None);
        self.shared.with(|index| index.set_link(key, Link::Down(outage)));
        self.shared.request_check(key);
    }

    fn report_written(&self, step: &Step) {
        let action = match &step.action {
            Action::AddFinalizer(_) | Action::RemoveFinalizer(_) => "finalizer",
            Action::WriteInventory(_) => "inventory",
            Action::EnsureNamespace(_) => "namespace",
            Action::Apply(_) => "apply",
            Action::Scale(_) => "scale",
            Action::Delete(_) => "delete",
            Action::Release(_) => "release",
            Action::WriteStatus(..) | Action::CompleteAction { .. } => "status",
            Action::Measure(_) => return,
            Action::Event { .. } => "event",
        };
        let reason = step.reason.name();
        self.observer.report(&Report::Written { action, reason });
    }
}

fn timeout_error() -> WriteError {
    WriteError::local(ErrorClass::Unavailable, "no response in time".to_owned())
}

pub(crate) fn outcome_for_error(error: &WriteError) -> Outcome {
    match classify(error) {
        Failure::Stale => Outcome::Stale,
        _ => Outcome::Failed(error.message.clone()),
    }
}

/// Returns the error for an object that was changed since it was read.
fn stale_error(message: &str) -> WriteError {
    WriteError {
        code: 409,
        class: ErrorClass::Conflict,
        message: message.to_owned(),
        retry_after: None,
    }
}
