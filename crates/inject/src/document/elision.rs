//! Processes a document without the values that no rule reads, such as environments and scripts: each is
//! replaced by a token, and the tokens in the result by the values.
//!
//! *Invariant:* the result is that of the whole document. If a token was moved or its surroundings changed,
//! the whole document must be processed.

use std::io::Write as _;
use std::ops::Range;

use mainstay_yaml::{Elision, ElisionRules, elidable_values};
use memchr::memmem;

use super::Treated;
use crate::{Place, PodTemplatePath, Report, lines};

#[cfg(test)]
mod tests;

/// Minimum length of an elided value in bytes.
pub(super) const MIN_ELISION: usize = 64;

/// Keys with values that rules read, or whose type counts. Values below them may be elided.
const KEPT: &[&str] = &[
    "apiVersion",
    "containerPort",
    "containers",
    "devicePath",
    "emptyDir",
    "hostNetwork",
    "initContainers",
    "items",
    "jobTemplate",
    "kind",
    "metadata",
    "mountPath",
    "name",
    "namespace",
    "ports",
    "runtimeClassName",
    "spec",
    "template",
    "volumeClaimTemplates",
    "volumeDevices",
    "volumeMounts",
    "volumes",
];

/// Keys with values that are read completely.
const OPAQUE: &[&str] = &["annotations"];

/// Words that a rule may look for anywhere: reserved names, and marks of earlier injections.
const WORDS: [&[u8]; 2] = [b"contrast", b"mainstay"];

const TOKEN: &[u8] = b"elided-value-";

/// Applies `treat` to `text` without values of at least `min` bytes that no rule reads. `None` if the whole
/// document must be processed.
pub(super) fn treat_elided(
    text: &[u8],
    paths: &[PodTemplatePath],
    min: usize,
    treat: impl Fn(&[u8]) -> Treated,
) -> Option<Treated> {
    if memmem::find(text, TOKEN).is_some() {
        return None;
    }
    let pins = pins(text);
    let rules = ElisionRules {
        kept: &kept_keys(paths),
        opaque: OPAQUE,
        pins: &pins,
        min_len: min,
    };
    let elisions = elidable_values(text, &rules).filter(|elisions| !elisions.is_empty())?;
    let short = Short::new(text, &elisions)?;
    let mut treated = treat(&short.text);
    if treated.failure.is_some() {
        return None;
    }
    if let Some(new) = &treated.text {
        treated.text = Some(short.restored(new)?);
    }
    for report in &mut treated.reports {
        short.restore_report(report)?;
    }
    Some(treated)
}

/// Returns the keys with values that rules read, with those of paths that the user named.
fn kept_keys(paths: &[PodTemplatePath]) -> Vec<&str> {
    let named = paths.iter().flat_map(|path| &path.path);
    let named = named.map(|key| key.trim_end_matches("[]"));
    KEPT.iter().copied().chain(named).collect()
}

/// Returns the offsets of all words, sorted.
fn pins(text: &[u8]) -> Vec<usize> {
    let mut pins: Vec<usize> = WORDS
        .iter()
        .flat_map(|word| memmem::find_iter(text, word))
        .collect();
    pins.sort_unstable();
    pins
}

/// A text without its elided values.
struct Short<'t> {
    original: &'t [u8],
    text: Vec<u8>,
    parts: Vec<Part>,
}

/// An elided value.
struct Part {
    /// Range of the value in the original.
    range: Range<usize>,
    /// Range of its token in the short text.
    token: Range<usize>,
    /// Line breaks in this and all earlier values.
    line_breaks: usize,
    /// Number of the token's line in the short text, from 1.
    line: usize,
    /// Column after the value in the original minus that after its token.
    moved: isize,
    flow: bool,
    /// Bytes after the value that belong to its last node.
    tail: usize,
}

impl<'t> Short<'t> {
    fn new(original: &'t [u8], elisions: &[Elision]) -> Option<Self> {
        let mut short = Self {
            original,
            text: Vec::with_capacity(original.len() / 4),
            parts: Vec::with_capacity(elisions.len()),
        };
        let (mut at, mut line_breaks) = (0, 0);
        let (mut here, mut original_here) = (Spot::default(), Spot::default());
        for (number, elision) in elisions.iter().enumerate() {
            let range = elision.range.clone();
            let (between, value) = (original.get(at..range.start)?, original.get(range.clone())?);
            short.text.extend_from_slice(between);
            let start = short.text.len();
            write_token(&mut short.text, number, elision.flow);
            let token = start..short.text.len();
            here = here.after(between).after(short.text.get(token.clone())?);
            original_here = original_here.after(between).after(value);
            line_breaks += memchr::memchr_iter(b'\n', value).count();
            let range_end = range.end;
            at = range_end;
            short.parts.push(Part {
                range,
                token,
                line_breaks,
                line: here.line + 1,
                moved: original_here.column as isize - here.column as isize,
                flow: elision.flow,
                tail: if elision.block_scalar {
                    blank_lines(original.get(range_end..)?)
                } else {
                    0
                },
            });
        }
        short.text.extend_from_slice(original.get(at..)?);
        Some(short)
    }

