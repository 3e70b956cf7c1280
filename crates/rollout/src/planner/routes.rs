//! Plans the weights and routes of each cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_api::delivery::{
    Allocation, ApplicationDeployment, ClusterTraffic, HttpMatch, HttpRule, Provider, RolloutStatus,
    RouteShare, RouteWeights, Traffic,
};

use super::PreparedRevisions;
use super::cluster_state::{Cell, ClusterState, Mode};
use super::stage::Effects;
use crate::manifest::{Manifest, Role};
use crate::names::label_value;
use crate::traffic::{
    HEADER_PREFIX, RouteBackend, RouteContext, RouteMirror, Rule, render_routes, rule_name,
};
use crate::weights::{Backend, effective_weights};

/// Planned routes of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterRoutes {
    /// Routes and related objects. Empty if the cluster should have no routes.
    pub(crate) manifests: Vec<Arc<Manifest>>,
    /// Weights by rule.
    pub(crate) weights: Vec<RouteWeights>,
    /// Whether the planned routes are in effect, or none are planned and none exist.
    pub(crate) is_verified: bool,
    /// Whether a rule has no available revision.
    pub(crate) lacks_backend: bool,
    /// Whether traffic is configured but the cluster supports no provider.
    pub(crate) lacks_provider: bool,
}

/// Input for planning routes.
pub(crate) struct RouteInput<'a> {
    pub(crate) deployment: &'a ApplicationDeployment,
    pub(crate) rollout: &'a RolloutStatus,
    pub(crate) end: &'a Allocation,
    pub(crate) effects: &'a Effects,
    pub(crate) prepared: &'a PreparedRevisions,
    /// Number of replicas that may be released. A cluster without a target keeps its routes until all its
    /// replicas may be released.
    pub(crate) releasable: u32,
}

/// All values that the routes of a cluster depend on. Clusters with equal keys have equal routes.
#[derive(PartialEq)]
struct RouteKey<'a> {
    mode: Mode,
    providers: &'a BTreeSet<Provider>,
    source: Option<*const ClusterTraffic>,
    known: Option<*const ClusterTraffic>,
    may_release: bool,
    cells: Vec<(&'a str, u32, u32, u32, bool)>,
}

fn route_key<'a>(input: &RouteInput<'_>, state: &'a ClusterState<'_>) -> RouteKey<'a> {
    let position = |list, name| find_traffic(list, name).map(std::ptr::from_ref);
    let cell = |cell: &'a Cell<'_>| {
        let (source, target) = (cell.source, cell.target);
        (
            cell.revision.as_str(),
            cell.available,
            source,
            target,
            cell.is_in_target,
        )
    };
    RouteKey {
        mode: state.mode,
        providers: &state.view.providers,
        source: position(&input.rollout.source_traffic, &state.name),
        known: position(&input.deployment.status.traffic, &state.name),
        may_release: input.releasable >= state.spec_total(),
        cells: state.cells.values().map(cell).collect(),
    }
}

/// Returns the planned routes of all clusters.
pub(crate) fn plan_all(
    input: &RouteInput<'_>,
    clusters: &BTreeMap<String, ClusterState<'_>>,
) -> BTreeMap<String, ClusterRoutes> {
    let mut distinct: Vec<(RouteKey<'_>, ClusterRoutes)> = Vec::new();
    let mut all = BTreeMap::new();
    for state in clusters.values() {
        let key = route_key(input, state);
        let known = distinct.iter().find(|(known, _)| *known == key);
        let mut routes = if let Some((_, routes)) = known {
            routes.clone()
        } else {
            let routes = plan_routes(input, state);
            distinct.push((key, routes.clone()));
            routes
        };
        routes.is_verified = routes.lacks_provider || is_verified(state, &routes.manifests);
        all.insert(state.name.clone(), routes);
    }
    all
}

/// Returns the current weights of a cluster, or `None` if it has none.
pub(crate) fn find_traffic<'a>(traffic: &'a [ClusterTraffic], cluster: &str) -> Option<&'a ClusterTraffic> {
    let has_cluster = |traffic: &&ClusterTraffic| traffic.cluster_names.iter().any(|name| name == cluster);
    traffic.iter().find(has_cluster)
}

fn plan_routes(input: &RouteInput<'_>, state: &ClusterState<'_>) -> ClusterRoutes {
    let mut routes = ClusterRoutes::default();
    let Some(traffic) = &input.deployment.spec.traffic else {
        return routes;
    };
    let Some(provider) = select_provider(traffic, state) else {
        routes.lacks_provider = !state.cells.is_empty();
        return routes;
    };
    let mut rules = Vec::new();
    for rule in &traffic.http {
        let Some(shares) = rule_shares(input, state, rule, &mut routes) else {
            continue;
        };
        let backends = route_backends(input, &shares);
        let can_preview = provider != Provider::Ingress;
        if can_preview {
            rules.extend(header_rules(input, state, rule, &backends));
        }
        rules.push(Rule {
            name: rule_name(rule),
            route: rule.route.clone(),
            matches: rule.matches.clone(),
            is_proportional: rule.weighted_targets.iter().all(|target| target.weight.is_none()),
            mirror: route_mirror(input, state, &backends).filter(|_| can_preview),
            backends,
        });
        routes.weights.push(RouteWeights {
            rule: rule_name(rule),
            shares: shares
                .into_iter()
                .filter(|share| share.weight != Some(0))
                .collect(),
        });
    }
    routes.weights.sort_by(|left, right| left.rule.cmp(&right.rule));
    let context = RouteContext {
        deployment: input.deployment.name(),
        namespace: input.deployment.namespace(),
        traffic,
    };
    routes.manifests = render_routes(provider, context, &rules);
    routes
}

