//! Describes the state of a deployment as specs that lead to it.

use std::collections::BTreeSet;

use mainstay_api::delivery::{
    AppRevision, ApplicationDeployment, ApplicationDeploymentSpec, ClusterPlacement, ClusterSelector,
    DeploymentStatus, Distribution, HttpRule, Placement, RevisionPlacement, RouteShare, RouteWeights,
    Traffic, WeightedTarget,
};
use mainstay_rollout::model::Model;
use mainstay_rollout::traffic::rule_name;

/// Clusters with equal weights. A spec has one weight per target for all clusters, so each group has its own.
pub(crate) struct RunningGroup {
    clusters: BTreeSet<String>,
    /// Spec whose target is the state of the clusters.
    pub(super) spec: ApplicationDeploymentSpec,
}

impl RunningGroup {
    /// Brings the clusters of the group to their state.
    pub(super) fn settle(self, model: &mut Model, settle: impl Fn(&mut Model)) {
        let mut own = model.clone();
        own.clusters.retain(|name, _| self.clusters.contains(name));
        own.set_spec(self.spec);
        // Workloads stay in a cluster that becomes unschedulable, but a new rollout does not place any there.
        for cluster in own.clusters.values_mut() {
            cluster.is_unschedulable = false;
        }
        settle(&mut own);
        for (name, mut cluster) in own.clusters {
            let known = model.clusters.get(&name);
            cluster.is_unschedulable = known.is_some_and(|known| known.is_unschedulable);
            model.clusters.insert(name, cluster);
        }
    }
}

/// Returns the groups of clusters with equal weights, and a spec for each whose target is the state that the
/// status describes. Empty if nothing runs.
pub(super) fn running_groups(deployment: &ApplicationDeployment) -> Vec<RunningGroup> {
    let status = &deployment.status;
    let placed = status.placement.iter().flat_map(|revision| &revision.clusters);
    let mut left: BTreeSet<&str> = placed.map(|cluster| cluster.cluster_name.as_str()).collect();
    let mut groups = Vec::new();
    for traffic in &status.traffic {
        let names = traffic.cluster_names.iter();
        let clusters: BTreeSet<String> = names.filter(|name| left.remove(name.as_str())).cloned().collect();
        groups.push((clusters, traffic.routes.as_slice()));
    }
    let without_routes = left.into_iter().map(str::to_owned).collect();
    groups.push((without_routes, &[]));
    let groups = groups.into_iter().filter(|(clusters, _)| !clusters.is_empty());
    groups
        .map(|(clusters, routes)| RunningGroup {
            spec: running_spec(deployment, &clusters, routes),
            clusters,
        })
        .collect()
}

/// Returns a spec whose target is the state of some clusters. It contains all revisions, so that their
/// Services have the same ports in all clusters.
fn running_spec(
    deployment: &ApplicationDeployment,
    clusters: &BTreeSet<String>,
    routes: &[RouteWeights],
) -> ApplicationDeploymentSpec {
    let own = |cluster: &&ClusterPlacement| clusters.contains(&cluster.cluster_name);
    let revision = |revision: &RevisionPlacement| AppRevision {
        revision_name: revision.revision_name.clone(),
        placement: revision.clusters.iter().filter(own).map(placement_of).collect(),
    };
    let traffic = deployment.spec.traffic.as_ref();
    ApplicationDeploymentSpec {
        traffic: traffic.map(|traffic| running_traffic(&deployment.status, traffic, routes)),
        app_revisions: deployment.status.placement.iter().map(revision).collect(),
        ..ApplicationDeploymentSpec::default()
    }
}

fn placement_of(cluster: &ClusterPlacement) -> Placement {
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

/// Returns the rules of the spec with the weights in `routes`. A target with a weight in other clusters only
/// has weight 0.
fn running_traffic(status: &DeploymentStatus, traffic: &Traffic, routes: &[RouteWeights]) -> Traffic {
    let rule = |rule: &HttpRule| HttpRule {
        weighted_targets: running_targets(status, routes, &rule_name(rule)),
        ..rule.clone()
    };
    let mut rules: Vec<HttpRule> = traffic.http.iter().map(rule).collect();
    rules.retain(|rule| !rule.weighted_targets.is_empty());
    Traffic {
        http: rules,
        ..traffic.clone()
    }
}

/// Returns the targets of a rule: those in `routes`, then those of other clusters.
fn running_targets(status: &DeploymentStatus, routes: &[RouteWeights], rule: &str) -> Vec<WeightedTarget> {
    let own = shares(routes, rule).map(|share| target(share, share.weight));
    let mut targets: Vec<WeightedTarget> = own.collect();
    for share in status
        .traffic
        .iter()
        .flat_map(|group| shares(&group.routes, rule))
    {
        let is_share = |target: &WeightedTarget| {
            target.revision_name == share.revision_name
                && target.component_name == share.component_name
                && target.port == share.port
        };
        if !targets.iter().any(is_share) {
            targets.push(target(share, Some(0)));
        }
    }
    targets
}

fn shares<'a>(routes: &'a [RouteWeights], rule: &str) -> impl Iterator<Item = &'a RouteShare> {
    let own = routes.iter().filter(move |route| route.rule == rule);
    own.flat_map(|route| &route.shares)
}

fn target(share: &RouteShare, weight: Option<u32>) -> WeightedTarget {
    WeightedTarget {
        revision_name: share.revision_name.clone(),
        component_name: share.component_name.clone(),
        port: share.port,
        weight,
    }
}
