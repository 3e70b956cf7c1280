//! Resolves a spec to replicas by revision and cluster, and to weights by rule.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mainstay_api::Reason;
use mainstay_api::delivery::{
    Allocation, ApplicationDeployment, ClusterPlacement, ClusterSelector, Distribution, Divide, IntOrString,
    RevisionPlacement, RouteShare, RouteWeights,
};
use serde_json::json;

use crate::diff::{Assignment, Placements};
use crate::division::{Share, divide};
use crate::manifest::hash_value;
use crate::placement::{Candidate, PlacementError, Selector, select};
use crate::snapshot::{ClusterView, Snapshot};
use crate::traffic::rule_name;

/// A problem that prevents resolving a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// Returns the target of a spec, or the problem that prevents resolving it.
pub(crate) fn resolve_target(snapshot: &Snapshot) -> Result<Allocation, Problem> {
    let deployment = &snapshot.deployment;
    check_revisions(snapshot)?;
    let candidates = candidates(snapshot);
    let current = current_clusters(deployment);
    let mut placements = Placements::new();
    for revision in &deployment.spec.app_revisions {
        let mut ordinals: BTreeMap<String, usize> = BTreeMap::new();
        for placement in &revision.placement {
            let distribution = placement.distribution.clone().unwrap_or_default();
            let clusters = match &placement.cluster_selector {
                None => vec![String::new()],
                Some(selector) => {
                    let canonical = json!([selector.name, selector.labels]).to_string();
                    let ordinal = ordinals.entry(canonical.clone()).or_insert(0);
                    let key = format!(
                        "{}/{}/{canonical}/{ordinal}",
                        deployment.namespace(),
                        deployment.name()
                    );
                    *ordinal += 1;
                    let selector = parse_selector(selector)?;
                    select(&key, &selector, &candidates, &current)
                        .map_err(|error| placement_problem(&error))?
                }
            };
            for (cluster, replicas) in distribute(&clusters, &distribution) {
                let assignment = Assignment {
                    revision: revision.revision_name.clone(),
                    cluster,
                };
                // The replicas of several entries for one cluster are added. If one entry has no replicas,
                // they are unmanaged.
                let sum = match placements.get(&assignment) {
                    None => replicas,
                    Some(known) => known.zip(replicas).map(|(one, other)| one.saturating_add(other)),
                };
                placements.insert(assignment, sum);
            }
        }
    }
    Ok(Allocation {
        placement: to_status(&placements),
        routes: route_weights(deployment),
    })
}

fn check_revisions(snapshot: &Snapshot) -> Result<(), Problem> {
    let spec = &snapshot.deployment.spec;
    for revision in &spec.app_revisions {
        if !snapshot.revisions.contains_key(&revision.revision_name) {
            return Err(Problem {
                reason: Reason::RevisionNotFound,
                message: format!("ApplicationRevision {:?} does not exist", revision.revision_name),
            });
        }
    }
    let targets = spec.traffic.iter().flat_map(|traffic| &traffic.http);
    for target in targets.flat_map(|rule| &rule.weighted_targets) {
        let revision = snapshot.revisions.get(&target.revision_name);
        let has_component = revision.is_some_and(|revision| {
            let mut components = revision.spec.components.iter();
            components.any(|component| component.name == target.component_name)
        });
        if !has_component {
            return Err(Problem {
                reason: Reason::ComponentNotFound,
                message: format!(
                    "revision {:?} has no component {:?}",
                    target.revision_name, target.component_name
                ),
            });
        }
    }
    Ok(())
}

fn placement_problem(error: &PlacementError) -> Problem {
    let reason = match error {
        PlacementError::UnknownCluster(_) => Reason::ClusterNotFound,
        PlacementError::LabelMismatch(_) => Reason::ClusterLabelMismatch,
        PlacementError::NoClusterMatched => Reason::NoClusterMatched,
    };
    Problem {
        reason,
        message: error.to_string(),
    }
}

fn parse_selector(selector: &ClusterSelector) -> Result<Selector, Problem> {
    let count = match &selector.count {
        None => Some(1),
        Some(IntOrString::Text(text)) if text == "All" => None,
        Some(count) => {
            let number = count.to_string().parse::<usize>().ok().filter(|count| *count > 0);
            let invalid = || Problem {
                reason: Reason::InvalidSpec,
                message: format!("count {count} is neither a positive number nor All"),
            };
            Some(number.ok_or_else(invalid)?)
        }
    };
    Ok(Selector {
        name: selector.name.clone(),
        labels: selector.labels.clone(),
        count,
    })
}

