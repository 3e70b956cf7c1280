//! Reading of a tar stream as in Go's `archive/tar`. Lengths in headers are not trusted.

use std::io::Read;

use crate::error::ArchiveError;

const BLOCK: usize = 512;
/// Maximum size of an extended header in bytes, as in Go.
const MAX_EXTENDED: u64 = 1 << 20;

/// Header of an entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// Length in bytes according to the header.
    pub(super) size: u64,
    /// Type byte.
    pub(super) kind: u8,
    /// Whether the entry is a directory, by type or by mode.
    pub(super) is_directory: bool,
}

impl Entry {
    /// Whether the entry has no content, regardless of its size: links, devices, directories.
    fn has_no_content(&self) -> bool {
        matches!(self.kind, b'1'..=b'6')
    }
}

/// Reader of tar entries.
pub(super) struct Tar<R> {
    input: R,
    /// Number of unread bytes of the current entry. They are followed by `padding` bytes.
    content: u64,
    padding: u64,
}

/// Values of extended headers, which apply to the next entry.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<R: Read> Tar<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            content: 0,
            padding: 0,
        }
    }

    /// Returns the next entry, or `None` at the end. Calls `count` for every header, including extended
    /// ones.
    pub(super) fn next(
        &mut self,
        count: &mut dyn FnMut() -> Result<(), ArchiveError>,
    ) -> Result<Option<Entry>, ArchiveError> {
        let mut extended = Extended::default();
        loop {
            count()?;
            let Some(block) = self.read_header_block()? else {
                return Ok(None);
            };
            let mut entry = parse_header(&block)?;
            match entry.kind {
                b'x' => {
                    let records = self.read_extended(&entry)?;
                    read_pax(&records, &mut extended)?;
                }
                b'L' => extended.path = Some(until_nul(&self.read_extended(&entry)?).to_vec()),
                b'K' => drop(self.read_extended(&entry)?),
                b'S' => return Err(ArchiveError::Sparse),
                b'g' => {
                    drop(self.read_extended(&entry)?);
                    return Ok(Some(entry));
                }
                _ => {
                    self.apply_extended(&mut entry, extended);
                    return Ok(Some(entry));
                }
            }
        }
    }

    fn apply_extended(&mut self, entry: &mut Entry, extended: Extended) {
        if let Some(path) = extended.path {
            entry.name = path;
        }
        if let Some(size) = extended.size {
            entry.size = size;
        }
        if entry.kind == 0 {
            entry.kind = if entry.name.ends_with(b"/") { b'5' } else { b'0' };
        }
        entry.is_directory |= entry.kind == b'5';
        self.start_content(if entry.has_no_content() { 0 } else { entry.size });
    }

    fn start_content(&mut self, size: u64) {
        self.content = size;
        self.padding = size.next_multiple_of(BLOCK as u64) - size;
    }

    /// Reads the remaining content of the current entry, but not more than `limit` bytes.
    pub(super) fn content(&mut self, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let wanted = self.content.min(limit);
        let mut data = Vec::with_capacity(wanted.min(64 << 10) as usize);
        let got = (&mut self.input)
            .take(wanted)
            .read_to_end(&mut data)
            .map_err(|error| gzip_error(&error))?;
        if (got as u64) < wanted {
            return Err(ArchiveError::Truncated);
        }
        self.content -= wanted;
        Ok(data)
    }

    fn read_extended(&mut self, entry: &Entry) -> Result<Vec<u8>, ArchiveError> {
        if entry.size > MAX_EXTENDED {
            return Err(ArchiveError::FieldTooLong);
        }
        self.start_content(entry.size);
        self.content(MAX_EXTENDED)
    }

    fn read_header_block(&mut self) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
        self.skip_content()?;
        let Some(block) = self.read_block()? else {
            return Ok(None);
        };
        if block != [0; BLOCK] {
            return Ok(Some(block));
        }
        match self.read_block()? {
            Some(second) if second != [0; BLOCK] => Err(ArchiveError::Header),
            _ => Ok(None),
        }
    }

    fn skip_content(&mut self) -> Result<(), ArchiveError> {
        let content = std::mem::take(&mut self.content);
        let padding = std::mem::take(&mut self.padding);
        let mut sink = std::io::sink();
        let mut discard = |length| std::io::copy(&mut (&mut self.input).take(length), &mut sink);
        let skipped = discard(content).map_err(|error| gzip_error(&error))?;
        if skipped < content {
            return Err(ArchiveError::Truncated);
        }
        discard(padding).map_err(|error| gzip_error(&error))?;
        Ok(())
    }

    fn read_block(&mut self) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest).map_err(|error| gzip_error(&error))? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(ArchiveError::Truncated),
                got => filled += got,
            }
        }
        Ok(Some(block))
    }
}

