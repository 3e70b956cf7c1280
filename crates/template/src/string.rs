//! Go strings: immutable bytes, usually UTF-8, that are cheap to share.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::live;

/// A Go string. Contains bytes instead of a `str`, because functions such as `trunc` may split characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Str(Arc<[u8]>);

/// Size of a string without its bytes: reference counts, and the allocator's header and rounding.
const OVERHEAD: usize = 32;

fn live_size(bytes: &[u8]) -> usize {
    OVERHEAD + bytes.len()
}

/// Dropping the last handle frees the bytes.
impl Drop for Str {
    #[inline]
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            live::subtract(live_size(&self.0));
        }
    }
}

impl Str {
    fn new(bytes: Arc<[u8]>) -> Self {
        live::add(live_size(&bytes));
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text with U+FFFD for invalid bytes.
    #[must_use]
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Compares by bytes. The first byte usually decides; comparing it here avoids a call for every key that a
/// lookup visits.
impl Ord for Str {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0.first(), other.0.first()) {
            (Some(a), Some(b)) if a != b => a.cmp(b),
            _ => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Str {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Default for Str {
    fn default() -> Self {
        Self::from("")
    }
}

impl Deref for Str {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Str {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::borrow::Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::new(Arc::from(text.into_bytes()))
    }
}

/// Shares bytes that another owner keeps alive, such as a file of a chart. Such bytes do not count as live.
impl From<Arc<[u8]>> for Str {
    fn from(bytes: Arc<[u8]>) -> Self {
        if Arc::strong_count(&bytes) == 1 {
            live::add(live_size(&bytes));
        }
        Self(bytes)
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self::new(Arc::from(bytes))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Arc::from(bytes))
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str_lossy(), f)
    }
}
