//! Determines which of several resources owns a revision and the objects shared by all revisions.

use mainstay_api::{ObjectMeta, takes_precedence};
use mainstay_catalog::Version;

/// Revision and version that a valid resource installs, and their namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Metadata of the resource.
    pub metadata: ObjectMeta,
    /// Namespace of the control plane.
    pub namespace: String,
    /// Revision; `default` if the resource has none.
    pub revision: String,
    /// Istio version.
    pub version: Version,
    /// Whether the resource installs the shared objects.
    pub has_base: bool,
}

impl Claim {
    fn is_same_target(&self, other: &Self) -> bool {
        (&self.namespace, &self.revision) == (&other.namespace, &other.revision)
    }

    /// Whether the resource installs the shared objects now or will do so after an older resource is
    /// deleted.
    #[must_use]
    pub fn is_successor(&self) -> bool {
        self.has_base && !self.metadata.is_deleting()
    }

    fn is_self(&self, other: &Self) -> bool {
        self.metadata.uid == other.metadata.uid
    }
}

/// Returns the older resource that installs the same revision, as `NAMESPACE/NAME`. A resource that is
/// being deleted counts until it no longer exists.
#[must_use]
pub fn find_conflict(mine: &Claim, all: &[Claim]) -> Option<String> {
    let others = all.iter().filter(|other| !mine.is_self(other));
    let older = others
        .filter(|other| mine.is_same_target(other) && takes_precedence(&other.metadata, &mine.metadata))
        .min_by_key(|other| (other.metadata.creation_timestamp, other.metadata.uid.clone()));
    older.map(|other| format!("{}/{}", other.metadata.namespace, other.metadata.name))
}

/// Whether this resource writes the objects shared by all revisions in its namespace. The resource with the
/// newest version does; among equal versions, the oldest resource. Resources that are in conflict or being
/// deleted do not count.
#[must_use]
pub fn writes_shared(mine: &Claim, all: &[Claim]) -> bool {
    let is_better = |other: &&Claim| {
        other.version > mine.version
            || (other.version == mine.version && takes_precedence(&other.metadata, &mine.metadata))
    };
    let others = all
        .iter()
        .filter(|other| !mine.is_self(other) && other.namespace == mine.namespace && other.has_base);
    let others = others.filter(|other| !other.metadata.is_deleting() && find_conflict(other, all).is_none());
    mine.has_base && !others.into_iter().any(|other| is_better(&other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::Time;

    fn claim(name: &str, second: i64, revision: &str, version: &str) -> Claim {
        let created = jiff::Timestamp::from_second(second).unwrap();
        Claim {
            metadata: ObjectMeta {
                name: name.into(),
                namespace: "n".into(),
                uid: name.into(),
                creation_timestamp: Some(Time::from_timestamp(created)),
                ..ObjectMeta::default()
            },
            namespace: "istio-system".into(),
            revision: revision.into(),
            version: version.parse().unwrap(),
            has_base: true,
        }
    }

    #[test]
    fn the_oldest_resource_owns_a_revision() {
        let all = [
            claim("a", 3, "x", "1.29.1"),
            claim("b", 1, "x", "1.29.1"),
            claim("c", 2, "x", "1.29.1"),
            claim("d", 0, "y", "1.29.1"),
        ];
        let found: Vec<_> = all.iter().map(|one| find_conflict(one, &all)).collect();
        assert_eq!(found, [Some("n/b".into()), None, Some("n/b".into()), None]);
    }

    #[test]
    fn a_deleted_resource_keeps_its_revision_until_it_is_gone() {
        let mut deleted = claim("a", 1, "x", "1.29.1");
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp;
        let all = [
            deleted,
            claim("b", 2, "x", "1.29.1"),
            claim("c", 3, "y", "1.29.1"),
        ];
        assert_eq!(find_conflict(&all[1], &all), Some("n/a".into()));
        assert!(writes_shared(&all[2], &all) && !all[0].is_successor());
    }

    #[test]
    fn resources_with_different_namespaces_do_not_conflict() {
        let mut other = claim("b", 0, "x", "1.29.1");
        other.namespace = "elsewhere".into();
        let all = [claim("a", 1, "x", "1.29.1"), other];
        assert!(
            all.iter()
                .all(|one| find_conflict(one, &all).is_none() && writes_shared(one, &all))
        );
    }

    #[test]
    fn the_newest_version_writes_the_shared_objects() {
        let mut without = claim("e", 0, "v", "1.31.0");
        without.has_base = false;
        let all = [
            claim("a", 1, "x", "1.28.2"),
            claim("b", 3, "y", "1.29.1"),
            claim("c", 2, "z", "1.29.1"),
            claim("d", 4, "z", "1.30.0"),
            without,
        ];
        let writers: Vec<bool> = all.iter().map(|one| writes_shared(one, &all)).collect();
        // The fourth claim has a conflict and does not count.
        assert_eq!(writers[..3], [false, false, true]);
        assert!(!writers[4]);
    }
}
