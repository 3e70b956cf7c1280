//! RBAC policy rules: matching of requests, comparison of rules, and their text in errors.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Attributes;
use crate::tree;

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Allowed verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups of the resources, or `*`. The core group is the empty string.
    pub groups: Vec<String>,
    /// Resources, such as `pods` or `pods/status`.
    pub resources: Vec<String>,
    /// Object names. Empty for all objects.
    pub names: Vec<String>,
    /// URL paths of non-resource requests. A trailing `*` matches any suffix.
    pub urls: Vec<String>,
}

const ALL: &str = "*";

impl Rule {
    /// Parses a `PolicyRule`.
    #[must_use]
    pub fn parse(value: &Value) -> Self {
        let texts = |key| texts(tree::list(value, &[key]));
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// Parses the rules of a role.
    #[must_use]
    pub fn parse_all(role: &Value) -> Vec<Self> {
        tree::list(role, &["rules"]).iter().map(Self::parse).collect()
    }

    /// Returns rules that allow every request.
    #[must_use]
    pub fn full_authority() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Self {
                verbs: all(),
                groups: all(),
                resources: all(),
                ..Self::default()
            },
            Self {
                verbs: all(),
                urls: all(),
                ..Self::default()
            },
        ]
    }

    /// Returns the representation in reviews.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let fields = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        let kept = fields.into_iter().filter(|(_, texts)| !texts.is_empty());
        Value::Object(
            kept.map(|(key, texts)| (key.to_owned(), texts.clone().into()))
                .collect::<Map<_, _>>(),
        )
    }

    /// Returns whether the rule allows the request.
    #[must_use]
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !contains_or_all(&self.verbs, attributes.verb) {
            return false;
        }
        if attributes.is_path() {
            return self.urls.iter().any(|url| url_covers(url, attributes.path));
        }
        contains_or_all(&self.groups, attributes.group)
            && self
                .resources
                .iter()
                .any(|resource| matches_resource(resource, attributes))
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }

    /// Returns whether the rule covers `part`, which contains at most one verb, group, resource, name and
    /// URL.
    fn covers(&self, part: &Self) -> bool {
        let within = |own: &[String], parts: &[String]| parts.iter().all(|one| contains_or_all(own, one));
        within(&self.verbs, &part.verbs)
            && within(&self.groups, &part.groups)
            && part.resources.iter().all(|one| self.covers_resource(one))
            && (self.names.is_empty()
                || !part.names.is_empty() && part.names.iter().all(|one| self.names.contains(one)))
            && part
                .urls
                .iter()
                .all(|one| self.urls.iter().any(|own| url_covers(own, one)))
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let covers_subresource = |own: &str| {
            let sub = resource.split_once('/').map(|(_, sub)| sub);
            sub.is_some() && own.strip_prefix("*/") == sub
        };
        self.resources
            .iter()
            .any(|own| own == ALL || own == resource || covers_subresource(own))
    }

    /// Splits the rule into parts that contain at most one verb, group, resource, name and URL each.
    fn split(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let one = |text: &String| vec![text.clone()];
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        parts.push(part.clone());
                    }
                    parts.extend(self.names.iter().map(|name| Self {
                        names: one(name),
                        ..part.clone()
                    }));
                }
            }
        }
        for url in &self.urls {
            parts.extend(self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                urls: one(url),
                ..Self::default()
            }));
        }
        parts
    }

    /// Formats the rule for errors.
    #[must_use]
    fn compact_text(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let kept = fields.into_iter().filter(|(_, texts)| !texts.is_empty());
        let shown: Vec<String> = kept
            .map(|(key, texts)| format!("{key}:{}", go_list(texts)))
            .collect();
        format!("{{{}}}", shown.join(", "))
    }
}

/// Returns the parts of `required` that no rule of `own` covers, as sorted lines with one resource each.
#[must_use]
pub(super) fn missing_permissions(own: &[Rule], required: &[Rule]) -> Vec<String> {
    let mut by_resource: BTreeMap<[Vec<String>; 3], Rule> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in required.iter().flat_map(Rule::split) {
        if own.iter().any(|rule| rule.covers(&part)) {
            continue;
        }
        if !part.urls.is_empty() {
            lines.insert(part.compact_text());
            continue;
        }
        let key = [part.groups.clone(), part.resources.clone(), part.names.clone()];
        by_resource
            .entry(key)
            .and_modify(|rule| rule.verbs.extend(part.verbs.iter().cloned()))
            .or_insert(part);
    }
    lines.extend(by_resource.values().map(Rule::compact_text));
    lines.into_iter().collect()
}

/// Formats a list like Go's `%q`.
#[must_use]
pub(super) fn go_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Returns the strings in a list of values.
#[must_use]
pub(crate) fn texts(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn contains_or_all(set: &[String], one: &str) -> bool {
    set.iter().any(|item| item == ALL || item == one)
}

fn matches_resource(rule: &str, attributes: &Attributes<'_>) -> bool {
    if rule == ALL {
        return true;
    }
    if attributes.subresource.is_empty() {
        return rule == attributes.resource;
    }
    let (resource, sub) = rule.split_once('/').unwrap_or((rule, ""));
    sub == attributes.subresource && (resource == ALL || resource == attributes.resource)
}

fn url_covers(own: &str, path: &str) -> bool {
    own == path || own.ends_with(ALL) && path.starts_with(own.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(value: &Value) -> Vec<Rule> {
        Rule::parse_all(&json!({"rules": value}))
    }

    #[test]
    fn missing_permissions_are_grouped_by_resource() {
        let own =
            rules(&json!([{"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get", "list"]}]));
        let required = rules(&json!([
            {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "watch"]},
            {"apiGroups": [""], "resources": ["things/scale"], "verbs": ["get"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ]));
        assert_eq!(
            missing_permissions(&own, &required),
            [
                "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\"]}",
                "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"watch\"]}",
                "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
            ]
        );
        assert!(missing_permissions(&Rule::full_authority(), &required).is_empty());
    }

    #[test]
    fn a_rule_with_names_covers_only_these_objects() {
        let own = rules(
            &json!([{"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"]}]),
        );
        let all = rules(&json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
        assert_eq!(missing_permissions(&own, &own).len(), 0);
        assert_eq!(missing_permissions(&own, &all).len(), 1);
        assert_eq!(missing_permissions(&all, &own).len(), 0);
    }
}
