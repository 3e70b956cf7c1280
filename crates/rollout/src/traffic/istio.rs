//! Renders `VirtualService` and `DestinationRule` of Istio.

use mainstay_api::delivery::{HttpMatch, StringMatch};
use serde_json::{Map, Value, json};

use super::{Condition, RouteBackend, RouteContext, Rule, affinity_cookie, condition, with_affinity};
use crate::names::shorten;

/// Group and version of Istio's kinds.
const API_VERSION: &str = "networking.istio.io/v1";

pub(super) fn virtual_service(context: &RouteContext<'_>, metadata: &Value, rules: &[&Rule]) -> Value {
    let traffic = context.traffic;
    let hosts = if traffic.hosts.is_empty() {
        vec![context.apex_service(rules)]
    } else {
        traffic.hosts.clone()
    };
    let rules = with_affinity(rules, traffic.session_affinity.as_ref());
    let http: Vec<Value> = rules.iter().map(|rule| http_route(context, rule)).collect();
    let mut spec = Map::from_iter([
        ("hosts".to_owned(), json!(hosts)),
        ("http".to_owned(), json!(http)),
    ]);
    if !traffic.gateways.is_empty() {
        spec.insert("gateways".to_owned(), json!(traffic.gateways));
    }
    json!({"apiVersion": API_VERSION, "kind": "VirtualService", "metadata": metadata, "spec": spec})
}

fn http_route(context: &RouteContext<'_>, rule: &Rule) -> Value {
    let backends = rule
        .backends
        .iter()
        .filter(|backend| backend.weight > 0)
        .map(|backend| destination(context, backend));
    let mut route = Map::from_iter([
        ("name".to_owned(), json!(rule.name)),
        ("route".to_owned(), Value::Array(backends.collect())),
    ]);
    if !rule.matches.is_empty() {
        let matches: Vec<Value> = rule.matches.iter().map(request_match).collect();
        route.insert("match".to_owned(), Value::Array(matches));
    }
    if let Some(mirror) = &rule.mirror {
        let target = json!({"host": mirror.service, "port": {"number": mirror.port}});
        route.insert("mirror".to_owned(), target);
        route.insert("mirrorPercentage".to_owned(), json!({"value": mirror.percent}));
    }
    Value::Object(route)
}

fn destination(context: &RouteContext<'_>, backend: &RouteBackend) -> Value {
    let target = json!({"host": backend.service, "port": {"number": backend.port}});
    let mut destination = json!({"destination": target, "weight": backend.weight});
    if let (Some(affinity), Value::Object(map)) = (&context.traffic.session_affinity, &mut destination) {
        let cookie = affinity_cookie(affinity, backend);
        map.insert(
            "headers".to_owned(),
            json!({"response": {"add": {"Set-Cookie": cookie}}}),
        );
    }
    destination
}

fn request_match(request: &HttpMatch) -> Value {
    let mut out = Map::new();
    if let Some(uri) = &request.uri {
        out.insert("uri".to_owned(), string_match(uri));
    }
    if let Some(method) = &request.method {
        out.insert("method".to_owned(), json!({"exact": method}));
    }
    if !request.headers.is_empty() {
        let headers: Map<String, Value> = request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), string_match(value)))
            .collect();
        out.insert("headers".to_owned(), Value::Object(headers));
    }
    Value::Object(out)
}

fn string_match(text: &StringMatch) -> Value {
    match condition(text) {
        Some(Condition::Exact(value)) => json!({"exact": value}),
        Some(Condition::Prefix(value)) => json!({"prefix": value}),
        Some(Condition::Regex(value)) => json!({"regex": value}),
        None => json!({}),
    }
}

pub(super) fn destination_rule(context: &RouteContext<'_>, service: &str, policy: &Value) -> Value {
    let name = shorten(&format!("{}-{service}", context.deployment));
    let mut metadata = context.metadata(&name, &std::collections::BTreeMap::new());
    if let Some(map) = metadata.as_object_mut() {
        map.remove("annotations");
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "DestinationRule",
        "metadata": metadata,
        "spec": {"host": service, "trafficPolicy": policy},
    })
}
