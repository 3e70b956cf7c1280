//! Reconstructs the state of a deployment from its status, which is read from the host cluster or a snapshot.
//! No other cluster is read.

#[cfg(feature = "simulator")]
use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
#[cfg(feature = "simulator")]
use mainstay_api::delivery::{API_VERSION, Kind as DeliveryKind, Resource};
use mainstay_api::delivery::{
    AnalysisTemplate, ApplicationDeployment, ApplicationDeploymentSpec, ApplicationRevision, Cluster,
    DeploymentStatus,
};
use mainstay_api::{ConditionStatus, ConditionType};
use mainstay_rollout::model::{Model, ModelCluster};
#[cfg(feature = "simulator")]
use serde_json::Value;

use super::assume;
use super::running::running_groups;
use super::scenario::{Next, Scenario};
use crate::commands::rollout::api::{Delivery, ScopeFlags};
use crate::error::CliError;
#[cfg(feature = "simulator")]
use crate::error::{Kind, chain};

/// Time before now at which the model starts, so that everything in the status is settled by now.
const LEAD: SignedDuration = SignedDuration::from_hours(24);

/// Objects in the host cluster.
struct Stored {
    deployment: ApplicationDeployment,
    revisions: Vec<ApplicationRevision>,
    clusters: Vec<Cluster>,
    templates: Vec<AnalysisTemplate>,
}

/// Reads the state of a deployment; `change` replaces its spec afterwards.
pub(super) async fn scenario(
    scope: &ScopeFlags,
    name: &str,
    change: Option<ApplicationDeploymentSpec>,
    now: Timestamp,
) -> Result<Scenario, CliError> {
    let delivery = Delivery::connect(scope).await?;
    let stored = Stored {
        deployment: delivery.deployment(name).await?,
        revisions: delivery.list(false).await?,
        clusters: delivery.list(false).await?,
        templates: delivery.list(false).await?,
    };
    Ok(stored.scenario(change, now))
}

/// Reads the state of a deployment from a snapshot; `change` replaces its spec afterwards.
#[cfg(feature = "simulator")]
pub(super) fn from_snapshot(
    path: &Path,
    name: Option<&str>,
    change: Option<ApplicationDeploymentSpec>,
    now: Timestamp,
) -> Result<Scenario, CliError> {
    let unreadable = |error| CliError::new(Kind::Manifest, chain(&error));
    let objects = mainstay_sim::snapshot::read_path(path).map_err(unreadable)?;
    let found: Vec<ApplicationDeployment> = of_kind(&objects)?;
    let names = found.iter().map(Resource::name).collect::<Vec<_>>().join(", ");
    let mut matching = found
        .into_iter()
        .filter(|one| name.is_none_or(|name| one.name() == name));
    let (Some(deployment), None) = (matching.next(), matching.next()) else {
        let message = match name {
            Some(name) => format!("{}: one applicationdeployment {name:?} expected", path.display()),
            None => format!("{}: one applicationdeployment expected", path.display()),
        };
        let hint = if names.is_empty() {
            "add the output of `kubectl get appdep,apprev,clusters.delivery.mainstay.dev -o yaml`".to_owned()
        } else {
            format!("name one of {names}")
        };
        return Err(CliError::new(Kind::Usage, message).hint(hint));
    };
    let stored = Stored {
        revisions: in_namespace(of_kind(&objects)?, &deployment),
        clusters: in_namespace(of_kind(&objects)?, &deployment),
        templates: in_namespace(of_kind(&objects)?, &deployment),
        deployment,
    };
    Ok(stored.scenario(change, now))
}

/// Returns the objects of a kind.
#[cfg(feature = "simulator")]
fn of_kind<S: DeliveryKind>(objects: &[Value]) -> Result<Vec<Resource<S>>, CliError> {
    let text = |object: &Value, field: &str| object.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_own = |object: &&Value| {
        text(object, "apiVersion").as_deref() == Some(API_VERSION)
            && text(object, "kind").as_deref() == Some(S::KIND)
    };
    let unread =
        |error: serde_json::Error| CliError::new(Kind::Manifest, format!("cannot read {}: {error}", S::KIND));
    objects
        .iter()
        .filter(is_own)
        .map(|one| serde_json::from_value(one.clone()).map_err(unread))
        .collect()
}

#[cfg(feature = "simulator")]
fn in_namespace<S: DeliveryKind>(
    objects: Vec<Resource<S>>,
    deployment: &ApplicationDeployment,
) -> Vec<Resource<S>> {
    objects
        .into_iter()
        .filter(|one| one.namespace() == deployment.namespace())
        .collect()
}

impl Stored {
    fn scenario(mut self, change: Option<ApplicationDeploymentSpec>, now: Timestamp) -> Scenario {
        let mut notes = Vec::new();
        let mut changed = self.deployment.clone();
        if let Some(change) = &change {
            changed.spec = change.clone();
        }
        let running = running_groups(&self.deployment);
        let before = running.iter().map(|group| {
            let mut before = self.deployment.clone();
            before.spec = group.spec.clone();
            before
        });
        let before: Vec<ApplicationDeployment> = before.collect();
        for deployment in before.iter().chain([&self.deployment, &changed]) {
            for revision in assume::missing_revisions(deployment, &self.revisions) {
                notes.push(format!(
                    "assuming revision {}, which does not exist",
                    revision.name()
                ));
                self.revisions.push(revision);
            }
        }
        let start = now.checked_sub(LEAD).unwrap_or(now);
        let mut first = self.deployment.clone();
        first.status = DeploymentStatus::default();
        let mut model = Model::new(if running.is_empty() { now } else { start }, first);
        model.revisions = self
            .revisions
            .iter()
            .map(|one| (one.name().to_owned(), Arc::new(one.clone())))
            .collect();
        model.templates = self
            .templates
            .iter()
            .map(|one| (one.name().to_owned(), one.clone()))
            .collect();
        model.clusters = self
            .clusters
            .iter()
            .map(|one| (one.name().to_owned(), ModelCluster::from_cluster(one)))
            .collect();
        model.clusters.entry(String::new()).or_default();
        let unreachable = self
            .clusters
            .iter()
            .filter(|cluster| is_down(cluster))
            .map(|cluster| cluster.name().to_owned());
        let unreachable = unreachable.collect();
        Scenario {
            model,
            next: Some(if running.is_empty() {
                Next::First(Box::new(changed.spec))
            } else {
                Next::Continue {
                    running,
                    stored: Box::new(self.deployment),
                    change: change.map(Box::new),
                    now,
                }
            }),
            notes,
            unreachable,
        }
    }
}

fn is_down(cluster: &Cluster) -> bool {
    let ready = cluster.status.conditions.find(&ConditionType::Ready);
    ready.is_some_and(|ready| ready.status == ConditionStatus::False)
}

#[cfg(test)]
mod tests;