    /// Replaces the tokens in `new`; `None` if one is missing or moved.
    fn restored(&self, new: &[u8]) -> Option<Vec<u8>> {
        let mut text =
            Vec::with_capacity(new.len() + self.original.len() - self.text.len().min(self.original.len()));
        if self.has_new_record(new) {
            return None;
        }
        let mut at = 0;
        let mut found = memmem::find_iter(new, TOKEN);
        for part in &self.parts {
            let token = self.text.get(part.token.clone())?;
            let prefix = memmem::find(token, TOKEN)?;
            let start = found.next()?.checked_sub(prefix)?;
            let end = start + token.len();
            if new.get(start..end) != Some(token) || !self.is_same_place(part, new, start, end) {
                return None;
            }
            text.extend_from_slice(new.get(at..start)?);
            text.extend_from_slice(self.original.get(part.range.clone())?);
            at = end;
        }
        text.extend_from_slice(new.get(at..)?);
        found.next().is_none().then_some(text)
    }

    /// Reports whether a token of `new` in a block has the same text before it on its line, and after it
    /// nothing that a block scalar in the value would include.
    fn is_same_place(&self, part: &Part, new: &[u8], start: usize, end: usize) -> bool {
        if part.flow {
            return true;
        }
        let indent = |line: &[u8]| line.iter().take_while(|byte| **byte == b' ').count();
        let old_head = self
            .text
            .get(lines::start(&self.text, part.token.start)..part.token.start);
        let new_head = new.get(lines::start(new, start)..start);
        let (Some(old_head), Some(new_head)) = (old_head, new_head) else {
            return false;
        };
        let next = next_line(new, end);
        let is_outside = next.is_none_or(|next| indent(next) <= indent(new_head));
        old_head == new_head && (is_outside || next == next_line(&self.text, part.token.end))
    }

    /// Reports whether a record of `new` contains replaced containers, perhaps with tokens.
    fn has_new_record(&self, new: &[u8]) -> bool {
        let count = |text| memmem::find_iter(text, b"replaced").count();
        self.parts.first().is_some_and(|part| part.flow) && count(new) != count(&self.text)
    }

    fn restore_report(&self, report: &mut Report) -> Option<()> {
        let texts = [&report.api_version, &report.kind, &report.name, &report.path];
        let findings = report
            .findings
            .iter()
            .flat_map(|finding| finding.help.iter().chain([&finding.message]));
        let all = texts.into_iter().chain(&report.namespace).chain(findings);
        for text in all {
            if memmem::find(text.as_bytes(), TOKEN).is_some() {
                return None;
            }
        }
        let places = report.findings.iter_mut().map(|finding| &mut finding.place);
        for place in places.chain([&mut report.place]) {
            *place = self.original_place(*place)?;
        }
        Some(())
    }

    fn original_place(&self, place: Place) -> Option<Place> {
        let before = self.part_before(place.offset);
        let offset = original_offset(before, place.offset)?;
        let end = place.offset + place.len;
        let last = self.part_before(end);
        let is_end = |part: &&Part| part.token.end == end;
        let tail = last.filter(is_end).map_or(0, |part| part.tail);
        let end = original_offset(last, end)? + tail;
        let on_line = before.filter(|part| part.line == place.line);
        let moved = on_line.map_or(0, |part| part.moved);
        Some(Place {
            line: place.line + before.map_or(0, |part| part.line_breaks),
            column: place.column.checked_add_signed(moved)?,
            offset,
            len: end.checked_sub(offset)?,
        })
    }

    /// Returns the last part with a token that starts before `offset`.
    fn part_before(&self, offset: usize) -> Option<&Part> {
        let behind = self.parts.partition_point(|part| part.token.start < offset);
        self.parts.get(behind.checked_sub(1)?)
    }
}

/// Returns the offset in the original; `None` inside the token of the part before.
fn original_offset(before: Option<&Part>, offset: usize) -> Option<usize> {
    match before {
        None => Some(offset),
        Some(part) => Some(part.range.end + offset.checked_sub(part.token.end)?),
    }
}

/// Returns the length of a line break and the blank lines after it.
fn blank_lines(text: &[u8]) -> usize {
    let mut end = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if !line.trim_ascii().is_empty() || !line.ends_with(b"\n") {
            break;
        }
        end += line.len();
    }
    end
}

/// Lines and columns before a position.
#[derive(Clone, Copy, Default)]
struct Spot {
    line: usize,
    column: usize,
}

impl Spot {
    /// Returns the position after `text`.
    fn after(self, text: &[u8]) -> Self {
        let characters = |text: &[u8]| text.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        match memchr::memrchr(b'\n', text) {
            None => Self {
                column: self.column + characters(text),
                ..self
            },
            Some(at) => Self {
                line: self.line + memchr::memchr_iter(b'\n', text).count(),
                column: characters(text.get(at + 1..).unwrap_or_default()),
            },
        }
    }
}

/// Returns the next line with content after the line of the byte at `at`.
fn next_line(text: &[u8], at: usize) -> Option<&[u8]> {
    let mut start = lines::end(text, at);
    while start < text.len() {
        let end = lines::end(text, start);
        let line = text.get(start..end)?;
        if !line.trim_ascii().is_empty() {
            return Some(line);
        }
        start = end;
    }
    None
}

fn write_token(text: &mut Vec<u8>, number: usize, flow: bool) {
    let (before, after) = if flow { ("\"", "\"") } else { (" ", "") };
    let token = std::str::from_utf8(TOKEN).unwrap_or_default();
    // Writing to memory cannot fail.
    let _ = write!(text, "{before}{token}{number:x}-{after}");
}
