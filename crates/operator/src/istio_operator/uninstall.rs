//! Deletes the installation of a resource, unless proxies or tags still use it.

use std::time::Duration;

use mainstay_api::Reason;
use mainstay_api::istio_operator::IstioOperator;
use mainstay_cluster::install::{InstallError, UninstallRequest};
use mainstay_manifest::controller::{Claim, ControllerEvent, Situation};

use super::install::{Failure, Reconciler, Requeue};
use crate::report::Report;

/// Interval of checks whether proxies are still connected.
const BLOCKED_INTERVAL: Duration = Duration::from_secs(30);

impl Reconciler {
    pub(super) async fn uninstall(&self, operator: &IstioOperator) -> Result<Requeue, Failure> {
        let request = UninstallRequest::Owner {
            owner: operator.path(),
            includes_shared: !self.has_successor(),
        };
        let plan = self.installer.plan_removal(&request).await?;
        if !plan.proxies.is_empty() || !plan.tags.is_empty() {
            let situation = Situation::Blocked {
                pods: plan.proxies,
                tags: plan.tags,
            };
            self.write_status(operator, situation, String::new()).await?;
            return Ok(Requeue::After(BLOCKED_INTERVAL));
        }
        let kept = plan.kept.len();
        let deleted = self
            .installer
            .uninstall(plan, &|_| {})
            .await
            .map_err(to_failure)?;
        for _ in 0..deleted {
            let (action, reason) = ("delete", Reason::ObjectDeleted);
            let reason = reason.name();
            self.shared.observer.report(&Report::Written { action, reason });
        }
        let message = if kept > 0 {
            format!("{deleted} objects deleted; {kept} definitions are kept, because they have objects")
        } else {
            format!("{deleted} objects deleted")
        };
        let event = ControllerEvent::normal(Reason::CleanedUp, message);
        self.resources.send_event(operator, &event).await;
        self.set_finalizer(operator, false).await
    }

    /// Whether another resource takes over the shared objects.
    fn has_successor(&self) -> bool {
        self.claims().iter().any(Claim::is_successor)
    }
}

fn to_failure(error: InstallError) -> Failure {
    match error {
        InstallError::Read { .. } => error.into(),
        other => Failure::Situation(Situation::NotDeleted(other.to_string())),
    }
}
