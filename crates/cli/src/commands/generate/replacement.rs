//! Replacement of a long file, which is written only if there is a change.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::fingerprint::Digest;
use super::transaction::{Pending, Transaction};

/// A replacement of a file. Nothing is written before the first change.
pub(super) struct Replacement<'a> {
    transaction: &'a Transaction,
    target: &'a Path,
    pending: Option<Pending<'a>>,
}

impl<'a> Replacement<'a> {
    /// Creates a replacement of `target`.
    pub(super) fn new(transaction: &'a Transaction, target: &'a Path) -> Self {
        Self {
            transaction,
            target,
            pending: None,
        }
    }

    /// Adds the next part of the text; `before` is the digest of the original up to this part.
    pub(super) fn add(&mut self, text: &[u8], changed: bool, before: &Digest) -> io::Result<()> {
        if let Some(pending) = &mut self.pending {
            return pending.write_all(text);
        }
        if changed {
            let mut pending = self.transaction.create(self.target)?;
            copy_start(self.target, before, &mut pending)?;
            pending.write_all(text)?;
            self.pending = Some(pending);
        }
        Ok(())
    }

    /// Adds the file to the transaction if there was a change.
    pub(super) fn keep(self) {
        if let Some(pending) = self.pending {
            pending.keep();
        }
    }
}

/// Copies the part of a file that was already read, given by its digest.
fn copy_start(source: &Path, read: &Digest, out: &mut dyn Write) -> io::Result<()> {
    let mut digest = Digest::new();
    let mut rest = File::open(source)?.take(read.len());
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = rest.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        let part = buffer.get(..count).unwrap_or_default();
        digest.update(part);
        out.write_all(part)?;
    }
    if digest.finish() == read.finish() {
        Ok(())
    } else {
        Err(io::Error::other("the file was modified after it was read"))
    }
}
