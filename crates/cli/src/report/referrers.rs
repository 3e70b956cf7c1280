//! Objects that keep a revision or tag in use: counts and names.

use std::collections::BTreeSet;

use mainstay_api::{IstioRevision, names};
use mainstay_mesh::Snapshot;
use mainstay_mesh::references::{ReferenceCause, ReferrerKey};
use mainstay_mesh::snapshot::Source;
use serde::Serialize;

/// Number of referrers by kind.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Use {
    pub(crate) tags: usize,
    pub(crate) namespaces: usize,
    pub(crate) pods: usize,
    /// Whether every unlabeled namespace uses it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_default: bool,
    /// Whether namespaces or pods could not be read, so that there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) incomplete: bool,
}

impl Use {
    /// Counts the tags, labels and proxies that refer to a revision.
    pub(crate) fn for_revision(snapshot: &Snapshot, revision: &IstioRevision) -> Self {
        let by_default =
            revision.name() == names::DEFAULT_REVISION && revision.spec.enables_namespaces_by_default();
        Self {
            by_default,
            incomplete: is_incomplete(snapshot),
            ..Self::counted(snapshot, revision.name())
        }
    }

    /// Counts a pod that refers by label and by proxy once.
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

    /// Counts the labels and proxies that refer to a control plane that no operator manages, or to its tags.
    pub(crate) fn for_unmanaged(snapshot: &Snapshot, revision: &str, tags: &[String]) -> Self {
        let mut all = Self {
            incomplete: is_incomplete(snapshot),
            ..Self::counted(snapshot, revision)
        };
        for tag in tags.iter().filter(|tag| *tag != revision) {
            let more = Self::for_tag(snapshot, tag);
            all.namespaces += more.namespaces;
        }
        all.tags = tags.len();
        all
    }

    /// Counts the labels that refer to a tag. Proxies refer to its revision, never to the tag.
    pub(crate) fn for_tag(snapshot: &Snapshot, name: &str) -> Self {
        let counts = snapshot.references().counts(name);
        Self {
            namespaces: counts.namespaces,
            pods: counts.labeled_pods,
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
        let mut parts: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
            .collect();
        if self.by_default {
            parts.push("every unlabeled namespace".to_owned());
        }
        if self.incomplete {
            parts.push(
                if parts.is_empty() {
                    "unknown"
                } else {
                    "possibly more"
                }
                .to_owned(),
            );
        }
        f.write_str(if parts.is_empty() { "-" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Returns the referrers of a revision with their cause; referrers of a tag follow the tag.
pub(crate) fn referrers(snapshot: &Snapshot, name: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (key, why) in snapshot.references().referrers(name) {
        out.push((key.to_string(), why.to_string()));
        if let ReferrerKey::Tag(tag) = &key {
            out.extend(tag_referrers(snapshot, tag));
        }
    }
    out
}

/// Returns the referrers of a tag with their cause. Proxies refer to the revision of the tag.
pub(crate) fn tag_referrers(snapshot: &Snapshot, tag: &str) -> Vec<(String, String)> {
    let all = snapshot.references().referrers(tag);
    let asking = all.iter().filter(|(_, why)| *why != ReferenceCause::RunningProxy);
    asking
        .map(|(key, why)| (key.to_string(), format!("{} {tag}", through_tag(*why))))
        .collect()
}

fn through_tag(why: ReferenceCause) -> &'static str {
    match why {
        ReferenceCause::PodLabel => "pod label selects the tag",
        _ => "namespace label selects the tag",
    }
}

/// Joins the first names and the number of the others.
pub(crate) fn named(names: &[String], max: usize) -> String {
    let shown = names.iter().take(max).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_formatted_with_nouns() {
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
        assert_eq!(used(0, 1, 0, true), "1 namespace, every unlabeled namespace");
    }

    #[test]
    fn a_long_list_is_truncated() {
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(named(&names, 2), "a, b and 1 more");
        assert_eq!(named(&names, 3), "a, b, c");
    }
}
