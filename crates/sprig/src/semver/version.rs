//! Semantic versions, parsed as leniently as Masterminds' `NewVersion` does.

use std::cmp::Ordering;
use std::fmt;

use mainstay_gostd::quote::quote;

/// Maximum length of a version in bytes.
pub const MAX_VERSION_LEN: usize = 256;

/// A semantic version. Also accepts texts such as `1`, `v1.2` and `01.2.3`.
#[derive(Clone, Debug)]
pub struct Version {
    /// Major number.
    pub major: u64,
    /// Minor number; 0 if missing.
    pub minor: u64,
    /// Patch number; 0 if missing.
    pub patch: u64,
    /// Pre-release: the part after `-`.
    pub pre: String,
    /// Metadata: the part after `+`. Ignored in comparisons.
    pub metadata: String,
    /// Original text.
    pub original: String,
}

/// Error of parsing a version, with Masterminds' message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text does not have the form of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// The text has more than [`MAX_VERSION_LEN`] bytes.
    #[error("version string is too long (max {MAX_VERSION_LEN} bytes)")]
    TooLong,
    /// A number exceeds 64 bits.
    #[error("error parsing version segment: strconv.ParseUint: parsing {}: value out of range", quote(.0.as_bytes()))]
    Segment(String),
    /// A numeric part of the pre-release has a leading zero, such as `01`.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// The pre-release contains other characters than letters, digits, hyphens and dots.
    #[error("invalid prerelease string")]
    Prerelease,
    /// The metadata contains other characters than letters, digits, hyphens and dots.
    #[error("invalid metadata string")]
    Metadata,
}

impl Version {
    /// Parses a version. Missing numbers, a leading `v` and leading zeros are accepted.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.len() > MAX_VERSION_LEN {
            return Err(VersionError::TooLong);
        }
        let parts = Parts::parse(text).ok_or(VersionError::Invalid)?;
        let version = Self {
            major: parse_segment(parts.major)?,
            minor: parse_segment(parts.minor)?,
            patch: parse_segment(parts.patch)?,
            pre: parts.pre.into(),
            metadata: parts.metadata.into(),
            original: text.into(),
        };
        check_prerelease(&version.pre)?;
        Ok(version)
    }

    /// Returns the version with another pre-release. An empty `pre` removes it.
    pub fn with_prerelease(&self, pre: &str) -> Result<Self, VersionError> {
        if !pre.is_empty() {
            check_prerelease(pre)?;
        }
        Ok(Self {
            pre: pre.into(),
            ..self.clone()
        }
        .reset_original())
    }

    /// Returns the version with other metadata. An empty `metadata` removes it.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, VersionError> {
        if !metadata.is_empty() && !metadata.split('.').all(is_identifier) {
            return Err(VersionError::Metadata);
        }
        Ok(Self {
            metadata: metadata.into(),
            ..self.clone()
        }
        .reset_original())
    }

    /// Returns the next patch version, or, for a pre-release, the version without it. Returns `None` if the
    /// number would overflow.
    #[must_use]
    pub fn next_patch(&self) -> Option<Self> {
        let step = u64::from(self.pre.is_empty());
        self.release(self.major, self.minor, self.patch.checked_add(step)?)
    }

    /// Returns the next minor version, or `None` if the number would overflow.
    #[must_use]
    pub fn next_minor(&self) -> Option<Self> {
        self.release(self.major, self.minor.checked_add(1)?, 0)
    }

    /// Returns the next major version, or `None` if the number would overflow.
    #[must_use]
    pub fn next_major(&self) -> Option<Self> {
        self.release(self.major.checked_add(1)?, 0, 0)
    }

    #[allow(clippy::unnecessary_wraps)]
    fn release(&self, major: u64, minor: u64, patch: u64) -> Option<Self> {
        let (pre, metadata) = (String::new(), String::new());
        Some(
            Self {
                major,
                minor,
                patch,
                pre,
                metadata,
                original: self.original.clone(),
            }
            .reset_original(),
        )
    }

    fn reset_original(mut self) -> Self {
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        self.original = format!("{prefix}{self}");
        self
    }
}

