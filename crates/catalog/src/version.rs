//! Istio versions, ordered as semantic versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::error::CatalogError;

/// An Istio version. Its `Display` form has no leading `v`; [`Version::name`] returns the form used in
/// resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
}

impl Version {
    /// Returns the form of `spec.version` in an Istio resource: `v1.29.1`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("v{self}")
    }

    /// Returns the major and minor number, as in a `vX.Y-latest` alias.
    #[must_use]
    pub fn minor(&self) -> (u64, u64) {
        (self.major, self.minor)
    }

    /// Whether this is a release. Development snapshots have a pre-release part.
    #[must_use]
    pub fn is_release(&self) -> bool {
        self.pre.is_empty()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.pre.is_empty() {
            Ok(())
        } else {
            write!(f, "-{}", self.pre)
        }
    }
}

impl FromStr for Version {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, CatalogError> {
        parse(text).ok_or_else(|| CatalogError::BadVersion(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Version> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let (core, pre) = bare
        .split_once('-')
        .map_or((bare, None), |(core, pre)| (core, Some(pre)));
    let mut parts = core.split('.').map(parse_number);
    let version = Version {
        major: parts.next()??,
        minor: parts.next()??,
        patch: parts.next()??,
        pre: pre.unwrap_or_default().to_owned(),
    };
    let pre_ok = pre.is_none_or(|pre| pre.split('.').all(is_identifier));
    (parts.next().is_none() && pre_ok).then_some(version)
}

/// Parses a number. Leading zeros are rejected: `1.09.0` and `1.9.0` must not be two names of one version.
fn parse_number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (plain && (text == "0" || !text.starts_with('0')))
        .then(|| text.parse().ok())
        .flatten()
}

/// Whether `text` is an identifier of a pre-release. Versions are used as directory names, so only letters,
/// digits and hyphens are allowed.
fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_pre_releases(&self.pre, &other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares pre-release parts. A release is newer than its pre-releases; identifiers are compared one by
/// one, numbers are lower than words.
fn compare_pre_releases(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a
            .split('.')
            .map(identifier_rank)
            .cmp(b.split('.').map(identifier_rank)),
    }
}

fn identifier_rank(identifier: &str) -> (bool, u64, &str) {
    match identifier.parse() {
        Ok(number) => (false, number, ""),
        Err(_) => (true, 0, identifier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let parsed = text.parse::<Version>().ok().map(|version| version.to_string());
        assert_eq!(parsed.as_deref(), expected, "{text}");
    }

    #[test]
    fn a_leading_v_is_optional() {
        check("1.29.1", Some("1.29.1"));
        check("v1.29.1", Some("1.29.1"));
        check("v1.31.0-alpha.eed52ebb", Some("1.31.0-alpha.eed52ebb"));
    }

    #[test]
    fn texts_that_are_unsafe_as_directory_names_are_rejected() {
        for text in [
            "",
            "v",
            "1.29",
            "1.29.1.2",
            "1.029.1",
            "1.29.1-",
            "1.29.1-a/b",
            "1.29.1-..",
            "../1.29.1",
            "1.+2.3",
            "latest",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn versions_are_ordered_as_semantic_versions() {
        let sorted = [
            "1.9.0",
            "1.10.0",
            "1.29.1-alpha.9",
            "1.29.1-alpha.10",
            "1.29.1-alpha.x",
            "1.29.1-beta.1",
            "1.29.1",
            "1.29.10",
        ];
        for pair in sorted.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|text| text.parse::<Version>().unwrap());
            assert!(a < b, "{a} < {b}");
        }
    }
}
