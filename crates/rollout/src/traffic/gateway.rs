//! Renders the `HTTPRoute` of Gateway API.

use mainstay_api::delivery::{HttpMatch, StringMatch};
use serde_json::{Map, Value, json};

use super::{Condition, RouteBackend, RouteContext, Rule, affinity_cookie, condition, with_affinity};

pub(super) fn http_route(context: &RouteContext<'_>, metadata: &Value, rules: &[&Rule]) -> Value {
    let traffic = context.traffic;
    let parent = |reference: &mainstay_api::delivery::GatewayReference| {
        let mut parent = Map::from_iter([("name".to_owned(), json!(reference.name))]);
        if let Some(namespace) = &reference.namespace {
            parent.insert("namespace".to_owned(), json!(namespace));
        }
        if let Some(section) = &reference.section_name {
            parent.insert("sectionName".to_owned(), json!(section));
        }
        Value::Object(parent)
    };
    let parents = if traffic.gateway_refs.is_empty() {
        vec![json!({"group": "", "kind": "Service", "name": context.apex_service(rules)})]
    } else {
        traffic.gateway_refs.iter().map(parent).collect()
    };
    let rules = with_affinity(rules, traffic.session_affinity.as_ref());
    let rules: Vec<Value> = rules.iter().map(|rule| route_rule(context, rule)).collect();
    let mut spec = Map::from_iter([
        ("parentRefs".to_owned(), Value::Array(parents)),
        ("rules".to_owned(), Value::Array(rules)),
    ]);
    if !traffic.hosts.is_empty() && !traffic.gateway_refs.is_empty() {
        spec.insert("hostnames".to_owned(), json!(traffic.hosts));
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": spec,
    })
}

fn route_rule(context: &RouteContext<'_>, rule: &Rule) -> Value {
    let backends = rule
        .backends
        .iter()
        .filter(|backend| backend.weight > 0)
        .map(|backend| backend_reference(context, backend));
    let mut out = Map::from_iter([("backendRefs".to_owned(), Value::Array(backends.collect()))]);
    if !rule.matches.is_empty() {
        let matches: Vec<Value> = rule.matches.iter().map(request_match).collect();
        out.insert("matches".to_owned(), Value::Array(matches));
    }
    if let Some(mirror) = &rule.mirror {
        let target = json!({"name": mirror.service, "port": mirror.port});
        let mut request = Map::from_iter([("backendRef".to_owned(), target)]);
        if mirror.percent < 100 {
            request.insert("percent".to_owned(), json!(mirror.percent));
        }
        let filter = json!({"type": "RequestMirror", "requestMirror": request});
        out.insert("filters".to_owned(), json!([filter]));
    }
    Value::Object(out)
}

fn backend_reference(context: &RouteContext<'_>, backend: &RouteBackend) -> Value {
    let mut reference = json!({"name": backend.service, "port": backend.port, "weight": backend.weight});
    if let (Some(affinity), Value::Object(map)) = (&context.traffic.session_affinity, &mut reference) {
        let header = json!({"name": "Set-Cookie", "value": affinity_cookie(affinity, backend)});
        let filter = json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [header]}});
        map.insert("filters".to_owned(), json!([filter]));
    }
    reference
}

fn request_match(request: &HttpMatch) -> Value {
    let mut out = Map::new();
    if let Some(path) = request.uri.as_ref().and_then(path_match) {
        out.insert("path".to_owned(), path);
    }
    if let Some(method) = &request.method {
        out.insert("method".to_owned(), json!(method));
    }
    let headers: Vec<Value> = request
        .headers
        .iter()
        .filter_map(|(name, value)| header_match(name, value))
        .collect();
    if !headers.is_empty() {
        out.insert("headers".to_owned(), Value::Array(headers));
    }
    Value::Object(out)
}

fn path_match(text: &StringMatch) -> Option<Value> {
    Some(match condition(text)? {
        Condition::Exact(value) => json!({"type": "Exact", "value": value}),
        Condition::Prefix(value) => json!({"type": "PathPrefix", "value": value}),
        Condition::Regex(value) => json!({"type": "RegularExpression", "value": value}),
    })
}

fn header_match(name: &str, text: &StringMatch) -> Option<Value> {
    let (kind, value) = match condition(text)? {
        Condition::Exact(value) => ("Exact", value.to_owned()),
        Condition::Prefix(value) => ("RegularExpression", format!("^{}.*$", escape(value))),
        Condition::Regex(value) => ("RegularExpression", value.to_owned()),
    };
    Some(json!({"type": kind, "name": name, "value": value}))
}

/// Escapes characters with a special meaning in regular expressions.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(escape("a.b*c"), r"a\.b\*c");
    }
}
