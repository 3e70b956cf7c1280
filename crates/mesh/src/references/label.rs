//! Parses labels and annotations into the name of a revision or tag, which may not exist.

use std::collections::BTreeMap;

use mainstay_api::names::{
    DEFAULT_REVISION, INJECT_LABEL, INJECTION_ENABLED, INJECTION_LABEL, REVISION_LABEL,
};

/// Labels or annotations.
pub type Labels = BTreeMap<String, String>;

/// Returns the revision or tag that the labels of a namespace request. `istio-injection: enabled` takes
/// precedence over a revision, as in the selectors of the webhooks.
#[must_use]
pub fn namespace_reference(labels: &Labels) -> Option<&str> {
    match non_empty_label(labels, INJECTION_LABEL) {
        Some(INJECTION_ENABLED) => Some(DEFAULT_REVISION),
        _ => non_empty_label(labels, REVISION_LABEL),
    }
}

/// Returns the revision or tag that the labels of a pod request. `sidecar.istio.io/inject: "false"` takes
/// precedence over a revision, and a revision takes precedence over `"true"`.
#[must_use]
pub fn pod_reference(labels: &Labels) -> Option<&str> {
    match (
        non_empty_label(labels, INJECT_LABEL),
        non_empty_label(labels, REVISION_LABEL),
    ) {
        (Some("false"), _) => None,
        (_, Some(revision)) => Some(revision),
        (Some("true"), None) => Some(DEFAULT_REVISION),
        _ => None,
    }
}

/// Returns the revision that injected a pod. It is never a tag.
#[must_use]
pub fn injected_revision(annotations: &Labels) -> Option<&str> {
    non_empty_label(annotations, REVISION_LABEL)
}

fn non_empty_label<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
    labels
        .get(key)
        .map(String::as_str)
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.into(), value.into())).collect()
    }

    #[test]
    fn references_of_namespaces() {
        let check = |text: &str, expected| assert_eq!(namespace_reference(&labels(text)), expected, "{text}");
        check("", None);
        check("istio-injection=enabled", Some("default"));
        check("istio.io/rev=my-rev", Some("my-rev"));
        check("istio-injection=enabled istio.io/rev=my-rev", Some("default"));
        check("istio-injection=disabled istio.io/rev=my-rev", Some("my-rev"));
        check("istio-injection=disabled", None);
        check("istio.io/rev=", None);
    }

    #[test]
    fn references_of_pods() {
        let check = |text: &str, expected| assert_eq!(pod_reference(&labels(text)), expected, "{text}");
        check("", None);
        check("sidecar.istio.io/inject=false", None);
        check("sidecar.istio.io/inject=true", Some("default"));
        check("istio.io/rev=my-rev", Some("my-rev"));
        check("istio.io/rev=my-rev sidecar.istio.io/inject=false", None);
        check("istio.io/rev=my-rev sidecar.istio.io/inject=true", Some("my-rev"));
        check("sidecar.istio.io/inject=maybe", None);
    }

    #[test]
    fn injected_revisions() {
        assert_eq!(injected_revision(&labels("")), None);
        assert_eq!(
            injected_revision(&labels("istio.io/rev=default")),
            Some("default")
        );
    }
}
