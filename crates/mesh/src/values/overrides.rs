//! Sets the values that a user cannot set: name and namespace of the revision.

use mainstay_api::{Values, names};

use super::merge::map_at;

/// Sets name and namespace, and removes `defaultRevision`: only a revision named `default` installs the
/// default validator.
pub(super) fn apply(revision: &str, namespace: &str, values: &mut Values) {
    // The chart creates selectors for `istio-injection` only if the revision is empty.
    let revision = if revision == names::DEFAULT_REVISION {
        ""
    } else {
        revision
    };
    values.insert("revision".into(), revision.into());
    if let Some(global) = map_at(values, &["global"]) {
        global.insert("istioNamespace".into(), namespace.into());
    }
    values.remove("defaultRevision");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    fn check(name: &str, revision: &str, user: &str, expected: &str) {
        let mut values = map(user);
        apply(revision, "ns1", &mut values);
        assert_eq!(to_json(&values), expected, "{name}");
    }

    #[test]
    fn users_cannot_override_name_and_namespace() {
        let named = r#"{"global":{"istioNamespace":"ns1"},"revision":"my-revision"}"#;
        check(
            "default-revision",
            "default",
            "{}",
            r#"{"global":{"istioNamespace":"ns1"},"revision":""}"#,
        );
        check("non-default-revision", "my-revision", "{}", named);
        check(
            "revision-already-set",
            "my-revision",
            r#"{"revision":"this-should-be-overridden"}"#,
            named,
        );
        check(
            "namespace-already-set",
            "my-revision",
            r#"{"global":{"istioNamespace":"this-should-be-overridden"}}"#,
            named,
        );
        check(
            "defaultRevision-is-ignored-when-set-by-user",
            "my-revision",
            r#"{"defaultRevision":"my-revision"}"#,
            named,
        );
    }
}
