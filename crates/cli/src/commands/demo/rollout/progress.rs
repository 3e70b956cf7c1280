//! Progress of a rollout in one line, and the lowest capacity of each cluster.

use std::collections::BTreeMap;

use mainstay_api::delivery::{ApplicationDeployment, DeploymentPhase, Direction};
use mainstay_harness::Fleet;
use serde::Serialize;
use serde_json::Value;

use super::fixtures::{CLUSTERS, DEPLOYMENT, V1, V2};
use crate::commands::rollout::page::cluster_name;

/// Weights and available replicas of both revisions, from the objects in the clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Progress {
    phase: DeploymentPhase,
    step: String,
    /// Weight of the second revision by cluster; `None` without a route.
    weights: BTreeMap<String, Option<u64>>,
    /// Available replicas of both revisions by cluster.
    available: BTreeMap<String, [u64; 2]>,
}

impl Progress {
    /// Reads the current state.
    pub(super) fn read(fleet: &Fleet, deployment: &ApplicationDeployment) -> Self {
        let total = deployment
            .spec
            .strategy
            .as_ref()
            .map_or(0, |strategy| strategy.steps.len());
        let running = deployment
            .status
            .rollout
            .as_ref()
            .filter(|rollout| rollout.completed_at.is_none());
        let step = running.map_or_else(String::new, |rollout| match rollout.direction {
            Direction::Back => "back".to_owned(),
            Direction::Forward => format!("step {}/{total}", (rollout.step as usize + 1).min(total)),
        });
        let mut progress = Self {
            phase: deployment.status.phase,
            step,
            weights: BTreeMap::new(),
            available: BTreeMap::new(),
        };
        for (cluster, _) in CLUSTERS {
            let available = [V1, V2].map(|revision| {
                let replicas = fleet.replicas(cluster, &format!("{revision}-web"));
                replicas.map_or(0, |(_, available)| available)
            });
            progress
                .weights
                .insert(cluster.to_owned(), weight(fleet, cluster));
            progress.available.insert(cluster.to_owned(), available);
        }
        progress
    }

    /// Returns one line of at most 70 columns.
    pub(super) fn line(&self) -> String {
        let replicas: Vec<String> = CLUSTERS
            .iter()
            .filter_map(|(name, _)| {
                let [one, two] = self.available.get(*name)?;
                Some(format!("{} {one}+{two}", cluster_name(name)))
            })
            .collect();
        let weights: Vec<u64> = self.weights.values().filter_map(|weight| *weight).collect();
        let (low, high) = (weights.iter().min(), weights.iter().max());
        let weight = match (low, high) {
            (Some(low), Some(high)) if low == high => format!("v2 {low}%"),
            (Some(low), Some(high)) => format!("v2 {low}-{high}%"),
            _ => String::new(),
        };
        let phase = format!("{:?}", self.phase);
        format!(
            "{phase:<11}  {:<8}  {weight:<10}  {}",
            self.step,
            replicas.join("  ")
        )
        .trim_end()
        .to_owned()
    }
}

/// Returns the weight of the second revision in the route of a cluster.
fn weight(fleet: &Fleet, cluster: &str) -> Option<u64> {
    let route = fleet.object(cluster, "virtualservices.networking.istio.io", DEPLOYMENT)?;
    let targets = route.pointer("/spec/http/0/route").and_then(Value::as_array)?;
    let own = targets
        .iter()
        .find(|target| target.pointer("/destination/host").and_then(Value::as_str) == Some(V2));
    Some(own.map_or(0, |target| {
        target.get("weight").and_then(Value::as_u64).unwrap_or(100)
    }))
}

/// Lowest number of available replicas by cluster, added up over both revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Floor(BTreeMap<String, u64>);

impl Floor {
    /// Records the current state.
    pub(super) fn observe(&mut self, progress: &Progress) {
        for (cluster, available) in &progress.available {
            let total = available.iter().sum();
            let lowest = self.0.entry(cluster.clone()).or_insert(total);
            *lowest = total.min(*lowest);
        }
    }

    /// Whether no cluster ever had fewer available replicas than desired.
    pub(super) fn is_sufficient(&self) -> bool {
        CLUSTERS.iter().all(|(name, replicas)| {
            self.0
                .get(*name)
                .is_some_and(|lowest| *lowest >= u64::from(*replicas))
        })
    }

    /// Describes the lowest capacity.
    pub(super) fn text(&self) -> String {
        let one = |(name, replicas): &(&str, u32)| {
            let lowest = self.0.get(*name).copied().unwrap_or_default();
            format!("{} {lowest} of {replicas}", cluster_name(name))
        };
        CLUSTERS.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
