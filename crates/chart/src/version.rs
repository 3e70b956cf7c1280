//! Checks of semantic versions and constraints.

use mainstay_sprig::semver::{Constraint, Version};

/// Whether `text` is a version. Short forms such as `v1.2` are also versions.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether `version` satisfies `constraint`. Returns `false` if either is malformed.
pub(crate) fn in_range(constraint: &str, version: &str) -> bool {
    match (Version::parse(version), Constraint::parse(constraint)) {
        (Ok(version), Ok(constraint)) => constraint.check(&version),
        _ => false,
    }
}
