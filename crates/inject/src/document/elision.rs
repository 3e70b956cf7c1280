//! Processes a document without the values that no rule reads, such as environments and scripts: each value
//! is replaced by a token, and each token in the result by its value.
//!
//! *Invariant:* the result equals the result of the whole document. If a token was moved or its
//! surroundings changed, the whole document must be processed.

use std::io::Write as _;
use std::ops::Range;

use mainstay_yaml::{Elision, ElisionRules, elidable_values};
use memchr::memmem;

use super::Processed;
use crate::{Place, PodTemplatePath, Report, lines};

#[cfg(test)]
mod tests;

/// Minimum length of an elided value in bytes.
pub(super) const MIN_ELISION: usize = 64;

/// Keys whose values are read by rules, or whose type matters. Values below them may be elided.
const KEPT_KEYS: &[&str] = &[
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

/// Keys whose values are read in full, so that nothing below them is elided.
const OPAQUE_KEYS: &[&str] = &["annotations"];

/// Words that a rule may search for anywhere: reserved names, and marks of earlier injections.
const RESERVED_WORDS: [&[u8]; 2] = [b"contrast", b"mainstay"];

const TOKEN_PREFIX: &[u8] = b"elided-value-";

/// Applies `process` to `text` without values of at least `min` bytes that no rule reads. `None` if the
/// whole document must be processed.
pub(super) fn process_elided(
    text: &[u8],
    paths: &[PodTemplatePath],
    min: usize,
    process: impl Fn(&[u8]) -> Processed,
) -> Option<Processed> {
    if memmem::find(text, TOKEN_PREFIX).is_some() {
        return None;
    }
    let pins = reserved_word_offsets(text);
    let rules = ElisionRules {
        kept: &kept_keys(paths),
        opaque: OPAQUE_KEYS,
        pins: &pins,
        min_len: min,
    };
    let elisions = elidable_values(text, &rules).filter(|elisions| !elisions.is_empty())?;
    let elided = ElidedText::new(text, &elisions)?;
    let mut processed = process(&elided.text);
    if processed.failure.is_some() {
        return None;
    }
    if let Some(new) = &processed.text {
        processed.text = Some(elided.restore(new)?);
    }
    for report in &mut processed.reports {
        elided.restore_report(report)?;
    }
    Some(processed)
}

/// Returns the keys whose values are read by rules, including the keys of the user's pod template paths.
fn kept_keys(paths: &[PodTemplatePath]) -> Vec<&str> {
    let named = paths.iter().flat_map(|path| &path.path);
    let named = named.map(|key| key.trim_end_matches("[]"));
    KEPT_KEYS.iter().copied().chain(named).collect()
}

/// Returns the sorted offsets of all reserved words.
fn reserved_word_offsets(text: &[u8]) -> Vec<usize> {
    let mut offsets: Vec<usize> = RESERVED_WORDS
        .iter()
        .flat_map(|word| memmem::find_iter(text, word))
        .collect();
    offsets.sort_unstable();
    offsets
}

/// A text in which tokens replace the elided values.
struct ElidedText<'t> {
    original: &'t [u8],
    text: Vec<u8>,
    parts: Vec<Part>,
}

/// An elided value.
struct Part {
    /// Range of the value in the original.
    range: Range<usize>,
    /// Range of its token in the elided text.
    token: Range<usize>,
    /// Number of line breaks in this and all earlier values.
    line_breaks: usize,
    /// Line number of the token in the elided text, starting at 1.
    line: usize,
    /// Column after the value in the original minus the column after its token.
    column_shift: isize,
    flow: bool,
    /// Number of bytes after the value that belong to its last node.
    tail: usize,
}

