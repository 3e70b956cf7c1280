//! Renders routes: Istio `VirtualService`s, Gateway API `HTTPRoute`s and Kubernetes Ingresses.
//!
//! The input consists of rules with concrete weights, which the planner computes. The weights of a route's
//! Services are stored in an annotation of the route, from which the planner reads them.

mod gateway;
mod ingress;
mod istio;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_api::delivery::{
    COMPONENT_LABEL, DEPLOYMENT_LABEL, HttpMatch, HttpRule, Provider, SessionAffinity, StringMatch, Traffic,
};
use serde_json::{Value, json};

use crate::manifest::{Manifest, hash_text};
use crate::names::{apex_service_name, label_value, shorten};

/// Annotation of a route with the largest weight of each Service, as JSON. A Service to which only header
/// routes or mirrors refer has weight 1.
pub const WEIGHTS: &str = "delivery.mainstay.dev/weights";

/// A rule with the weights for one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Name of the rule.
    pub name: String,
    /// Suffix of the name of an additional route object that contains this rule; `None` for the route of the
    /// deployment.
    pub route: Option<String>,
    /// Conditions on requests.
    pub matches: Vec<HttpMatch>,
    /// Services that receive requests. The sum of the weights is 100.
    pub backends: Vec<RouteBackend>,
    /// Whether weights are proportional to replicas.
    pub is_proportional: bool,
    /// Service that receives copies of requests.
    pub mirror: Option<RouteMirror>,
}

/// A Service to which a rule sends requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteBackend {
    /// Name of the revision.
    pub revision: String,
    /// Name of the component.
    pub component: String,
    /// Name of the Service.
    pub service: String,
    /// Port of the Service.
    pub port: u16,
    /// Share of requests in percent.
    pub weight: u32,
}

/// A Service that receives copies of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMirror {
    /// Name of the Service.
    pub service: String,
    /// Port of the Service.
    pub port: u16,
    /// Share of requests that are copied, in percent.
    pub percent: u32,
}

/// Settings of routes in addition to the rules.
#[derive(Clone, Copy, Debug)]
pub struct RouteContext<'a> {
    /// Name of the deployment.
    pub deployment: &'a str,
    /// Namespace of the deployment.
    pub namespace: &'a str,
    /// Traffic settings.
    pub traffic: &'a Traffic,
}

impl RouteContext<'_> {
    fn metadata(&self, name: &str, weights: &BTreeMap<&str, u32>) -> Value {
        json!({
            "name": name,
            "namespace": self.namespace,
            "labels": {DEPLOYMENT_LABEL: label_value(self.deployment)},
            "annotations": {WEIGHTS: json!(weights).to_string()},
        })
    }

    fn route_name(&self, route: Option<&str>) -> String {
        match route {
            None => shorten(self.deployment),
            Some(suffix) => shorten(&format!("{}-{suffix}", self.deployment)),
        }
    }

    /// Returns the name of the Service for all revisions of the first rule's component.
    fn apex_service(&self, rules: &[&Rule]) -> String {
        let component = rules.iter().flat_map(|rule| &rule.backends).next();
        apex_service_name(
            self.deployment,
            component.map_or("", |backend| &backend.component),
        )
    }
}

/// Returns the name of a rule. If it has none, the name is derived from its route and match.
#[must_use]
pub fn rule_name(rule: &HttpRule) -> String {
    rule.name.clone().unwrap_or_else(|| {
        let text = json!([rule.route, rule.matches]).to_string();
        format!("rule-{}", hash_text(&text).get(..8).unwrap_or_default())
    })
}

/// Returns the objects for the rules of one cluster: Services for all revisions, destination rules, routes.
#[must_use]
pub fn render_routes(provider: Provider, context: RouteContext<'_>, rules: &[Rule]) -> Vec<Arc<Manifest>> {
    if rules.is_empty() || matches!(provider, Provider::None | Provider::Auto) {
        return Vec::new();
    }
    let mut objects = Vec::new();
    if needs_apex(provider, &context, rules) {
        objects.extend(apex_services(&context, rules));
    }
    if let (Provider::Istio, Some(policy)) = (provider, &context.traffic.policy) {
        let services: BTreeSet<&str> = rules.iter().flat_map(services_of).collect();
        objects.extend(
            services
                .into_iter()
                .map(|service| istio::destination_rule(&context, service, policy)),
        );
    }
    let mut groups: BTreeMap<Option<&str>, Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        groups.entry(rule.route.as_deref()).or_default().push(rule);
    }
    for (route, rules) in groups {
        let name = context.route_name(route);
        let metadata = context.metadata(&name, &route_weights(&rules));
        objects.push(match provider {
            Provider::GatewayApi => gateway::http_route(&context, &metadata, &rules),
            Provider::Ingress => ingress::ingress(&context, &metadata, &rules),
            _ => istio::virtual_service(&context, &metadata, &rules),
        });
    }
    objects
        .into_iter()
        .map(|object| Arc::new(Manifest::new(object)))
        .collect()
}

