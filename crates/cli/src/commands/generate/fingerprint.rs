//! Fingerprint of a file's contents, to notice that it was modified after it was read.

use std::fs::File;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

/// Length and keyed hash of contents. The key is random and differs between processes, so that no
/// other contents can be made to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    len: u64,
    hash: u64,
}

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Fingerprint {
    /// Returns the fingerprint of `text`.
    pub(super) fn from_bytes(text: &[u8]) -> Self {
        let mut digest = Digest::new();
        digest.update(text);
        digest.finish()
    }

    /// Returns the fingerprint of a file.
    pub(super) fn from_file(path: &Path) -> io::Result<Self> {
        let mut digest = Digest::new();
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok(digest.finish());
            }
            digest.update(buffer.get(..count).unwrap_or_default());
        }
    }
}

/// Fingerprint that is computed incrementally.
#[derive(Clone, Debug)]
pub(super) struct Digest {
    len: u64,
    hasher: DefaultHasher,
}

impl Digest {
    /// Creates the digest of an empty text.
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            hasher: KEY.build_hasher(),
        }
    }

    /// Adds the next part of the text.
    pub(super) fn update(&mut self, part: &[u8]) {
        self.len += part.len() as u64;
        self.hasher.write(part);
    }

    /// Returns the number of bytes so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the fingerprint.
    pub(super) fn finish(&self) -> Fingerprint {
        Fingerprint {
            len: self.len,
            hash: self.hasher.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_fingerprint_of_the_whole() {
        let text: Vec<u8> = (0..1_000_u32).flat_map(u32::to_le_bytes).collect();
        for size in [1, 3, 7, 8, 64, 1_000] {
            let mut digest = Digest::new();
            text.chunks(size).for_each(|part| digest.update(part));
            assert_eq!(
                digest.finish(),
                Fingerprint::from_bytes(&text),
                "parts of {size} bytes"
            );
        }
        let mut other = text.clone();
        other[500] ^= 1;
        assert_ne!(Fingerprint::from_bytes(&other), Fingerprint::from_bytes(&text));
        assert_ne!(Fingerprint::from_bytes(b"a\0"), Fingerprint::from_bytes(b"a"));
    }
}
