//! What labels and annotations ask for: takes them, gives the name of a revision or a tag. Knows nothing of which exist.

use std::collections::BTreeMap;

use mainstay_api::names::{
    DEFAULT_REVISION, INJECT_LABEL, INJECTION_ENABLED, INJECTION_LABEL, REVISION_LABEL,
};

/// Labels or annotations as Kubernetes keeps them.
pub type Labels = BTreeMap<String, String>;

/// What a namespace asks for: `istio-injection: enabled` beats a revision, as in the webhooks' selectors.
#[must_use]
pub fn namespace_reference(labels: &Labels) -> Option<&str> {
    match word(labels, INJECTION_LABEL) {
        Some(INJECTION_ENABLED) => Some(DEFAULT_REVISION),
        _ => word(labels, REVISION_LABEL),
    }
}

/// What a pod asks for: an explicit "false" beats everything, a revision beats a plain "true".
#[must_use]
pub fn pod_reference(labels: &Labels) -> Option<&str> {
    match (word(labels, INJECT_LABEL), word(labels, REVISION_LABEL)) {
        (Some("false"), _) => None,
        (_, Some(revision)) => Some(revision),
        (Some("true"), None) => Some(DEFAULT_REVISION),
        _ => None,
    }
}

/// Who injected a pod: always a revision, never a tag.
#[must_use]
pub fn injected_revision(annotations: &Labels) -> Option<&str> {
    word(annotations, REVISION_LABEL)
}

fn word<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
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
    fn what_a_namespace_asks_for() {
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
    fn what_a_pod_asks_for() {
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
    fn who_injected_a_pod() {
        assert_eq!(injected_revision(&labels("")), None);
        assert_eq!(
            injected_revision(&labels("istio.io/rev=default")),
            Some("default")
        );
    }
}
