//! Compares the previous assignment of replicas with the desired one.

use std::collections::BTreeMap;

/// A revision in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assignment {
    /// Name of the `ApplicationRevision`.
    pub revision: String,
    /// Name of the Cluster; empty for the host cluster.
    pub cluster: String,
}

/// Replicas by assignment. `None` means that replicas are not managed, for example because an autoscaler
/// manages them.
pub type Placements = BTreeMap<Assignment, Option<u32>>;

/// A changed assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The revision and cluster.
    pub assignment: Assignment,
    /// Replicas before the change.
    pub from: Option<u32>,
    /// Replicas after the change.
    pub to: Option<u32>,
}

/// Changes of a specification as three lists, each sorted by assignment. They do not define an order:
/// execution creates new revisions before it removes old ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Assignments to scale down and remove.
    pub del: Vec<Change>,
    /// Assignments whose replicas change.
    pub modify: Vec<Change>,
    /// Assignments to create.
    pub add: Vec<Change>,
}

impl Diff {
    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.del.is_empty() && self.modify.is_empty() && self.add.is_empty()
    }
}

/// Returns the changes from `previous` to `desired`.
#[must_use]
pub fn diff(previous: &Placements, desired: &Placements) -> Diff {
    let change = |assignment: &Assignment, from: Option<u32>, to: Option<u32>| Change {
        assignment: assignment.clone(),
        from,
        to,
    };
    let mut diff = Diff::default();
    for (assignment, replicas) in previous {
        match desired.get(assignment) {
            None => diff.del.push(change(assignment, *replicas, Some(0))),
            Some(wanted) if wanted != replicas => diff.modify.push(change(assignment, *replicas, *wanted)),
            Some(_) => {}
        }
    }
    let added = desired
        .iter()
        .filter(|(assignment, _)| !previous.contains_key(*assignment));
    diff.add = added
        .map(|(assignment, replicas)| change(assignment, Some(0), *replicas))
        .collect();
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placements(rows: &[(&str, &str, u32)]) -> Placements {
        let row = |(revision, cluster, replicas): &(&str, &str, u32)| {
            let assignment = Assignment {
                revision: (*revision).into(),
                cluster: (*cluster).into(),
            };
            (assignment, Some(*replicas))
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_change_is_split_into_three_sets() {
        let previous = placements(&[("v1", "", 5), ("v1", "prod", 5), ("v2", "", 1)]);
        let desired = placements(&[("v1", "", 5), ("v2", "", 3), ("v2", "prod", 2)]);
        let diff = diff(&previous, &desired);
        let shown = |changes: &[Change]| -> Vec<String> {
            let show = |change: &Change| {
                let Change { assignment, from, to } = change;
                format!("{}@{} {from:?} {to:?}", assignment.revision, assignment.cluster)
            };
            changes.iter().map(show).collect()
        };
        assert_eq!(shown(&diff.del), ["v1@prod Some(5) Some(0)"]);
        assert_eq!(shown(&diff.modify), ["v2@ Some(1) Some(3)"]);
        assert_eq!(shown(&diff.add), ["v2@prod Some(0) Some(2)"]);
    }

    #[test]
    fn equal_placements_have_no_changes() {
        let same = placements(&[("v1", "", 5)]);
        assert!(diff(&same, &same).is_empty());
    }
}
