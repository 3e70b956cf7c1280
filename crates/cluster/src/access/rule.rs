//! A set of permissions, merged into as few RBAC rules as possible.

use std::collections::{BTreeMap, BTreeSet};

/// Group, resource, and resource name (empty for all).
type Target = (String, String, String);

/// A set of permissions: verbs by target.
#[derive(Clone, Debug, Default)]
pub(super) struct Rights(BTreeMap<Target, BTreeSet<String>>);

/// One rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Values of `apiGroups`.
    pub groups: Vec<String>,
    /// Values of `resources`.
    pub resources: Vec<String>,
    /// Values of `resourceNames`; empty for all names.
    pub names: Vec<String>,
    /// Values of `verbs`.
    pub verbs: Vec<String>,
}

impl Rights {
    pub(super) fn add<'a>(
        &mut self,
        group: &str,
        resource: &str,
        name: &str,
        verbs: impl IntoIterator<Item = &'a str>,
    ) {
        let held = self
            .0
            .entry((group.into(), resource.into(), name.into()))
            .or_default();
        held.extend(verbs.into_iter().map(ToOwned::to_owned));
    }

    pub(super) fn add_all(&mut self, table: &[(&str, &str, &str, &str)]) {
        for (group, resources, name, verbs) in table {
            for resource in resources.split(' ') {
                self.add(group, resource, name, verbs.split(' '));
            }
        }
    }

    /// Returns the permissions that `other` does not grant for all names.
    pub(super) fn without(mut self, other: &Self) -> Self {
        for ((group, resource, _), verbs) in &mut self.0 {
            let all_names = (group.clone(), resource.clone(), String::new());
            if let Some(held) = other.0.get(&all_names) {
                verbs.retain(|verb| !held.contains(verb));
            }
        }
        self.0.retain(|_, verbs| !verbs.is_empty());
        self
    }

    /// Returns the rules. Rules that differ in one dimension only are merged: first by names, then by
    /// resources, then by groups.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut names = BTreeMap::<_, BTreeSet<String>>::new();
        for ((group, resource, name), verbs) in &self.0 {
            let verbs = if verbs.contains("*") {
                BTreeSet::from(["*".to_owned()])
            } else {
                verbs.clone()
            };
            let limited = !name.is_empty();
            let joined = names
                .entry((group.clone(), resource.clone(), limited, verbs))
                .or_default();
            joined.extend(limited.then(|| name.clone()));
        }
        let mut resources = BTreeMap::<_, BTreeSet<String>>::new();
        for ((group, resource, _, verbs), names) in names {
            resources
                .entry((group, names, verbs))
                .or_default()
                .insert(resource);
        }
        let mut groups = BTreeMap::<_, BTreeSet<String>>::new();
        for ((group, names, verbs), resources) in resources {
            groups.entry((resources, names, verbs)).or_default().insert(group);
        }
        let list = |set: BTreeSet<String>| set.into_iter().collect();
        let mut rules: Vec<Rule> = groups
            .into_iter()
            .map(|((resources, names, verbs), groups)| Rule {
                groups: list(groups),
                resources: list(resources),
                names: list(names),
                verbs: list(verbs),
            })
            .collect();
        rules.sort_by(|a, b| (&a.groups, &a.resources, &a.names).cmp(&(&b.groups, &b.resources, &b.names)));
        rules
    }
}

/// Formats the `rules` of a role as YAML.
#[must_use]
pub fn to_yaml(rules: &[Rule]) -> String {
    let mut out = String::new();
    for rule in rules {
        let mut lead = "- ";
        let lists = [
            ("apiGroups", &rule.groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.names),
            ("verbs", &rule.verbs),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let quoted: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
            out.extend([lead, key, ": [", &quoted.join(", "), "]\n"]);
            lead = "  ";
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(table: &[(&str, &str, &str, &str)]) -> Rights {
        let mut rights = Rights::default();
        rights.add_all(table);
        rights
    }

    #[test]
    fn rules_that_differ_in_one_dimension_are_merged() {
        let rules = rights(&[
            ("", "a b", "", "get list"),
            ("x", "a b", "", "get list"),
            ("", "c", "one", "get"),
            ("", "c", "two", "get"),
        ])
        .rules();
        assert_eq!(
            to_yaml(&rules),
            "- apiGroups: [\"\"]\n  resources: [\"c\"]\n  resourceNames: [\"one\", \"two\"]\n  verbs: [\"get\"]\n\
             - apiGroups: [\"\", \"x\"]\n  resources: [\"a\", \"b\"]\n  verbs: [\"get\", \"list\"]\n"
        );
    }

    #[test]
    fn rights_of_another_role_are_not_repeated() {
        let own = rights(&[("", "a", "", "get"), ("", "b", "one", "get")]);
        let left = rights(&[
            ("", "a", "", "get list"),
            ("", "a", "one", "get"),
            ("", "b", "", "get"),
        ])
        .without(&own);
        assert_eq!(
            to_yaml(&left.rules()),
            "- apiGroups: [\"\"]\n  resources: [\"a\"]\n  verbs: [\"list\"]\n- apiGroups: [\"\"]\n  resources: [\"b\"]\n  verbs: [\"get\"]\n"
        );
    }

    #[test]
    fn a_verb_wildcard_replaces_other_verbs() {
        let rules = rights(&[("", "a", "", "* get")]).rules();
        assert_eq!(
            rules.first().map(|rule| rule.verbs.clone()),
            Some(vec!["*".to_owned()])
        );
    }
}
