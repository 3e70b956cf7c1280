//! Detects webhook configurations that inject namespaces with the label `istio-injection: enabled`.

use mainstay_api::names;
use serde_json::Value;

/// Whether any webhook of a `MutatingWebhookConfiguration` matches a pod without labels in a namespace whose
/// only label is `istio-injection: enabled`.
#[must_use]
pub fn injects_enabled_namespaces(configuration: &Value) -> bool {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array);
    let enabled = [(names::INJECTION_LABEL, names::INJECTION_ENABLED)];
    webhooks.into_iter().flatten().any(|webhook| {
        matches_selector(webhook.get("namespaceSelector"), &enabled)
            && matches_selector(webhook.get("objectSelector"), &[])
    })
}

/// Whether a label selector matches labels. A missing or empty selector matches everything.
fn matches_selector(selector: Option<&Value>, labels: &[(&str, &str)]) -> bool {
    let get = |key: &str| {
        labels
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    };
    let part = |name: &str| selector.and_then(|selector| selector.get(name));
    let equal = part("matchLabels").and_then(Value::as_object);
    let expressions = part("matchExpressions").and_then(Value::as_array);
    equal
        .into_iter()
        .flatten()
        .all(|(key, value)| get(key) == value.as_str())
        && expressions
            .into_iter()
            .flatten()
            .all(|expression| matches_expression(expression, get))
}

fn matches_expression<'a>(expression: &Value, get: impl Fn(&str) -> Option<&'a str>) -> bool {
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array);
    let found = get(text("key"));
    let is_listed = || values.is_some_and(|values| values.iter().any(|value| value.as_str() == found));
    match text("operator") {
        "In" => found.is_some() && is_listed(),
        "NotIn" => found.is_none() || !is_listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_injectors_of_enabled_namespaces_match() {
        let check = |webhook: Value, expected: bool| {
            let configuration = json!({"webhooks": [webhook]});
            assert_eq!(
                injects_enabled_namespaces(&configuration),
                expected,
                "{configuration}"
            );
        };
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let namespaces = |expressions: Value| json!({"namespaceSelector": {"matchExpressions": expressions}});
        let enabled = expression("istio-injection", "In", &["enabled"]);
        let no_revision = expression("istio.io/rev", "DoesNotExist", &[]);
        check(namespaces(json!([enabled])), true);
        check(namespaces(json!([enabled, no_revision])), true);
        check(
            namespaces(json!([expression("istio-injection", "Exists", &[])])),
            true,
        );
        check(
            namespaces(json!([expression("istio-injection", "NotIn", &["disabled"])])),
            true,
        );
        check(
            namespaces(json!([expression("istio-injection", "DoesNotExist", &[])])),
            false,
        );
        check(
            namespaces(json!([expression("istio.io/rev", "In", &["canary"])])),
            false,
        );
        check(
            namespaces(json!([expression("istio-injection", "Odd", &[])])),
            false,
        );
        check(
            json!({"namespaceSelector": {"matchLabels": {"istio-injection": "enabled"}}}),
            true,
        );
        check(
            json!({"namespaceSelector": {"matchLabels": {"istio-injection": "disabled"}}}),
            false,
        );
        check(json!({}), true);
        let on_request = expression("sidecar.istio.io/inject", "In", &["true"]);
        check(
            json!({"namespaceSelector": {"matchExpressions": [enabled]},
                "objectSelector": {"matchExpressions": [on_request]}}),
            false,
        );
        let unless_disabled = expression("sidecar.istio.io/inject", "NotIn", &["false"]);
        check(
            json!({"objectSelector": {"matchExpressions": [unless_disabled]}}),
            true,
        );
        assert!(!injects_enabled_namespaces(&json!({})));
    }
}
