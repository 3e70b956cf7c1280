//! Field selectors, such as `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use super::SelectorError;
use crate::resource::{Resource, Shape};

/// Selectable fields per table, in addition to name and namespace.
const KNOWN_FIELDS: &[(&str, &[&str])] = &[
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    ("nodes", &["spec.unschedulable"]),
    ("replicationcontrollers", &["status.replicas"]),
    ("replicasets.apps", &["status.replicas"]),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("namespaces", &["status.phase"]),
    ("secrets", &["type"]),
    ("services", &["spec.clusterIP", "spec.type"]),
    ("jobs.batch", &["status.successful"]),
    (
        "certificatesigningrequests.certificates.k8s.io",
        &["spec.signerName"],
    ),
];

/// Returns the selectable fields of a builtin table, without name and namespace.
pub(super) fn known_fields(table: &str) -> &'static [&'static str] {
    KNOWN_FIELDS
        .iter()
        .find(|(name, _)| *name == table)
        .map_or(&[], |(_, paths)| paths)
}

/// Returns the text of a field for comparison. A missing value has the text of its zero value.
pub(super) fn field_text(value: &Value, path: &str) -> String {
    if path == "source" {
        return crate::tree::text(value, &["source", "component"]).to_owned();
    }
    let found = path
        .trim_start_matches('.')
        .split('.')
        .try_fold(value, |at, key| at.as_object()?.get(key));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ if matches!(path, "spec.hostNetwork" | "spec.unschedulable") => "false".into(),
        _ if matches!(path, "status.replicas" | "status.successful") => "0".into(),
        _ => String::new(),
    }
}

/// A conjunction of comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses a selector. The error contains the API server's message.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let wrong = || SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'"));
            let term = parse_term(part).ok_or_else(wrong)?;
            terms.push(Term {
                value: unescape(&term.value).ok_or_else(wrong)?,
                ..term
            });
        }
        Ok(Self(terms))
    }

    /// Returns whether the selector matches every object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name that the selector requires, if it requires one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let term = self
            .0
            .iter()
            .find(|term| term.equal && term.path == "metadata.name")?;
        Some(&term.value)
    }

    /// Returns whether an object with these fields matches.
    #[must_use]
    pub fn matches<'a>(&self, field: &dyn Fn(&str) -> &'a str) -> bool {
        self.0
            .iter()
            .all(|term| (field(&term.path) == term.value) == term.equal)
    }

    /// Checks that `resource` supports all fields of the selector.
    pub(super) fn check(&self, resource: &Resource) -> Result<(), SelectorError> {
        self.0
            .iter()
            .try_for_each(|term| check_field(resource, &term.path))
    }
}

fn check_field(resource: &Resource, path: &str) -> Result<(), SelectorError> {
    let common = path == "metadata.name" || (path == "metadata.namespace" && resource.namespaced);
    let own = match &resource.shape {
        Shape::Custom(custom) => custom
            .selectable
            .iter()
            .any(|one| one.trim_start_matches('.') == path),
        Shape::Builtin(_) => known_fields(&resource.table).contains(&path),
    };
    if common
        || own
        || path == "metadata.namespace"
            && matches!(resource.shape, Shape::Builtin(_))
            && known_fields(&resource.table).is_empty()
    {
        return Ok(());
    }
    let message = match (&*resource.group, &*resource.kind) {
        ("batch", "Job") => format!("field label {path:?} not supported for Job"),
        ("apps", "ReplicaSet") => format!("field label not supported: {path}"),
        _ if matches!(resource.shape, Shape::Custom(_)) || !known_fields(&resource.table).is_empty() => {
            format!("field label not supported: {path}")
        }
        _ => {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    };
    Err(SelectorError(message))
}

/// Splits a selector into terms at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(text.get(start..at).unwrap_or(""));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

fn parse_term(part: &str) -> Option<Term> {
    let at = part.find(['=', '!'])?;
    let (path, rest) = part.split_at_checked(at)?;
    let (value, equal) = match rest {
        _ if rest.starts_with("!=") => (rest.get(2..)?, false),
        _ if rest.starts_with("==") => (rest.get(2..)?, true),
        _ if rest.starts_with('=') => (rest.get(1..)?, true),
        _ => return None,
    };
    Some(Term {
        path: path.into(),
        value: value.into(),
        equal,
    })
}

fn unescape(text: &str) -> Option<String> {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped @ ('\\' | ',' | '=') => out.push(escaped),
                _ => return None,
            },
            ',' | '=' => return None,
            plain => out.push(plain),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match FieldSelector::parse(text) {
            Ok(FieldSelector(terms)) => {
                let terms = terms
                    .iter()
                    .map(|t| format!("{}{}{}", t.path, if t.equal { "=" } else { "!=" }, t.value));
                terms.collect::<Vec<_>>().join(";")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn parses_terms() {
        check("", "");
        check(
            "metadata.name=a,status.phase!=Running",
            "metadata.name=a;status.phase!=Running",
        );
        check("a==b", "a=b");
        check(r"a=b\,c", "a=b,c");
        check("a", "invalid selector: 'a'; can't understand 'a'");
        check("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'");
        check("a=b=c", "invalid selector: 'a=b=c'; can't understand 'a=b=c'");
    }
}
