//! Renders the Kubernetes Ingress. Requests are distributed by replicas, and each revision has a preview
//! path.

use mainstay_api::delivery::HttpMatch;
use serde_json::{Map, Value, json};

use super::{Condition, RouteBackend, RouteContext, Rule, condition};
use crate::names::apex_service_name;

/// Whether requests of a rule are sent to the Service for all revisions.
pub(super) fn uses_apex(rule: &Rule) -> bool {
    !rule.matches.is_empty() && rule.backends.len() > 1
}

pub(super) fn ingress(context: &RouteContext<'_>, metadata: &Value, rules: &[&Rule]) -> Value {
    let traffic = context.traffic;
    let paths: Vec<Value> = rules.iter().flat_map(|rule| paths(context, rule)).collect();
    let http = json!({"paths": paths});
    let rules = if traffic.hosts.is_empty() {
        vec![json!({"http": http})]
    } else {
        let rule = |host: &String| json!({"host": host, "http": http});
        traffic.hosts.iter().map(rule).collect()
    };
    let mut spec = Map::from_iter([("rules".to_owned(), Value::Array(rules))]);
    if let Some(class) = &traffic.ingress_class_name {
        spec.insert("ingressClassName".to_owned(), json!(class));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": spec,
    })
}

fn paths(context: &RouteContext<'_>, rule: &Rule) -> Vec<Value> {
    let active = || rule.backends.iter().filter(|backend| backend.weight > 0);
    if rule.matches.is_empty() {
        let preview = |backend: &RouteBackend| {
            let path = format!("/{}", preview_path(&backend.revision));
            path_rule(&path, "Prefix", &backend.service, backend.port)
        };
        return active().map(preview).collect();
    }
    let Some(first) = active().next() else {
        return Vec::new();
    };
    let service = if uses_apex(rule) {
        apex_service_name(context.deployment, &first.component)
    } else {
        first.service.clone()
    };
    let path = |request: &HttpMatch| {
        let (kind, path) = match request.uri.as_ref().and_then(condition) {
            Some(Condition::Exact(path)) => ("Exact", path),
            Some(Condition::Prefix(path)) => ("Prefix", path),
            Some(Condition::Regex(path)) => ("ImplementationSpecific", path),
            None => ("Prefix", "/"),
        };
        path_rule(path, kind, &service, first.port)
    };
    rule.matches.iter().map(path).collect()
}

/// Returns the preview path of a revision: the part of its name after the last dash.
fn preview_path(revision: &str) -> &str {
    revision.rsplit('-').next().unwrap_or(revision)
}

fn path_rule(path: &str, kind: &str, service: &str, port: u16) -> Value {
    json!({
        "path": path,
        "pathType": kind,
        "backend": {"service": {"name": service, "port": {"number": port}}},
    })
}