fn select_provider(traffic: &Traffic, state: &ClusterState<'_>) -> Option<Provider> {
    match traffic.provider.unwrap_or_default() {
        Provider::Auto => {
            let has_weights = traffic
                .http
                .iter()
                .flat_map(|rule| &rule.weighted_targets)
                .any(|target| target.weight.is_some());
            let has_more = traffic
                .http
                .iter()
                .flat_map(|rule| &rule.matches)
                .any(|request| request.method.is_some() || !request.headers.is_empty());
            let usable =
                |provider: &&Provider| **provider != Provider::Ingress || (!has_weights && !has_more);
            state.view.providers.iter().find(usable).copied()
        }
        chosen => Some(chosen),
    }
}

fn observed_routes<'a>(
    state: &'a ClusterState<'_>,
) -> impl Iterator<Item = (&'a crate::manifest::ObjectKey, &'a crate::snapshot::Observed)> {
    let routes = state.view.objects.iter();
    routes.filter(|(key, observed)| Role::for_kind(&key.kind) == Role::Route && observed.deployment.is_some())
}

fn is_verified(state: &ClusterState<'_>, manifests: &[Arc<Manifest>]) -> bool {
    let mut routes = manifests.iter().filter(|manifest| manifest.role == Role::Route);
    let is_in_effect = routes.all(|manifest| {
        state.view.objects.get(&manifest.key).is_some_and(|observed| {
            observed.hash.as_ref() == Some(&manifest.hash) && observed.is_accepted && !observed.is_drifted
        })
    });
    let is_planned = |key: &crate::manifest::ObjectKey| manifests.iter().any(|manifest| manifest.key == *key);
    is_in_effect && observed_routes(state).all(|(key, _)| is_planned(key))
}

/// Returns the weights of a rule in a cluster, or `None` if the rule is omitted.
fn rule_shares(
    input: &RouteInput<'_>,
    state: &ClusterState<'_>,
    rule: &HttpRule,
    routes: &mut ClusterRoutes,
) -> Option<Vec<RouteShare>> {
    let name = rule_name(rule);
    let source = find_source(input.rollout, &state.name, &name);
    let end = find_rule(&input.end.routes, &name).map_or_else(|| spec_shares(rule), <[RouteShare]>::to_vec);
    let can_end = end.iter().any(|share| {
        let cell = state.cells.get(&label_value(&share.revision_name));
        cell.is_some_and(|cell| cell.is_in_target && cell.target > 0 && share.weight != Some(0))
    });
    if source.is_empty() && (state.mode == Mode::Hold || !can_end) {
        return None;
    }
    if !can_end && state.mode == Mode::Final && input.releasable >= state.spec_total() {
        // Other clusters have replaced the replicas of this cluster.
        return None;
    }
    let progress = match state.mode {
        Mode::Hold => 0,
        Mode::Step => input.effects.weight.min(state.progress()),
        Mode::Final => state.progress(),
    };
    let progress = if can_end { progress } else { 0 };
    let mixed = mix_weights(&source, &end, progress, state);
    let candidates: Vec<Backend> = mixed
        .iter()
        .map(|(share, weight)| Backend {
            revision: share.revision_name.clone(),
            weight: *weight,
            available: state.available(&label_value(&share.revision_name)),
        })
        .collect();
    if let Ok(weights) = effective_weights(&candidates) {
        let with_weight = |((share, _), weight): ((RouteShare, u32), u32)| RouteShare {
            weight: Some(weight),
            ..share
        };
        return Some(mixed.into_iter().zip(weights).map(with_weight).collect());
    }
    // No backend is available, so the rule is not changed.
    routes.lacks_backend = true;
    let known = find_traffic(&input.deployment.status.traffic, &state.name)?;
    find_rule(&known.routes, &name).map(<[RouteShare]>::to_vec)
}

fn spec_shares(rule: &HttpRule) -> Vec<RouteShare> {
    let share = |target: &mainstay_api::delivery::WeightedTarget| RouteShare {
        revision_name: target.revision_name.clone(),
        component_name: target.component_name.clone(),
        port: target.port,
        weight: target.weight,
    };
    rule.weighted_targets.iter().map(share).collect()
}

fn find_rule<'a>(routes: &'a [RouteWeights], name: &str) -> Option<&'a [RouteShare]> {
    routes
        .iter()
        .find(|route| route.rule == name)
        .map(|route| route.shares.as_slice())
}