fn candidates(snapshot: &Snapshot) -> Vec<Candidate> {
    let remote = snapshot.clusters.iter().filter(|(name, _)| !name.is_empty());
    remote
        .filter(|(_, view)| !view.is_deleted && !is_replaced_by_failover(snapshot, view))
        .map(|(name, view)| Candidate {
            name: name.clone(),
            labels: view.labels.clone(),
            is_schedulable: view.is_schedulable && view.unreachable_since.is_none(),
        })
        .collect()
}

/// Whether failover replaces a cluster. Requires the failover setting.
fn is_replaced_by_failover(snapshot: &Snapshot, view: &ClusterView) -> bool {
    let Some(failover) = &snapshot.deployment.spec.failover else {
        return false;
    };
    let after = jiff::SignedDuration::from_secs(i64::from(failover.after_seconds));
    let is_overdue = |since: Timestamp| snapshot.now.duration_since(since) >= after;
    view.unreachable_since.is_some_and(is_overdue)
}

/// Returns the clusters of the last target, which remain selected if they still match. Clusters of the
/// stable state are not included: a cluster that becomes reachable after a failover would get its workloads
/// back immediately.
fn current_clusters(deployment: &ApplicationDeployment) -> BTreeSet<String> {
    let rollout = deployment.status.rollout.iter();
    rollout
        .flat_map(|rollout| &rollout.target.placement)
        .flat_map(|placement| &placement.clusters)
        .map(|cluster| cluster.cluster_name.clone())
        .collect()
}

fn distribute(clusters: &[String], distribution: &Distribution) -> Vec<(String, Option<u32>)> {
    let each = |replicas| clusters.iter().map(|name| (name.clone(), replicas)).collect();
    let (Some(Divide::Weighted), Some(total)) = (distribution.divide, distribution.replicas) else {
        return each(distribution.replicas);
    };
    let weight = |name: &String| {
        let entry = distribution
            .weights
            .iter()
            .find(|entry| entry.cluster_name == *name);
        entry.map_or(u32::from(distribution.weights.is_empty()), |entry| entry.weight)
    };
    let shares: Vec<Share> = clusters
        .iter()
        .map(|name| Share {
            min: distribution.min_per_cluster.unwrap_or_default(),
            ..Share::new(name.clone(), weight(name))
        })
        .collect();
    let numbers = divide(total, &shares);
    clusters
        .iter()
        .zip(numbers)
        .map(|(name, number)| (name.clone(), Some(number)))
        .collect()
}

fn route_weights(deployment: &ApplicationDeployment) -> Vec<RouteWeights> {
    let rules = deployment.spec.traffic.iter().flat_map(|traffic| &traffic.http);
    let mut routes: Vec<RouteWeights> = rules
        .map(|rule| {
            let share = |target: &mainstay_api::delivery::WeightedTarget| RouteShare {
                revision_name: target.revision_name.clone(),
                component_name: target.component_name.clone(),
                port: target.port,
                weight: target.weight,
            };
            let mut shares: Vec<RouteShare> = rule.weighted_targets.iter().map(share).collect();
            shares.sort();
            RouteWeights {
                rule: rule_name(rule),
                shares,
            }
        })
        .collect();
    routes.sort_by(|left, right| left.rule.cmp(&right.rule));
    routes
}

/// Returns the hash of an allocation.
pub(crate) fn allocation_hash(allocation: &Allocation) -> String {
    hash_value(&serde_json::to_value(allocation).unwrap_or_default())
}

/// Converts placements to the representation in the status.
pub(crate) fn to_status(placements: &Placements) -> Vec<RevisionPlacement> {
    let mut revisions: BTreeMap<&str, Vec<ClusterPlacement>> = BTreeMap::new();
    for (assignment, replicas) in placements {
        revisions
            .entry(&assignment.revision)
            .or_default()
            .push(ClusterPlacement {
                cluster_name: assignment.cluster.clone(),
                replicas: *replicas,
                ..ClusterPlacement::default()
            });
    }
    revisions
        .into_iter()
        .map(|(revision, clusters)| RevisionPlacement {
            revision_name: revision.to_owned(),
            clusters,
        })
        .collect()
}

/// Converts placements from the representation in the status.
pub(crate) fn from_status(placement: &[RevisionPlacement]) -> Placements {
    let mut placements = Placements::new();
    for revision in placement {
        for cluster in &revision.clusters {
            let assignment = Assignment {
                revision: revision.revision_name.clone(),
                cluster: cluster.cluster_name.clone(),
            };
            placements.insert(assignment, cluster.replicas);
        }
    }
    placements
}
