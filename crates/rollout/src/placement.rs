//! Selects clusters by name and labels. If several clusters match, they are selected by rendezvous hashing.
//!
//! The hash is the first eight bytes, big-endian, of the SHA-256 of key, a zero byte and cluster name. It
//! must not change between releases, because a change would move workloads.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// A registered cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name of the Cluster object.
    pub name: String,
    /// Labels of the Cluster object.
    pub labels: BTreeMap<String, String>,
    /// Whether the cluster is reachable and accepts new workloads.
    pub is_schedulable: bool,
}

/// A parsed `clusterSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Exact name.
    pub name: Option<String>,
    /// Labels that must all match. Combined with `name` by AND.
    pub labels: BTreeMap<String, String>,
    /// Number of clusters to select. `None` selects all matching clusters.
    pub count: Option<usize>,
}

/// Error of selecting clusters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The named cluster is not registered.
    #[error("cluster {0:?} does not exist")]
    UnknownCluster(String),
    /// The named cluster exists, but its labels do not match.
    #[error("cluster {0:?} does not have the labels of the selector")]
    LabelMismatch(String),
    /// No schedulable cluster matches.
    #[error("no cluster matches the selector")]
    NoClusterMatched,
}

/// Selects clusters for a placement entry, sorted by name.
///
/// `key` identifies the entry: namespace, name of the deployment, canonical selector and ordinal among
/// equal selectors. It does not contain the revision, so that revisions with equal selectors use the same
/// clusters. Clusters in `current` that still match remain selected, even if they are no longer
/// schedulable.
pub fn select(
    key: &str,
    selector: &Selector,
    candidates: &[Candidate],
    current: &BTreeSet<String>,
) -> Result<Vec<String>, PlacementError> {
    check_name(selector, candidates)?;
    let matches = candidates
        .iter()
        .filter(|candidate| is_match(selector, candidate))
        .filter(|candidate| candidate.is_schedulable || current.contains(&candidate.name));
    let mut ranked: Vec<(bool, u64, &str)> = matches
        .map(|candidate| {
            let name = candidate.name.as_str();
            (current.contains(name), score(key, name), name)
        })
        .collect();
    if ranked.is_empty() {
        return Err(PlacementError::NoClusterMatched);
    }
    ranked.sort_by(|left, right| {
        right
            .0
            .cmp(&left.0)
            .then(right.1.cmp(&left.1))
            .then(left.2.cmp(right.2))
    });
    let count = selector.count.unwrap_or(ranked.len());
    let mut selected: Vec<String> = ranked
        .iter()
        .take(count)
        .map(|(_, _, name)| (*name).to_owned())
        .collect();
    selected.sort();
    Ok(selected)
}

fn check_name(selector: &Selector, candidates: &[Candidate]) -> Result<(), PlacementError> {
    let Some(name) = &selector.name else {
        return Ok(());
    };
    match candidates.iter().find(|candidate| candidate.name == *name) {
        None => Err(PlacementError::UnknownCluster(name.clone())),
        Some(found) if !is_match(selector, found) => Err(PlacementError::LabelMismatch(name.clone())),
        Some(_) => Ok(()),
    }
}

fn is_match(selector: &Selector, candidate: &Candidate) -> bool {
    let has_name = selector.name.as_ref().is_none_or(|name| *name == candidate.name);
    let has_labels = selector
        .labels
        .iter()
        .all(|(key, value)| candidate.labels.get(key) == Some(value));
    has_name && has_labels
}

/// Returns the rendezvous score of a cluster for `key`.
fn score(key: &str, cluster: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(key.as_bytes());
    hash.update([0]);
    hash.update(cluster.as_bytes());
    hash.finalize()
        .iter()
        .take(8)
        .fold(0, |score, byte| score << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str, labels: &[(&str, &str)]) -> Candidate {
        Candidate {
            name: name.into(),
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            is_schedulable: true,
        }
    }

    fn by_labels(labels: &[(&str, &str)], count: Option<usize>) -> Selector {
        Selector {
            count,
            labels: cluster("", labels).labels,
            ..Selector::default()
        }
    }

    fn names(candidates: &[Candidate], selector: &Selector) -> Result<Vec<String>, PlacementError> {
        select("ns/app/production/0", selector, candidates, &BTreeSet::new())
    }

    #[test]
    fn hash_values_do_not_change() {
        assert_eq!(
            score("ns/app/usage=production/0", "prod-1"),
            0x1d22_fb24_516b_06f5
        );
    }

    #[test]
    fn name_and_labels_must_both_match() {
        let candidates = [cluster("prod-1", &[("usage", "production")])];
        let mut selector = by_labels(&[("usage", "production")], Some(1));
        selector.name = Some("prod-1".into());
        assert_eq!(names(&candidates, &selector).unwrap(), ["prod-1"]);
        selector.labels.insert("tier".into(), "pilot".into());
        assert_eq!(
            names(&candidates, &selector),
            Err(PlacementError::LabelMismatch("prod-1".into()))
        );
        selector.name = Some("prod-9".into());
        assert_eq!(
            names(&candidates, &selector),
            Err(PlacementError::UnknownCluster("prod-9".into()))
        );
    }

    #[test]
    fn labels_alone_never_select_the_host() {
        let candidates = [cluster("prod-1", &[("usage", "staging")])];
        let selector = by_labels(&[("usage", "production")], Some(1));
        assert_eq!(
            names(&candidates, &selector),
            Err(PlacementError::NoClusterMatched)
        );
    }

    #[test]
    fn a_cluster_in_use_stays_selected_while_it_matches() {
        let mut candidates: Vec<Candidate> = (0..5).map(|n| cluster(&format!("c{n}"), &[])).collect();
        let selector = by_labels(&[], Some(1));
        let first = names(&candidates, &selector).unwrap();
        for candidate in &mut candidates {
            candidate.is_schedulable = candidate.name != first[0];
        }
        let current: BTreeSet<String> = first.iter().cloned().collect();
        assert_eq!(
            select("ns/app/production/0", &selector, &candidates, &current).unwrap(),
            first
        );
        assert_ne!(names(&candidates, &selector).unwrap(), first);
    }

    #[test]
    fn all_matches_are_selected_without_a_count() {
        let candidates: Vec<Candidate> = (0..3).map(|n| cluster(&format!("c{n}"), &[])).collect();
        assert_eq!(
            names(&candidates, &by_labels(&[], None)).unwrap(),
            ["c0", "c1", "c2"]
        );
    }
}