fn find_source(rollout: &RolloutStatus, cluster: &str, name: &str) -> Vec<RouteShare> {
    find_traffic(&rollout.source_traffic, cluster)
        .and_then(|traffic| find_rule(&traffic.routes, name))
        .map(<[RouteShare]>::to_vec)
        .unwrap_or_default()
}

/// Interpolates between the weights at the source and at the end of the rollout. A share without a weight
/// is proportional to the available replicas, at the end without those that will be removed.
fn mix_weights(
    source: &[RouteShare],
    end: &[RouteShare],
    progress: u32,
    state: &ClusterState<'_>,
) -> Vec<(RouteShare, u32)> {
    let source_weight = |share: &RouteShare| {
        let available = || state.available(&label_value(&share.revision_name));
        share.weight.unwrap_or_else(available)
    };
    let end_weight = |share: &RouteShare| state.end_weight(share, |cell| cell.available.min(cell.target));
    let weigh = |shares: &[RouteShare], weight: &dyn Fn(&RouteShare) -> u32| -> Vec<u64> {
        let weights = shares.iter().map(weight);
        weights.map(|weight| u64::from(weight.min(10_000))).collect()
    };
    let (source_weights, end_weights) = (weigh(source, &source_weight), weigh(end, &end_weight));
    let (source_sum, end_sum): (u64, u64) = (source_weights.iter().sum(), end_weights.iter().sum());
    // If one side has no weights, only the other one counts.
    let progress = match (source_sum, end_sum) {
        (0, _) => 100,
        (_, 0) => 0,
        _ => u64::from(progress),
    };
    let mut mixed: BTreeMap<(String, String, u16), u64> = BTreeMap::new();
    let mut add = |shares: &[RouteShare], weights: &[u64], factor: u64| {
        for (share, weight) in shares.iter().zip(weights) {
            let key = (
                share.revision_name.clone(),
                share.component_name.clone(),
                share.port,
            );
            *mixed.entry(key).or_default() += weight * factor;
        }
    };
    add(source, &source_weights, (100 - progress) * end_sum.max(1));
    add(end, &end_weights, progress * source_sum.max(1));
    let largest = mixed.values().copied().max().unwrap_or_default();
    let scale = (largest / 1_000_000).max(1);
    mixed
        .into_iter()
        .map(|((revision_name, component_name, port), weight)| {
            let share = RouteShare {
                revision_name,
                component_name,
                port,
                weight: None,
            };
            (share, u32::try_from(weight.div_ceil(scale)).unwrap_or(u32::MAX))
        })
        .collect()
}

fn route_backends(input: &RouteInput<'_>, shares: &[RouteShare]) -> Vec<RouteBackend> {
    shares
        .iter()
        .map(|share| RouteBackend {
            revision: share.revision_name.clone(),
            component: share.component_name.clone(),
            service: input
                .prepared
                .service_of(&share.revision_name, &share.component_name),
            port: share.port,
            weight: share.weight.unwrap_or_default(),
        })
        .collect()
}

/// Returns the growing revision of a rule if it is available and the rollout is at a step.
fn preview_backend<'a>(
    input: &RouteInput<'_>,
    state: &ClusterState<'_>,
    backends: &'a [RouteBackend],
) -> Option<&'a RouteBackend> {
    if state.mode != Mode::Step {
        return None;
    }
    let is_new = |backend: &&RouteBackend| {
        let cell = state.cells.get(&label_value(&backend.revision));
        let in_end = input
            .end
            .routes
            .iter()
            .flat_map(|route| &route.shares)
            .any(|share| share.revision_name == backend.revision && share.weight != Some(0));
        in_end && cell.is_some_and(|cell| cell.increment() > 0 && cell.available > 0)
    };
    backends.iter().find(is_new)
}

fn header_rules(
    input: &RouteInput<'_>,
    state: &ClusterState<'_>,
    rule: &HttpRule,
    backends: &[RouteBackend],
) -> Vec<Rule> {
    let Some(backend) = preview_backend(input, state, backends) else {
        return Vec::new();
    };
    let header_rule = |route: &mainstay_api::delivery::HeaderRoute| {
        let mut matches = rule.matches.clone();
        if matches.is_empty() {
            matches.push(HttpMatch::default());
        }
        for entry in &mut matches {
            let headers = route
                .matches
                .iter()
                .map(|header| (header.header_name.clone(), header.value.clone()));
            entry.headers.extend(headers);
        }
        Rule {
            name: format!("{HEADER_PREFIX}{}-{}", route.name, rule_name(rule)),
            route: rule.route.clone(),
            matches,
            backends: vec![RouteBackend {
                weight: 100,
                ..backend.clone()
            }],
            ..Rule::default()
        }
    };
    input.effects.headers.iter().map(header_rule).collect()
}

fn route_mirror(
    input: &RouteInput<'_>,
    state: &ClusterState<'_>,
    backends: &[RouteBackend],
) -> Option<RouteMirror> {
    let percent = input.effects.mirror;
    let backend = preview_backend(input, state, backends).filter(|_| percent > 0)?;
    Some(RouteMirror {
        service: backend.service.clone(),
        port: backend.port,
        percent,
    })
}