/// `Ord` is not implemented because it must be consistent with equality, and precedence ignores metadata.
impl Version {
    /// Compares the precedence of two versions.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prerelease(&self.pre, &other.pre))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn parse_segment(digits: &str) -> Result<u64, VersionError> {
    match digits {
        "" => Ok(0),
        _ => digits.parse().map_err(|_| VersionError::Segment(digits.into())),
    }
}

fn check_prerelease(pre: &str) -> Result<(), VersionError> {
    if pre.is_empty() {
        return Ok(());
    }
    for part in pre.split('.') {
        if !is_identifier(part) {
            return Err(VersionError::Prerelease);
        }
        if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(VersionError::LeadingZero);
        }
    }
    Ok(())
}

fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(is_identifier_byte)
}

pub(super) fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Compares pre-releases. A release is higher than its pre-releases. Parts are compared from left to right;
/// a missing part is lowest.
pub(super) fn compare_prerelease(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => compare_parts(left, right),
    }
}

fn compare_parts(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(left), Some(right)) => compare_part(left, right),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Compares parts of a pre-release. Numbers are lower than words. A number that exceeds 64 bits is treated
/// as a word.
fn compare_part(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

struct Parts<'a> {
    major: &'a str,
    minor: &'a str,
    patch: &'a str,
    pre: &'a str,
    metadata: &'a str,
}

impl<'a> Parts<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let scan = Scan::prefix(text, |b| b.is_ascii_digit())?;
        (scan.len == text.len()).then_some(Self {
            major: scan.numbers[0],
            minor: scan.numbers[1],
            patch: scan.numbers[2],
            pre: scan.pre,
            metadata: scan.metadata,
        })
    }
}

/// Longest prefix of a text that has the form of a version.
pub(super) struct Scan<'a> {
    pub(super) len: usize,
    pub(super) numbers: [&'a str; 3],
    pub(super) pre: &'a str,
    pub(super) metadata: &'a str,
}

impl<'a> Scan<'a> {
    pub(super) fn prefix(text: &'a str, number: fn(u8) -> bool) -> Option<Self> {
        let mut rest = text.strip_prefix('v').unwrap_or(text);
        let mut numbers = [""; 3];
        for (index, slot) in numbers.iter_mut().enumerate() {
            let candidate = if index == 0 {
                Some(rest)
            } else {
                rest.strip_prefix('.')
            };
            let Some((taken, after)) = candidate.and_then(|text| split_run(text, number)) else {
                break;
            };
            (*slot, rest) = (taken, after);
        }
        if numbers[0].is_empty() {
            return None;
        }
        let pre = split_identifiers(&mut rest, '-');
        let metadata = split_identifiers(&mut rest, '+');
        Some(Self {
            len: text.len() - rest.len(),
            numbers,
            pre,
            metadata,
        })
    }
}

/// Splits `text` after its longest non-empty prefix of bytes in `class`.
fn split_run(text: &str, class: fn(u8) -> bool) -> Option<(&str, &str)> {
    let end = text.bytes().position(|b| !class(b)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits off `sign` and dot-separated identifiers. Returns an empty text and leaves `rest` unchanged if
/// there are none.
fn split_identifiers<'a>(rest: &mut &'a str, sign: char) -> &'a str {
    let Some(text) = rest.strip_prefix(sign) else {
        return "";
    };
    let Some((_, mut after)) = split_run(text, is_identifier_byte) else {
        return "";
    };
    while let Some((_, next)) = after
        .strip_prefix('.')
        .and_then(|text| split_run(text, is_identifier_byte))
    {
        after = next;
    }
    *rest = after;
    text.get(..text.len() - after.len()).unwrap_or_default()
}
