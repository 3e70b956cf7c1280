//! Semantic versions, as far as a chart needs them: is this one, and does it fit a constraint.

use mainstay_sprig::semver::{Constraint, Version};

/// Whether `text` is a version, `v1.2` and the like included.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether `version` fits `constraint`; no, if either is malformed.
pub(crate) fn in_range(constraint: &str, version: &str) -> bool {
    match (Version::parse(version), Constraint::parse(constraint)) {
        (Ok(version), Ok(constraint)) => constraint.check(&version),
        _ => false,
    }
}
