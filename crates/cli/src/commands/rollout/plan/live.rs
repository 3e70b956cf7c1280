//! The state of a deployment in a cluster, from its status: no other cluster is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    AnalysisTemplate, AppRevision, ApplicationDeployment, ApplicationDeploymentSpec, ApplicationRevision,
    Cluster, ClusterSelector, Distribution, HttpRule, Placement, Traffic, WeightedTarget,
};
use mainstay_api::{ConditionStatus, ConditionType};
use mainstay_rollout::model::{Model, ModelCluster};
use mainstay_rollout::traffic::rule_name;

use super::assume;
use super::scenario::{Next, Scenario};
use crate::commands::rollout::api::{Delivery, ScopeFlags};
use crate::error::CliError;

/// Time before now at which the model starts, so that everything in the status is settled by now.
const LEAD: SignedDuration = SignedDuration::from_hours(24);

/// What the host cluster contains.
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

impl Stored {
    fn scenario(mut self, change: Option<ApplicationDeploymentSpec>, now: Timestamp) -> Scenario {
        let mut notes = Vec::new();
        let mut changed = self.deployment.clone();
        if let Some(change) = &change {
            changed.spec = change.clone();
        }
        let running = running_spec(&self.deployment);
        let mut before = self.deployment.clone();
        before.spec = running.clone().unwrap_or_default();
        for deployment in [&before, &self.deployment, &changed] {
            for revision in assume::missing_revisions(deployment, &self.revisions) {
                notes.push(format!(
                    "assuming revision {}, which does not exist",
                    revision.name()
                ));
                self.revisions.push(revision);
            }
        }
        let start = now.checked_sub(LEAD).unwrap_or(now);
        let mut model = Model::new(
            if running.is_some() { start } else { now },
            self.first(running.as_ref()),
        );
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
            .map(|one| (one.name().to_owned(), model_cluster(one)))
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
            next: Some(match running {
                Some(_) => Next::Continue {
                    stored: Box::new(self.deployment),
                    change: change.map(Box::new),
                    now,
                },
                None => Next::First(Box::new(changed.spec)),
            }),
            notes,
            unreachable,
        }
    }

    /// Returns the deployment with what runs as its spec, and no status.
    fn first(&self, running: Option<&ApplicationDeploymentSpec>) -> ApplicationDeployment {
        let mut first = self.deployment.clone();
        first.status = mainstay_api::delivery::DeploymentStatus::default();
        if let Some(running) = running {
            first.spec = running.clone();
        }
        first
    }
}

fn model_cluster(cluster: &Cluster) -> ModelCluster {
    let mut model = ModelCluster::default();
    model.labels.clone_from(&cluster.metadata.labels);
    model.is_unschedulable = cluster.spec.unschedulable || !cluster.spec.taints.is_empty();
    model
}

fn is_down(cluster: &Cluster) -> bool {
    let ready = cluster.status.conditions.find(&ConditionType::Ready);
    ready.is_some_and(|ready| ready.status == ConditionStatus::False)
}

/// Returns a spec that leads directly to what the status describes; `None` if nothing runs.
fn running_spec(deployment: &ApplicationDeployment) -> Option<ApplicationDeploymentSpec> {
    let placement = &deployment.status.placement;
    if placement.is_empty() {
        return None;
    }
    let revision = |revision: &mainstay_api::delivery::RevisionPlacement| AppRevision {
        revision_name: revision.revision_name.clone(),
        placement: revision.clusters.iter().map(placement_of).collect(),
    };
    Some(ApplicationDeploymentSpec {
        traffic: deployment
            .spec
            .traffic
            .as_ref()
            .map(|traffic| running_traffic(deployment, traffic)),
        app_revisions: placement.iter().map(revision).collect(),
        ..ApplicationDeploymentSpec::default()
    })
}

fn placement_of(cluster: &mainstay_api::delivery::ClusterPlacement) -> Placement {
    let selector = (!cluster.cluster_name.is_empty()).then(|| ClusterSelector {
        name: Some(cluster.cluster_name.clone()),
        ..ClusterSelector::default()
    });
    Placement {
        cluster_selector: selector,
        distribution: Some(Distribution {
            replicas: cluster.replicas,
            ..Distribution::default()
        }),
    }
}

/// Returns the rules of the spec with the weights of the status.
fn running_traffic(deployment: &ApplicationDeployment, traffic: &Traffic) -> Traffic {
    let status = deployment.status.traffic.first();
    let mut weights: BTreeMap<&str, Vec<WeightedTarget>> = BTreeMap::new();
    for route in status.iter().flat_map(|traffic| &traffic.routes) {
        let target = |share: &mainstay_api::delivery::RouteShare| WeightedTarget {
            revision_name: share.revision_name.clone(),
            component_name: share.component_name.clone(),
            port: share.port,
            weight: share.weight,
        };
        weights.insert(&route.rule, route.shares.iter().map(target).collect());
    }
    let rule = |rule: &HttpRule| {
        let targets = weights.get(rule_name(rule).as_str())?;
        Some(HttpRule {
            weighted_targets: targets.clone(),
            ..rule.clone()
        })
    };
    Traffic {
        http: traffic.http.iter().filter_map(rule).collect(),
        ..traffic.clone()
    }
}
