//! Who keeps something in use: takes the index, gives counts and names.

use std::collections::BTreeSet;

use mainstay_api::{IstioRevision, names};
use mainstay_mesh::Snapshot;
use mainstay_mesh::references::{ReferenceCause, ReferrerKey};
use mainstay_mesh::snapshot::Source;
use serde::Serialize;

/// How many refer to something, and for how many reasons.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Use {
    pub(crate) tags: usize,
    pub(crate) namespaces: usize,
    pub(crate) pods: usize,
    /// Every namespace that says nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_default: bool,
    /// Namespaces or pods could not be read: there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) incomplete: bool,
}

impl Use {
    /// Of a revision: tags on it, labels that name it, proxies of it.
    pub(crate) fn of_revision(snapshot: &Snapshot, revision: &IstioRevision) -> Self {
        let by_default =
            revision.name() == names::DEFAULT_REVISION && revision.spec.enables_namespaces_by_default();
        Self {
            by_default,
            incomplete: is_incomplete(snapshot),
            ..Self::counted(snapshot, revision.name())
        }
    }

    /// A pod whose labels choose the revision and which runs its proxy is one pod.
    fn counted(snapshot: &Snapshot, name: &str) -> Self {
        let counts = snapshot.references().counts(name);
        let all = snapshot.references().referrers(name);
        let pods: BTreeSet<&ReferrerKey> = all
            .iter()
            .map(|(key, _)| key)
            .filter(|key| matches!(key, ReferrerKey::Pod(..)))
            .collect();
        Self {
            tags: counts.tags,
            namespaces: counts.namespaces,
            pods: pods.len(),
            ..Self::default()
        }
    }

    /// Of a tag: labels only. Pods that run a proxy name its revision, never the tag.
    pub(crate) fn of_tag(snapshot: &Snapshot, name: &str) -> Self {
        let counts = snapshot.references().counts(name);
        Self {
            namespaces: counts.namespaces,
            pods: counts.labelled_pods,
            incomplete: is_incomplete(snapshot),
            ..Self::default()
        }
    }
}

fn is_incomplete(snapshot: &Snapshot) -> bool {
    [Source::Namespaces, Source::Pods]
        .into_iter()
        .any(|source| snapshot.readable(source).is_err())
}

impl std::fmt::Display for Use {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = [
            (self.tags, "tag"),
            (self.namespaces, "namespace"),
            (self.pods, "pod"),
        ];
        let mut told: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
            .collect();
        if self.by_default {
            told.push("every unlabelled namespace".to_owned());
        }
        if self.incomplete {
            told.push(
                if told.is_empty() {
                    "not known"
                } else {
                    "perhaps more"
                }
                .to_owned(),
            );
        }
        f.write_str(if told.is_empty() { "-" } else { "" })?;
        f.write_str(&told.join(", "))
    }
}

/// Everybody who refers to a revision, and why; those who do so through a tag after the tag.
pub(crate) fn referrers(snapshot: &Snapshot, name: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (key, why) in snapshot.references().referrers(name) {
        out.push((key.to_string(), why.to_string()));
        if let ReferrerKey::Tag(tag) = &key {
            let through = snapshot.references().referrers(tag);
            let asking = through
                .iter()
                .filter(|(_, why)| *why != ReferenceCause::RunningProxy);
            out.extend(asking.map(|(key, why)| (key.to_string(), format!("{} {tag}", through_tag(*why)))));
        }
    }
    out
}

fn through_tag(why: ReferenceCause) -> &'static str {
    match why {
        ReferenceCause::PodLabel => "the pod's labels choose the tag",
        _ => "the namespace's labels choose the tag",
    }
}

/// The first few by name, and how many more.
pub(crate) fn named(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_words() {
        let used = |tags, namespaces, pods, by_default| {
            Use {
                tags,
                namespaces,
                pods,
                by_default,
                incomplete: false,
            }
            .to_string()
        };
        assert_eq!(used(0, 0, 0, false), "-");
        assert_eq!(used(1, 0, 2, false), "1 tag, 2 pods");
        assert_eq!(used(0, 1, 0, true), "1 namespace, every unlabelled namespace");
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(named(&names, 2), "a, b and 1 more");
        assert_eq!(named(&names, 3), "a, b, c");
    }
}
