//! Interning of names that occur repeatedly, and the hash function for them.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use crate::string::Str;

/// The interned names.
#[derive(Clone, Default)]
pub(crate) struct Names(HashSet<Str, Mix>);

impl Names {
    /// Returns the shared string with these bytes.
    pub(crate) fn share(&mut self, name: &[u8]) -> Str {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name = Str::from(name);
        self.0.insert(name.clone());
        name
    }
}

/// Hashes short names with a multiplication or two, at a quarter of the cost of the standard hash. The key is
/// random per process: names come from charts, which must not be able to force collisions.
#[derive(Clone)]
pub(crate) struct Mix(u64);

impl Default for Mix {
    fn default() -> Self {
        static KEY: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        Self(*KEY)
    }
}

impl BuildHasher for Mix {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer {
            key: self.0 | 1,
            state: self.0.rotate_left(32),
        }
    }
}

/// The state of one hash.
pub(crate) struct Mixer {
    key: u64,
    state: u64,
}

impl Mixer {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key);
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for Mixer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.state = self.state.wrapping_add(bytes.len() as u64);
        if let Some(last) = bytes.last_chunk() {
            let (words, rest) = bytes.as_chunks();
            for word in words {
                self.mix(u64::from_le_bytes(*word));
            }
            // Reading bytes twice is harmless, since the length is hashed too.
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

    /// The length before a slice, which is hashed above.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    /// The end of a `str`, which its length determines.
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
        let mut names = Names::default();
        let (first, other, again) = (
            names.share(b"image"),
            names.share(b"images"),
            names.share(b"image"),
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
        let hashes: HashSet<u64> = parts.iter().map(|part| Mix::default().hash_one(part)).collect();
        assert_eq!(hashes.len(), parts.len());
    }
}
