//! Finds injection webhooks that would handle the same pod.

use std::collections::BTreeSet;

use mainstay_yaml::{Map, Value};

const REVISION: &str = "istio.io/rev";

/// Two webhooks that match the same pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overlap {
    /// `CONFIGURATION/WEBHOOK`.
    pub first: String,
    /// `CONFIGURATION/WEBHOOK`.
    pub second: String,
    /// Labels of a namespace and a pod that both webhooks match.
    pub example: String,
}

/// Key and value of a label.
type Label = (String, String);

/// Returns every pair of injection webhooks in `configurations` that match the same labels, with the first
/// such labels. Configurations of other projects are ignored.
#[must_use]
pub fn find_overlaps(configurations: &[Value]) -> Vec<Overlap> {
    let ours: Vec<&Value> = configurations.iter().filter(|one| is_injector(one)).collect();
    let revisions: BTreeSet<String> = ours.iter().flat_map(|one| revisions(one)).collect();
    let hooks: Vec<(String, &Value)> = ours.iter().flat_map(|one| hooks(one)).collect();
    let namespaces = label_combinations("istio-injection", ["enabled", "disabled"], &revisions);
    let pods = label_combinations("sidecar.istio.io/inject", ["true", "false"], &revisions);
    let mut found: Vec<Overlap> = Vec::new();
    for namespace in &namespaces {
        for pod in &pods {
            let matching = hooks
                .iter()
                .filter(|(_, hook)| matches_both(hook, namespace, pod));
            let names: Vec<&str> = matching.map(|(name, _)| name.as_str()).collect();
            add_pairs(&names, &describe_labels(namespace, pod), &mut found);
        }
    }
    found.sort();
    found
}

fn add_pairs(names: &[&str], example: &str, found: &mut Vec<Overlap>) {
    for (index, first) in names.iter().enumerate() {
        for second in names.iter().skip(index + 1) {
            if !found
                .iter()
                .any(|one| one.first == *first && one.second == *second)
            {
                found.push(Overlap {
                    first: (*first).to_owned(),
                    second: (*second).to_owned(),
                    example: example.to_owned(),
                });
            }
        }
    }
}

fn describe_labels(namespace: &[Label], pod: &[Label]) -> String {
    let show = |labels: &[Label]| match labels {
        [] => "no labels".to_owned(),
        labels => labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(","),
    };
    format!("namespace {}, pod {}", show(namespace), show(pod))
}

fn is_injector(configuration: &Value) -> bool {
    let is_istio = |hook: &Value| {
        let name = hook.get("name").and_then(Value::as_str);
        name.is_some_and(|name| name.ends_with("istio.io"))
    };
    !revisions(configuration).is_empty() || list(configuration, "webhooks").iter().any(is_istio)
}

/// Returns all revisions in the label or the selectors of a configuration.
fn revisions(configuration: &Value) -> BTreeSet<String> {
    let label = configuration.at(&["metadata", "labels", REVISION]);
    let mut found: BTreeSet<String> = label
        .and_then(Value::as_str)
        .map(ToOwned::to_owned)
        .into_iter()
        .collect();
    for hook in list(configuration, "webhooks") {
        for selector in ["namespaceSelector", "objectSelector"] {
            found.extend(hook.get(selector).into_iter().flat_map(selected_revisions));
        }
    }
    found
}

fn selected_revisions(selector: &Value) -> Vec<String> {
    let label = selector.at(&["matchLabels", REVISION]).and_then(Value::as_str);
    let expressions = list(selector, "matchExpressions").iter();
    let about = expressions.filter(|one| one.get("key").and_then(Value::as_str) == Some(REVISION));
    let values = about
        .flat_map(|one| list(one, "values"))
        .filter_map(Value::as_str);
    label.into_iter().chain(values).map(ToOwned::to_owned).collect()
}

