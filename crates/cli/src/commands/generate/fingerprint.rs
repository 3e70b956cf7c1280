//! Fingerprint of a file's contents, to notice that it was modified after it was read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// SHA-256 of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of `text`.
    pub(super) fn from_bytes(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Returns the fingerprint of a file.
    pub(super) fn from_file(path: &Path) -> io::Result<Self> {
        let mut reader = Fingerprinted::new(File::open(path)?);
        io::copy(&mut reader, &mut io::sink())?;
        Ok(reader.finish())
    }
}

/// A reader with the fingerprint of what was read.
pub(super) struct Fingerprinted<R> {
    reader: R,
    digest: Sha256,
}

impl<R> Fingerprinted<R> {
    /// Creates a reader.
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            digest: Sha256::new(),
        }
    }

    /// Returns the fingerprint.
    pub(super) fn finish(self) -> Fingerprint {
        Fingerprint(self.digest.finalize().into())
    }
}

impl<R: Read> Read for Fingerprinted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.digest.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
