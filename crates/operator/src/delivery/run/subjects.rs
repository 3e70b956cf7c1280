//! Reconciles one subject: reads the index, plans and executes.

use mainstay_api::delivery::{ApplicationDeployment, ApplicationRevision};
use mainstay_cluster::write::WriteError;
use mainstay_rollout::plan::Requeue;
use mainstay_rollout::snapshot::Version;
use serde_json::json;

use super::plan_deployment;
use crate::delivery::application::{ApplicationAction, ApplicationInput, plan_application};
use crate::delivery::chart::render_components;
use crate::delivery::cluster::plan_cluster;
use crate::delivery::execute::{EventSubject, Executor, HostObject, Outcome, outcome_for_error};
use crate::delivery::index::HostKind;
use crate::delivery::names::{ClusterKey, Name};
use crate::delivery::observed::metadata_version;
use crate::object::to_json_value;

fn outcome_for_result(done: Result<(), WriteError>) -> Outcome {
    done.map_or_else(|error| outcome_for_error(&error), |()| Outcome::Succeeded)
}

impl Executor {
    /// Plans and executes a deployment.
    pub(super) async fn reconcile_deployment(&self, name: &Name) -> (Outcome, Requeue) {
        let now = self.shared.now();
        match plan_deployment(&self.shared, name, now) {
            None => (Outcome::Succeeded, Requeue::OnEvent),
            Some((deployment, plan)) => (self.execute(&deployment, &plan).await, plan.requeue),
        }
    }

    /// Writes the health of a cluster to its status, and sends an event if the readiness changed.
    pub(super) async fn reconcile_cluster(&self, name: &Name) -> Outcome {
        let now = self.shared.now();
        let planned = self.shared.with(|index| {
            let cluster = index.clusters.get(name)?.clone();
            let state = index.cluster(&ClusterKey::Remote(name.clone()))?;
            let status = plan_cluster(&cluster, state, now)?;
            Some((cluster, status))
        });
        let Some((cluster, status)) = planned else {
            return Outcome::Succeeded;
        };
        let ready = status.conditions.get(&mainstay_api::ConditionType::Ready);
        let version = metadata_version(&cluster.metadata);
        let object = HostObject {
            kind: HostKind::Cluster,
            name,
            precondition: &version,
        };
        let was_ready = cluster
            .status
            .conditions
            .get(&mainstay_api::ConditionType::Ready)
            .status;
        let done = self.write_status(object, to_json_value(&status)).await;
        if done.is_ok() && ready.status != was_ready {
            let about = EventSubject {
                kind: "Cluster",
                name: name.clone(),
                version,
            };
            let is_warning = !ready.is_true();
            let message = if is_warning {
                ready.message.as_str()
            } else {
                "the cluster can be reached"
            };
            self.send_event(&about, ready.reason.name(), is_warning, message)
                .await;
        }
        outcome_for_result(done)
    }

    /// Plans an application and executes the writes.
    pub(super) async fn reconcile_application(&self, name: &Name) -> Outcome {
        let read = self.shared.with(|index| {
            let application = index
                .applications
                .get(name)
                .filter(|_| index.is_host_listed())?
                .clone();
            let revisions = index.revisions.in_namespace(&name.namespace);
            let revisions: Vec<ApplicationRevision> = revisions.map(|(_, one)| (**one).clone()).collect();
            let deployments = index.deployments.in_namespace(&name.namespace);
            let deployments: Vec<ApplicationDeployment> =
                deployments.map(|(_, one)| (**one).clone()).collect();
            Some((application, revisions, deployments))
        });
        let Some((application, revisions, deployments)) = read else {
            return Outcome::Succeeded;
        };
        let actions = plan_application(&ApplicationInput {
            now: self.shared.now(),
            application: &application,
            rendered: render_components(&application),
            revisions: &revisions,
            deployments: &deployments,
        });
        let precondition = metadata_version(&application.metadata);
        for action in actions {
            if let Err(error) = self.run_application_action(name, &precondition, action).await {
                return outcome_for_error(&error);
            }
        }
        Outcome::Succeeded
    }

    async fn run_application_action(
        &self,
        name: &Name,
        precondition: &Version,
        action: ApplicationAction,
    ) -> Result<(), WriteError> {
        let namespace = &name.namespace;
        match action {
            ApplicationAction::CreateRevision(revision) => {
                self.create_host(HostKind::Revision, namespace, to_json_value(&revision))
                    .await
            }
            ApplicationAction::CreateDeployment(deployment) => {
                self.create_host(HostKind::Deployment, namespace, to_json_value(&deployment))
                    .await
            }
            ApplicationAction::UpdateDeployment {
                name,
                version,
                revisions,
            } => {
                let name = Name::new(namespace, &name);
                let object = HostObject {
                    kind: HostKind::Deployment,
                    name: &name,
                    precondition: &version,
                };
                let change = json!({"op": "add", "path": "/spec/appRevisions", "value": revisions});
                self.patch_host(object, "", change).await
            }
            ApplicationAction::DeleteRevision { name, version } => {
                let name = Name::new(namespace, &name);
                let object = HostObject {
                    kind: HostKind::Revision,
                    name: &name,
                    precondition: &version,
                };
                self.delete_host(object).await
            }
            ApplicationAction::WriteStatus(status) => {
                let object = HostObject {
                    kind: HostKind::Application,
                    name,
                    precondition,
                };
                self.write_status(object, to_json_value(&status)).await
            }
        }
    }
}
