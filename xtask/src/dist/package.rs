//! Archives with fixed times, owners and order: equal input produces equal bytes.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::GzBuilder;
use sha2::{Digest, Sha256};

/// The time of every file: 2026-01-01. Debian rejects files without a time.
const TIME: u64 = 1_767_225_600;

/// A file of an archive.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Path in the archive, without a leading slash.
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    executable: bool,
}

impl Entry {
    /// Creates a plain file.
    pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            executable: false,
        }
    }

    /// Creates an executable file.
    pub(super) fn executable(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            executable: true,
            ..Self::file(path, content)
        }
    }

    /// Returns the entry with a prefix of its path.
    pub(super) fn below(self, prefix: &str) -> Self {
        Self {
            path: format!("{prefix}{}", self.path),
            ..self
        }
    }
}

/// Returns a tar archive of `entries` in the order of their paths, with their directories.
pub(super) fn tar(entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    let mut builder = tar::Builder::new(Vec::new());
    let mut directories = std::collections::BTreeSet::new();
    for entry in sorted {
        for directory in parents(&entry.path) {
            if directories.insert(directory.to_owned()) {
                let mut header = header(0o755, 0, tar::EntryType::Directory);
                builder.append_data(&mut header, directory, std::io::empty())?;
            }
        }
        let mode = if entry.executable { 0o755 } else { 0o644 };
        let mut header = header(mode, entry.content.len() as u64, tar::EntryType::Regular);
        builder.append_data(&mut header, &entry.path, entry.content.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

fn header(mode: u32, size: u64, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Returns the directories above `path`, outermost first: `a/`, `a/b/` for `a/b/c`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..=at))
}

/// Compresses `bytes` without a name or time in the header.
pub(super) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Returns the SHA-256 digest of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_entries_does_not_matter() {
        let (a, b) = (|| Entry::file("d/a", "1"), || Entry::executable("d/e/b", "2"));
        let one = gzip(&tar(&[a(), b()]).unwrap()).unwrap();
        let two = gzip(&tar(&[b(), a()]).unwrap()).unwrap();
        assert_eq!(one, two);
    }

    #[test]
    fn directories_precede_their_files() {
        let bytes = tar(&[Entry::executable("d/e/b", "2")]).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.header().mode().unwrap();
            (entry.path().unwrap().display().to_string(), mode)
        });
        let entries: Vec<_> = entries.collect();
        let expected = [("d/", 0o755), ("d/e/", 0o755), ("d/e/b", 0o755)];
        assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn digests_are_hexadecimal() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), expected);
    }
}