fn hooks(configuration: &Value) -> Vec<(String, &Value)> {
    let name = configuration
        .at(&["metadata", "name"])
        .and_then(Value::as_str)
        .unwrap_or_default();
    let hook_name = |hook: &Value| {
        hook.get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let hooks = list(configuration, "webhooks").iter();
    hooks
        .map(|hook| (format!("{name}/{}", hook_name(hook)), hook))
        .collect()
}

/// Returns every combination of the label `switch` (absent or one of two values) and the revision label
/// (absent or one of `revisions`).
fn label_combinations(switch: &str, values: [&str; 2], revisions: &BTreeSet<String>) -> Vec<Vec<Label>> {
    let switches = [None, Some(values[0]), Some(values[1])];
    let revisions = std::iter::once(None).chain(revisions.iter().map(Some));
    let combine = |revision: Option<&String>| {
        switches.map(|value| {
            let switch = value.map(|value| (switch.to_owned(), value.to_owned()));
            let revision = revision.map(|revision| (REVISION.to_owned(), revision.clone()));
            switch.into_iter().chain(revision).collect::<Vec<_>>()
        })
    };
    revisions.flat_map(combine).collect()
}

fn matches_both(hook: &Value, namespace: &[Label], pod: &[Label]) -> bool {
    matches_selector(hook.get("namespaceSelector"), namespace)
        && matches_selector(hook.get("objectSelector"), pod)
}

/// Evaluates a label selector. A missing selector matches all labels.
fn matches_selector(selector: Option<&Value>, labels: &[Label]) -> bool {
    let Some(selector) = selector else { return true };
    let value = |key: &str| {
        labels
            .iter()
            .find(|label| label.0 == key)
            .map(|label| label.1.as_str())
    };
    let empty = Map::new();
    let equal = selector
        .get("matchLabels")
        .and_then(Value::as_map)
        .unwrap_or(&empty)
        .iter();
    let mut equal = equal.map(|(key, wanted)| value(key) == wanted.as_str());
    let mut expressions = list(selector, "matchExpressions").iter();
    equal.all(|it| it) && expressions.all(|one| matches_expression(one, value))
}

fn matches_expression<'a>(expression: &Value, value: impl Fn(&str) -> Option<&'a str>) -> bool {
    let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
    let found = value(text("key"));
    let is_listed = || {
        let mut values = list(expression, "values").iter().filter_map(Value::as_str);
        values.any(|listed| Some(listed) == found)
    };
    match text("operator") {
        "In" => found.is_some() && is_listed(),
        "NotIn" => found.is_none() || !is_listed(),
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_list).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_yaml::{Budget, parse};

    fn configuration(name: &str, revision: &str, hooks: &str) -> Value {
        let text = format!(
            "metadata: {{name: {name}, labels: {{istio.io/rev: {revision}}}}}\nwebhooks: [{hooks}]\n"
        );
        parse(text.as_bytes(), &Budget::default()).unwrap()
    }

    #[test]
    fn two_default_injectors_overlap() {
        let hook = "{name: namespace.sidecar-injector.istio.io, namespaceSelector: {matchLabels: {istio-injection: enabled}}}";
        let one = configuration("one", "default", hook);
        let two = configuration("two", "canary", hook);
        let found = find_overlaps(&[one.clone(), two]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].first, "one/namespace.sidecar-injector.istio.io");
        assert!(
            found[0].example.starts_with("namespace istio-injection=enabled"),
            "{found:?}"
        );
        assert_eq!(find_overlaps(&[one]), []);
    }

    #[test]
    fn a_deactivated_injector_and_distinct_revisions_do_not_overlap() {
        let never =
            "{name: x.istio.io, namespaceSelector: {matchLabels: {istio.io/deactivated: never-match}}}";
        let all = "{name: y.istio.io}";
        assert_eq!(
            find_overlaps(&[configuration("a", "default", never), configuration("b", "b", all)]),
            []
        );
        let of = |revision: &str| {
            let expression = format!("{{key: istio.io/rev, operator: In, values: [{revision}]}}");
            let hook =
                format!("{{name: r.istio.io, namespaceSelector: {{matchExpressions: [{expression}]}}}}");
            configuration(revision, revision, &hook)
        };
        assert_eq!(find_overlaps(&[of("a"), of("b")]), []);
        assert_eq!(find_overlaps(&[of("a"), of("a")]).len(), 1);
    }

    #[test]
    fn other_projects_are_ignored() {
        let other = |name: &str| {
            let text = format!("metadata: {{name: {name}}}\nwebhooks: [{{name: pods.example.org}}]\n");
            parse(text.as_bytes(), &Budget::default()).unwrap()
        };
        assert_eq!(find_overlaps(&[other("a"), other("b")]), []);
    }
}