impl<'t> ElidedText<'t> {
    fn new(original: &'t [u8], elisions: &[Elision]) -> Option<Self> {
        let mut elided = Self {
            original,
            text: Vec::with_capacity(original.len() / 4),
            parts: Vec::with_capacity(elisions.len()),
        };
        let (mut at, mut line_breaks) = (0, 0);
        let (mut position, mut original_position) = (LineColumn::default(), LineColumn::default());
        for (number, elision) in elisions.iter().enumerate() {
            let range = elision.range.clone();
            let (between, value) = (original.get(at..range.start)?, original.get(range.clone())?);
            elided.text.extend_from_slice(between);
            let start = elided.text.len();
            write_token(&mut elided.text, number, elision.flow);
            let token = start..elided.text.len();
            position = position.after(between).after(elided.text.get(token.clone())?);
            original_position = original_position.after(between).after(value);
            line_breaks += memchr::memchr_iter(b'\n', value).count();
            let range_end = range.end;
            at = range_end;
            elided.parts.push(Part {
                range,
                token,
                line_breaks,
                line: position.line + 1,
                column_shift: original_position.column as isize - position.column as isize,
                flow: elision.flow,
                tail: if elision.block_scalar {
                    blank_lines(original.get(range_end..)?)
                } else {
                    0
                },
            });
        }
        elided.text.extend_from_slice(original.get(at..)?);
        Some(elided)
    }

    /// Replaces the tokens in `new` by their values; `None` if a token is missing or was moved.
    fn restore(&self, new: &[u8]) -> Option<Vec<u8>> {
        let mut text =
            Vec::with_capacity(new.len() + self.original.len() - self.text.len().min(self.original.len()));
        if self.has_changed_record(new) {
            return None;
        }
        let mut at = 0;
        let mut found = memmem::find_iter(new, TOKEN_PREFIX);
        for part in &self.parts {
            let token = self.text.get(part.token.clone())?;
            let prefix = memmem::find(token, TOKEN_PREFIX)?;
            let start = found.next()?.checked_sub(prefix)?;
            let end = start + token.len();
            if new.get(start..end) != Some(token) || !self.has_same_surroundings(part, new, start, end) {
                return None;
            }
            text.extend_from_slice(new.get(at..start)?);
            text.extend_from_slice(self.original.get(part.range.clone())?);
            at = end;
        }
        text.extend_from_slice(new.get(at..)?);
        found.next().is_none().then_some(text)
    }

    /// Whether the surroundings of a token in `new` are unchanged. In block style, the text before it on its
    /// line must be the same, and a block scalar at the end of the value must not include the text after it.
    fn has_same_surroundings(&self, part: &Part, new: &[u8], start: usize, end: usize) -> bool {
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

    /// Whether the number of replaced containers in undo records changed; such a container may contain
    /// tokens.
    fn has_changed_record(&self, new: &[u8]) -> bool {
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
            if memmem::find(text.as_bytes(), TOKEN_PREFIX).is_some() {
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
        let column_shift = on_line.map_or(0, |part| part.column_shift);
        Some(Place {
            line: place.line + before.map_or(0, |part| part.line_breaks),
            column: place.column.checked_add_signed(column_shift)?,
            offset,
            len: end.checked_sub(offset)?,
        })
    }

    /// Returns the last part whose token starts before `offset`.
    fn part_before(&self, offset: usize) -> Option<&Part> {
        let count = self.parts.partition_point(|part| part.token.start < offset);
        self.parts.get(count.checked_sub(1)?)
    }
}

/// Returns the offset in the original; `None` if `offset` is inside the token of `before`.
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

/// A position as line and column, both starting at 0.
#[derive(Clone, Copy, Default)]
struct LineColumn {
    line: usize,
    column: usize,
}

impl LineColumn {
    /// Returns the position after `text`, which starts at this position.
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

/// Returns the next line with content after the line that contains offset `at`.
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
    let token = std::str::from_utf8(TOKEN_PREFIX).unwrap_or_default();
    // Writing to memory cannot fail.
    let _ = write!(text, "{before}{token}{number:x}-{after}");
}
