//! Interning of names that occur repeatedly, and their hash function.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use crate::string::Str;

/// Set of interned names.
#[derive(Clone, Default)]
pub(crate) struct InternedNames(HashSet<Str, BuildNameHasher>);

impl InternedNames {
    /// Returns the interned string with these bytes.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Str {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name = Str::from(name);
        self.0.insert(name.clone());
        name
    }
}

/// Hash function for short names: one or two multiplications, at a quarter of the cost of the standard
/// hash. The key is random per process: names come from charts, which must not be able to cause collisions.
#[derive(Clone)]
pub(crate) struct BuildNameHasher(u64);

impl Default for BuildNameHasher {
    fn default() -> Self {
        static KEY: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        Self(*KEY)
    }
}

impl BuildHasher for BuildNameHasher {
    type Hasher = NameHasher;

    fn build_hasher(&self) -> NameHasher {
        NameHasher {
            key: self.0 | 1,
            state: self.0.rotate_left(32),
        }
    }
}

/// State of one hash.
pub(crate) struct NameHasher {
    key: u64,
    state: u64,
}

impl NameHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key);
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.state = self.state.wrapping_add(bytes.len() as u64);
        if let Some(last) = bytes.last_chunk() {
            let (words, rest) = bytes.as_chunks();
            for word in words {
                self.mix(u64::from_le_bytes(*word));
            }
            // Hashing some bytes twice is harmless, since the length is also hashed.
            if !rest.is_empty() {
                self.mix(u64::from_le_bytes(*last));
            }
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            self.mix(first << 32 | last);
        } else {
            self.mix(bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    /// Ignores the length before a slice, because `write` hashes it.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    /// Ignores the end marker of a `str`, which its length determines.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_one_string() {
        let mut names = InternedNames::default();
        let (first, other, again) = (
            names.intern(b"image"),
            names.intern(b"images"),
            names.intern(b"image"),
        );
        assert_eq!(first.as_ptr(), again.as_ptr());
        assert_eq!(
            (first.as_bytes(), other.as_bytes()),
            (&b"image"[..], &b"images"[..])
        );
    }

    #[test]
    fn names_of_all_lengths_have_different_hashes() {
        let text = "abcdefghijklmnopqrstuvwxyz".repeat(4);
        let parts = (0..text.len())
            .flat_map(|start| (start..text.len().min(start + 40)).map(move |end| (start, end)));
        let parts: HashSet<&str> = parts.filter_map(|(start, end)| text.get(start..end)).collect();
        let hashes: HashSet<u64> = parts
            .iter()
            .map(|part| BuildNameHasher::default().hash_one(part))
            .collect();
        assert_eq!(hashes.len(), parts.len());
    }
}
