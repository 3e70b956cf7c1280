//! Waits until the objects of a component are ready, and collects the reasons of objects that are not.

use std::time::Duration;

use mainstay_manifest::ComponentName;
use tokio::time::{Instant, sleep};

use super::components::{InstallEvent, Report};
use super::error::InstallError;
use super::readiness::{self, Readiness, readiness};
use super::{Installer, api};
use crate::desired::{Desired, ObjectId};

/// Interval of readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Installer {
    /// Waits until all objects of a component are ready.
    pub(super) async fn wait(
        &self,
        component: ComponentName,
        desired: &Desired,
        report: Report<'_>,
    ) -> Result<(), InstallError> {
        let waited: Vec<&ObjectId> = desired
            .objects
            .iter()
            .map(|one| &one.id)
            .filter(|id| readiness::is_waited_for(&id.group, &id.kind))
            .collect();
        let until = Instant::now() + self.readiness_timeout;
        let mut pending = waited.clone();
        loop {
            let unready = self.unready_objects(component, &pending).await?;
            let Some((first, reason)) = unready.first() else {
                return Ok(());
            };
            report(InstallEvent::Waiting {
                component,
                ready: waited.len() - unready.len(),
                total: waited.len(),
                reason: format!("{}: {reason}", super::error::label(first)),
            });
            if Instant::now() >= until {
                let after = self.readiness_timeout;
                let unready = self.add_pod_reasons(unready).await;
                return Err(InstallError::NotReady {
                    component,
                    after,
                    unready,
                });
            }
            pending.retain(|id| unready.iter().any(|(one, _)| one == *id));
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the objects that are not ready, with their reasons.
    pub(super) async fn unready_objects(
        &self,
        component: ComponentName,
        ids: &[&ObjectId],
    ) -> Result<Vec<(ObjectId, String)>, InstallError> {
        let mut unready = Vec::new();
        for id in ids {
            let live = self.engine.read(id).await;
            let live = live.map_err(|error| InstallError::apply(component, error))?;
            let state = live.as_ref().map_or_else(
                || Readiness::Waiting("not found".to_owned()),
                |live| readiness(&id.kind, live),
            );
            if let Readiness::Waiting(reason) = state {
                unready.push(((*id).clone(), reason));
            }
        }
        Ok(unready)
    }

    /// Adds the reasons that pods report. If pods cannot be read, the reasons are unchanged.
    pub(super) async fn add_pod_reasons(&self, unready: Vec<(ObjectId, String)>) -> Vec<(ObjectId, String)> {
        let mut all = Vec::new();
        for (id, reason) in unready {
            let detail = self.pod_reason(&id).await;
            let reason = detail.map_or_else(|| reason.clone(), |detail| format!("{reason}; {detail}"));
            all.push((id, reason));
        }
        all
    }

    async fn pod_reason(&self, id: &ObjectId) -> Option<String> {
        let workload = self.engine.read(id).await.ok()??;
        let labels = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
        let pairs = labels
            .iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
        let selector = pairs.collect::<Vec<_>>().join(",");
        let path = format!("/api/v1/namespaces/{}/pods", id.namespace);
        let pods = api::list(&self.client, &path, &selector).await.ok()?;
        readiness::failure_reason(&workload, &pods)
    }
}