/// Parses the annotation [`WEIGHTS`].
#[must_use]
pub fn parse_weights(annotation: &str) -> Option<BTreeMap<String, u32>> {
    serde_json::from_str(annotation).ok()
}

fn services_of(rule: &Rule) -> impl Iterator<Item = &str> {
    let mirror = rule.mirror.iter().map(|mirror| mirror.service.as_str());
    rule.backends
        .iter()
        .map(|backend| backend.service.as_str())
        .chain(mirror)
}

fn route_weights<'a>(rules: &[&'a Rule]) -> BTreeMap<&'a str, u32> {
    let mut weights = BTreeMap::new();
    let mut note = |service: &'a str, weight: u32| {
        let known = weights.entry(service).or_insert(0);
        *known = weight.max(*known);
    };
    for rule in rules {
        let is_header_route = rule.name.starts_with(HEADER_PREFIX);
        for backend in rule.backends.iter().filter(|backend| backend.weight > 0) {
            note(&backend.service, if is_header_route { 1 } else { backend.weight });
        }
        if let Some(mirror) = &rule.mirror {
            note(&mirror.service, 1);
        }
    }
    weights
}

/// Prefix of the names of rules that are generated for steps.
pub(crate) const HEADER_PREFIX: &str = "header-";

/// Whether requests use a Service for all revisions. True without host names and gateways, and if an Ingress
/// distributes requests by replicas.
fn needs_apex(provider: Provider, context: &RouteContext<'_>, rules: &[Rule]) -> bool {
    match provider {
        Provider::Ingress => rules.iter().any(ingress::uses_apex),
        Provider::GatewayApi => context.traffic.gateway_refs.is_empty(),
        _ => context.traffic.hosts.is_empty(),
    }
}

fn apex_services(context: &RouteContext<'_>, rules: &[Rule]) -> Vec<Value> {
    let mut ports: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    for backend in rules.iter().flat_map(|rule| &rule.backends) {
        ports.entry(&backend.component).or_default().insert(backend.port);
    }
    let service = |(component, ports): (&str, BTreeSet<u16>)| {
        let labels = json!({
            DEPLOYMENT_LABEL: label_value(context.deployment),
            COMPONENT_LABEL: label_value(component),
        });
        let port = |port: &u16| json!({"name": format!("http-{port}"), "port": port, "protocol": "TCP"});
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": apex_service_name(context.deployment, component),
                "namespace": context.namespace,
                "labels": labels,
            },
            "spec": {"ports": ports.iter().map(port).collect::<Vec<_>>(), "selector": labels},
        })
    };
    ports.into_iter().map(service).collect()
}

/// A condition of a string match, with its kind.
enum Condition<'a> {
    Exact(&'a str),
    Prefix(&'a str),
    Regex(&'a str),
}

fn condition(text: &StringMatch) -> Option<Condition<'_>> {
    let exact = text.exact.as_deref().map(Condition::Exact);
    exact
        .or_else(|| text.prefix.as_deref().map(Condition::Prefix))
        .or_else(|| text.regex.as_deref().map(Condition::Regex))
}

/// Returns the rules preceded by rules for session affinity: a request with the cookie of a revision is
/// sent to that revision.
fn with_affinity(rules: &[&Rule], affinity: Option<&SessionAffinity>) -> Vec<Rule> {
    let Some(affinity) = affinity else {
        return rules.iter().map(|rule| (*rule).clone()).collect();
    };
    let mut all = Vec::new();
    for rule in rules {
        let active: Vec<&RouteBackend> = rule
            .backends
            .iter()
            .filter(|backend| backend.weight > 0)
            .collect();
        for backend in active.iter().filter(|_| active.len() > 1) {
            all.push(pinned_rule(rule, backend, affinity));
        }
        all.push((*rule).clone());
    }
    all
}

fn pinned_rule(rule: &Rule, backend: &RouteBackend, affinity: &SessionAffinity) -> Rule {
    let cookie = StringMatch {
        regex: Some(format!(
            "^(.*; *)?{}={}(;.*)?$",
            affinity.cookie_name, backend.revision
        )),
        ..StringMatch::default()
    };
    let mut matches = rule.matches.clone();
    if matches.is_empty() {
        matches.push(HttpMatch::default());
    }
    for entry in &mut matches {
        entry.headers.insert("cookie".to_owned(), cookie.clone());
    }
    Rule {
        name: format!("{}-{}", rule.name, backend.revision),
        matches,
        backends: vec![RouteBackend {
            weight: 100,
            ..(*backend).clone()
        }],
        mirror: None,
        ..rule.clone()
    }
}

/// Returns the `Set-Cookie` value that keeps a client on a revision.
fn affinity_cookie(affinity: &SessionAffinity, backend: &RouteBackend) -> String {
    let age = affinity.max_age_seconds.unwrap_or(3600);
    format!(
        "{}={}; Path=/; Max-Age={age}; HttpOnly",
        affinity.cookie_name, backend.revision
    )
}
