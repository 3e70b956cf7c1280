//! Names of generated objects. They depend on immutable data only, are valid DNS labels and have at most 63
//! bytes.

use sha2::{Digest, Sha256};

/// Maximum length of a DNS label in bytes.
const MAX_LEN: usize = 63;

/// Length of the hash suffix of a shortened name.
const HASH_LEN: usize = 8;

/// Returns the name of a component's workload: `REVISION-COMPONENT`.
#[must_use]
pub fn object_name(revision: &str, component: &str) -> String {
    shorten(&format!("{revision}-{component}"))
}

/// Returns the name of a component's Service: the name of the revision if it has one component, otherwise
/// `REVISION-COMPONENT`.
#[must_use]
pub fn service_name(revision: &str, component: &str, components: usize) -> String {
    if components == 1 {
        shorten(revision)
    } else {
        object_name(revision, component)
    }
}

/// Returns the label value for a name. Names of objects may be longer than label values, so they are
/// shortened.
#[must_use]
pub fn label_value(name: &str) -> String {
    shorten(name)
}

/// Returns the name of the Service for all revisions of a component: `DEPLOYMENT-COMPONENT`.
#[must_use]
pub fn apex_service_name(deployment: &str, component: &str) -> String {
    shorten(&format!("{deployment}-{component}"))
}

/// Returns the name of a deployment's inventory for a cluster.
#[must_use]
pub fn inventory_name(deployment: &str, cluster: &str) -> String {
    if cluster.is_empty() {
        shorten(deployment)
    } else {
        shorten(&format!("{deployment}.{cluster}"))
    }
}

/// Truncates a name that is too long and appends a hash of the complete name.
pub(crate) fn shorten(name: &str) -> String {
    if name.len() <= MAX_LEN {
        return name.to_owned();
    }
    let digest = Sha256::digest(name.as_bytes());
    let hash = digest
        .iter()
        .take(HASH_LEN / 2)
        .fold(0_u32, |hash, byte| hash << 8 | u32::from(*byte));
    let end = (0..(MAX_LEN - HASH_LEN))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    let head = name
        .get(..end.unwrap_or(0))
        .unwrap_or_default()
        .trim_end_matches('-');
    format!("{head}-{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_proposal() {
        assert_eq!(object_name("example-app-v1", "testsvc"), "example-app-v1-testsvc");
        assert_eq!(service_name("example-app-v1", "testsvc", 1), "example-app-v1");
        assert_eq!(
            service_name("example-app-v1", "testsvc", 2),
            "example-app-v1-testsvc"
        );
    }

    #[test]
    fn long_names_are_truncated_and_remain_distinct() {
        let long = "a".repeat(60);
        let (one, two) = (object_name(&long, "one"), object_name(&long, "two"));
        assert_eq!(one.len(), 63);
        assert_ne!(one, two);
    }
}