/// Converts an error of the decompressor to Go's error.
pub(super) fn gzip_error(error: &std::io::Error) -> ArchiveError {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return ArchiveError::Truncated;
    }
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<ArchiveError>())
    {
        Some(ArchiveError::Ratio(limit)) => ArchiveError::Ratio(*limit),
        _ if error.to_string().contains("header") => ArchiveError::NotGzip,
        _ => ArchiveError::Gzip(error.to_string()),
    }
}

fn parse_header(block: &[u8; BLOCK]) -> Result<Entry, ArchiveError> {
    let field = |from: usize, length: usize| block.get(from..from + length).unwrap_or_default();
    check_sum(block, parse_number(field(148, 8))?)?;
    let mode = parse_number(field(100, 8))?;
    for (from, length) in [(108, 8), (116, 8), (136, 12)] {
        parse_number(field(from, length))?;
    }
    let size = u64::try_from(parse_number(field(124, 12))?).map_err(|_| ArchiveError::Header)?;
    let mut name = until_nul(field(0, 100)).to_vec();
    if field(257, 6) == b"ustar\0" {
        let prefix = until_nul(field(345, 155));
        if !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
    }
    let kind = block.get(156).copied().unwrap_or_default();
    Ok(Entry {
        name,
        size,
        kind,
        is_directory: mode & 0o170_000 == 0o040_000,
    })
}

/// Checks the sum of the header, computed with blanks in place of the sum itself. Old archivers used signed
/// bytes, so both variants are accepted.
fn check_sum(block: &[u8; BLOCK], claimed: i64) -> Result<(), ArchiveError> {
    let sum = |bytes: &[u8]| -> (i64, i64) {
        bytes.iter().fold((0, 0), |(sum, high), byte| {
            (sum + i64::from(*byte), high + i64::from(byte >> 7))
        })
    };
    let (all, high) = sum(block);
    let (field, field_high) = sum(block.get(148..156).unwrap_or_default());
    let unsigned = all - field + 8 * i64::from(b' ');
    let signed = unsigned - 256 * (high - field_high);
    if claimed == unsigned || claimed == signed {
        Ok(())
    } else {
        Err(ArchiveError::Header)
    }
}

/// Parses octal text, or a binary number if the first bit is set.
fn parse_number(field: &[u8]) -> Result<i64, ArchiveError> {
    match field.split_first() {
        Some((first, rest)) if first & 0x80 != 0 => parse_binary(*first, rest),
        _ => parse_octal(field),
    }
}

fn parse_octal(field: &[u8]) -> Result<i64, ArchiveError> {
    let text = trim_field(field, |byte| byte == b' ' || byte == 0);
    let text = until_nul(text);
    if text.is_empty() {
        return Ok(0);
    }
    let text = std::str::from_utf8(text).map_err(|_| ArchiveError::Header)?;
    i64::from_str_radix(text, 8)
        .ok()
        .filter(|_| !text.starts_with(['+', '-']))
        .ok_or(ArchiveError::Header)
}

fn parse_binary(first: u8, rest: &[u8]) -> Result<i64, ArchiveError> {
    let invert: u8 = if first & 0x40 == 0 { 0 } else { 0xff };
    let mut value: u64 = u64::from((first ^ invert) & 0x7f);
    for byte in rest {
        if value >> 56 != 0 {
            return Err(ArchiveError::Header);
        }
        value = value << 8 | u64::from(byte ^ invert);
    }
    let value = i64::try_from(value).map_err(|_| ArchiveError::Header)?;
    Ok(if invert == 0 { value } else { !value })
}

fn trim_field(field: &[u8], blank: impl Fn(u8) -> bool) -> &[u8] {
    let start = field.iter().position(|byte| !blank(*byte)).unwrap_or(field.len());
    let end = field
        .iter()
        .rposition(|byte| !blank(*byte))
        .map_or(start, |at| at + 1);
    field.get(start..end).unwrap_or_default()
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Parses records of the form `LENGTH KEY=VALUE\n`.
fn read_pax(mut records: &[u8], extended: &mut Extended) -> Result<(), ArchiveError> {
    while !records.is_empty() {
        let (key, value, rest) = pax_record(records).ok_or(ArchiveError::Header)?;
        records = rest;
        match key {
            b"path" => extended.path = (!value.is_empty()).then(|| value.to_vec()),
            b"size" => {
                let text = std::str::from_utf8(value).map_err(|_| ArchiveError::Header)?;
                extended.size = if text.is_empty() {
                    None
                } else {
                    Some(text.parse().map_err(|_| ArchiveError::Header)?)
                };
            }
            _ if key.starts_with(b"GNU.sparse.") => return Err(ArchiveError::Sparse),
            _ => {}
        }
    }
    Ok(())
}

fn pax_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(records.get(..space)?).ok()?.parse().ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let body = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (body.get(..equals)?, body.get(equals + 1..)?);
    let nul_in = |text: &[u8]| text.contains(&0);
    let is_path = matches!(key, b"path" | b"linkpath");
    let invalid = key.is_empty() || nul_in(key) || (is_path && nul_in(value));
    (!invalid).then_some((key, value, rest))
}
