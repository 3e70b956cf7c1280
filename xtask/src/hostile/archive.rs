//! Builds hostile tar archives.

use std::io::Write;

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

/// One entry of a tar archive.
pub(crate) struct Entry<'a> {
    /// Name, written verbatim.
    pub(super) name: &'a str,
    /// The tar type flag: `0` a file, `1` a hard link, `2` a symbolic link, `3` a device.
    pub(super) kind: u8,
    /// Link target.
    pub(super) link: &'a str,
    /// Content.
    pub(super) data: &'a [u8],
}

/// Returns a file entry.
pub(crate) fn file<'a>(name: &'a str, data: &'a [u8]) -> Entry<'a> {
    Entry {
        name,
        kind: b'0',
        link: "",
        data,
    }
}

/// Returns the gzipped archive of `entries`.
pub(super) fn tgz(entries: &[Entry<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar(entries)?)?;
    Ok(encoder.finish()?)
}

/// Returns the archive of `entries` without compression.
pub(crate) fn tar(entries: &[Entry<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for entry in entries {
        bytes.write_all(&header(entry, entry.data.len())?)?;
        bytes.write_all(entry.data)?;
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    Ok(bytes)
}

/// Returns an archive with one file of `size` zeros.
pub(super) fn bomb(name: &str, size: usize) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&header(&file(name, b""), size)?)?;
    let block = vec![0; 1 << 20];
    for _ in 0..size >> 20 {
        encoder.write_all(&block)?;
    }
    encoder.write_all(&[0; 1024])?;
    Ok(encoder.finish()?)
}

fn header(entry: &Entry<'_>, size: usize) -> anyhow::Result<[u8; 512]> {
    let mut block = [0; 512];
    put(&mut block, 0, entry.name.as_bytes())?;
    put(&mut block, 100, b"0000644\0")?;
    put(&mut block, 124, format!("{size:011o}\0").as_bytes())?;
    put(&mut block, 156, &[entry.kind])?;
    put(&mut block, 157, entry.link.as_bytes())?;
    put(&mut block, 257, b"ustar\x0000")?;
    put(&mut block, 148, b"        ")?;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes())?;
    Ok(block)
}

fn put(block: &mut [u8; 512], at: usize, bytes: &[u8]) -> anyhow::Result<()> {
    block
        .get_mut(at..at + bytes.len())
        .context("a field longer than a tar header")?
        .copy_from_slice(bytes);
    Ok(())
}
