//! Unpacking of a `.tgz` archive in memory, with Helm's rules for names and limits on all sizes. A link is
//! unpacked as an empty file.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::tar::Tar;
use crate::chart::File;
use crate::error::ArchiveError;

/// Helm's limit for the size of an unpacked chart in bytes.
pub(crate) const MAX_CHART: u64 = 100 << 20;
/// Helm's limit for the size of one file in bytes.
pub(crate) const MAX_FILE: u64 = 5 << 20;
pub(crate) const MAX_ENTRIES: usize = 20_000;
const MAX_NAME: usize = 4096;
/// Maximum compression ratio. Deflate can reach 1032, but no chart of this size is as repetitive.
const MAX_RATIO: u64 = 250;
/// Unpacked size in bytes up to which the ratio is not checked.
const MIN_RATIO_SIZE: u64 = 16 << 20;

/// Remaining capacity for an archive and the archives in it.
#[derive(Clone, Debug)]
pub(super) struct ArchiveLimits {
    bytes: u64,
    entries: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            bytes: MAX_CHART,
            entries: MAX_ENTRIES,
        }
    }
}

/// Returns the files of a gzipped tar archive in order. Their names are relative to the archive's base
/// directory.
pub(super) fn unpack(bytes: &[u8], limits: &mut ArchiveLimits) -> Result<Vec<File>, ArchiveError> {
    check_gzip(bytes)?;
    let input = RatioLimiter {
        input: MultiGzDecoder::new(bytes),
        packed: bytes.len() as u64,
        produced: 0,
    };
    let mut tar = Tar::new(io::BufReader::with_capacity(32 << 10, input));
    let mut files = Vec::new();
    let mut entries = limits.entries;
    let mut count = || {
        entries = entries
            .checked_sub(1)
            .ok_or(ArchiveError::TooManyEntries(MAX_ENTRIES))?;
        Ok(())
    };
    while let Some(entry) = tar.next(&mut count)? {
        if entry.is_directory || matches!(entry.kind, b'g' | b'x') {
            continue;
        }
        let name = name_text(&entry.name)?;
        let inside = strip_base(name)?;
        let data = read_contents(&mut tar, name, entry.size, limits)?;
        files.push(File::new(inside, &data));
    }
    limits.entries = entries;
    if files.is_empty() {
        Err(ArchiveError::Empty)
    } else {
        Ok(files)
    }
}

/// Reads the contents of an entry. Checks the limits in Helm's order.
fn read_contents<R: Read>(
    tar: &mut Tar<R>,
    name: &str,
    size: u64,
    limits: &mut ArchiveLimits,
) -> Result<Vec<u8>, ArchiveError> {
    if size > limits.bytes {
        return Err(ArchiveError::TooLarge(MAX_CHART));
    }
    if size > MAX_FILE {
        return Err(ArchiveError::FileTooLarge {
            name: name.into(),
            limit: MAX_FILE,
        });
    }
    let data = tar.content(limits.bytes)?;
    limits.bytes -= data.len() as u64;
    if (data.len() as u64) < size || limits.bytes == 0 {
        return Err(ArchiveError::TooLarge(MAX_CHART));
    }
    Ok(data)
}

fn name_text(name: &[u8]) -> Result<&str, ArchiveError> {
    if name.len() > MAX_NAME {
        return Err(ArchiveError::NameTooLong(MAX_NAME));
    }
    std::str::from_utf8(name)
        .map_err(|_| ArchiveError::NameNotText(String::from_utf8_lossy(name).into_owned()))
}

/// Returns the name without its first directory and with forward slashes. Rejects names that are outside of
/// that directory.
fn strip_base(name: &str) -> Result<String, ArchiveError> {
    let delimiter = if name.contains('\\') { '\\' } else { '/' };
    let (base, inside) = name.split_once(delimiter).unwrap_or((name, ""));
    let inside = inside.replace(delimiter, "/");
    if inside.starts_with('/') {
        return Err(ArchiveError::Absolute);
    }
    let inside = clean_path(&inside);
    if inside == "." {
        return Err(ArchiveError::Outside(name.into()));
    }
    if inside.starts_with("..") {
        return Err(ArchiveError::Parent);
    }
    if has_drive(&inside) {
        return Err(ArchiveError::Drive);
    }
    if base == "Chart.yaml" {
        return Err(ArchiveError::BaseDirectory);
    }
    Ok(inside)
}

fn has_drive(name: &str) -> bool {
    matches!(name.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

/// Cleans a relative path as Go's `path.Clean` does.
fn clean_path(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    if kept.is_empty() {
        ".".into()
    } else {
        kept.join("/")
    }
}

/// Checks the first ten bytes, as Go does before it decompresses.
fn check_gzip(bytes: &[u8]) -> Result<(), ArchiveError> {
    match bytes {
        [] => Err(ArchiveError::NoData),
        [_, _, _, _, _, _, _, _, _, _, ..] if bytes.starts_with(b"\x1f\x8b\x08") => Ok(()),
        [_, _, _, _, _, _, _, _, _, _, ..] => Err(ArchiveError::NotGzip),
        _ => Err(ArchiveError::Truncated),
    }
}

/// Reader that fails if the compression ratio is too high.
struct RatioLimiter<R> {
    input: R,
    packed: u64,
    produced: u64,
}

impl<R: Read> Read for RatioLimiter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.produced += got as u64;
        if self.produced > MIN_RATIO_SIZE && self.produced / MAX_RATIO > self.packed {
            return Err(io::Error::other(ArchiveError::Ratio(MAX_RATIO)));
        }
        Ok(got)
    }
}
