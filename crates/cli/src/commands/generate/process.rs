//! Processes one input with the injection engine.

use std::io::{self, Read, Write};

use mainstay_inject::{Finding, InjectError, Options, Report, run};
use tempfile::SpooledTempFile;

use super::chunk::{Chunks, Origin};
use super::content::{self, Content};
use super::diff;
use super::fingerprint::{Digest, Fingerprint};
use super::inputs::{Input, Source, reason};
use super::output::{Plan, Target};
use super::replacement::Replacement;
use super::transaction::Transaction;

/// Result of an input.
pub(super) struct Processed {
    /// Name as given by the user.
    pub(super) name: String,
    /// Whether its text changed.
    pub(super) changed: bool,
    /// Reports of its workloads.
    pub(super) objects: Vec<ReportWithExcerpts>,
    /// Read or write error.
    pub(super) error: Option<String>,
    /// Whether writing failed, which `--keep-going` does not ignore.
    pub(super) unwritable: bool,
    /// Text for standard output or for the single output file.
    pub(super) payload: Payload,
}

/// Output text.
pub(super) enum Payload {
    /// Written elsewhere or not at all.
    None,
    /// In memory.
    Text(Vec<u8>),
    /// In a temporary file.
    Spool(SpooledTempFile),
}

/// A report with the source lines of its findings.
pub(super) struct ReportWithExcerpts {
    pub(super) report: Report,
    /// One per finding.
    pub(super) excerpts: Vec<Excerpt>,
}

/// Part of a source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    /// Characters before the caret.
    pub(super) indent: usize,
    /// Number of carets.
    pub(super) width: usize,
}

/// Error of an input.
#[derive(Debug, thiserror::Error)]
enum ProcessError {
    #[error("{}", reason(.0))]
    Read(#[from] io::Error),
    #[error("{}", reason(.0))]
    Write(io::Error),
    #[error(transparent)]
    Engine(#[from] InjectError),
}

/// Processes one input; errors are part of the result.
pub(super) fn process(input: &Input, options: &Options, plan: &Plan, transaction: &Transaction) -> Processed {
    let mut processed = Processed {
        name: input.name.clone(),
        changed: false,
        objects: Vec::new(),
        error: None,
        unwritable: false,
        payload: Payload::None,
    };
    if let Err(error) = fill(&mut processed, input, options, plan, transaction) {
        processed.unwritable = matches!(error, ProcessError::Write(_));
        processed.error = Some(error.to_string());
    }
    processed
}

fn fill(
    processed: &mut Processed,
    input: &Input,
    options: &Options,
    plan: &Plan,
    transaction: &Transaction,
) -> Result<(), ProcessError> {
    let target = plan.target(input);
    let observe = |fingerprint| {
        if let Source::File { real, .. } = &input.source {
            transaction.observe(real, fingerprint);
        }
    };
    match content::open(input)? {
        Content::Long(mut reader) if target != Target::Diff => {
            let read = long(processed, &mut reader, options, &target, transaction)?;
            if plan.writes() {
                observe(read.finish());
            }
            Ok(())
        }
        content => {
            let text = content.whole()?;
            short(processed, &text, options, &target, transaction)?;
            // A file that is not replaced may be modified by others.
            if plan.writes() && (processed.changed || !matches!(target, Target::Replace(_))) {
                observe(Fingerprint::from_bytes(&text));
            }
            Ok(())
        }
    }
}

fn short(
    processed: &mut Processed,
    text: &[u8],
    options: &Options,
    target: &Target,
    transaction: &Transaction,
) -> Result<(), ProcessError> {
    let outcome = run(text, options)?;
    processed.changed = outcome.changed();
    match target {
        Target::Nowhere => {}
        Target::Replace(_) | Target::Diff if !processed.changed => {}
        Target::Replace(path) | Target::Write(path) => {
            transaction
                .write(path, &outcome.text)
                .map_err(ProcessError::Write)?;
        }
        Target::Stream => processed.payload = Payload::Text(outcome.text.to_vec()),
        Target::Diff => {
            processed.payload = Payload::Text(diff::unified(&processed.name, text, &outcome.text));
        }
    }
    processed.objects = with_excerpts(outcome.reports, text);
    Ok(())
}

/// Adds excerpts to the reports of a text.
pub(super) fn with_excerpts(reports: Vec<Report>, text: &[u8]) -> Vec<ReportWithExcerpts> {
    let attach = |report| with_excerpt(report, text, Origin::default());
    reports.into_iter().map(attach).collect()
}

/// Maximum size of an output stream in memory.
const MAX_SPOOL_IN_MEMORY: usize = 8 << 20;

fn long(
    processed: &mut Processed,
    reader: &mut dyn Read,
    options: &Options,
    target: &Target,
    transaction: &Transaction,
) -> Result<Digest, ProcessError> {
    match target {
        Target::Replace(path) => {
            let mut replacement = Replacement::new(transaction, path);
            let read = pump(processed, reader, options, |part| {
                replacement.add(part.text, part.changed, part.before)
            })?;
            replacement.keep();
            Ok(read)
        }
        Target::Write(path) => {
            let mut pending = transaction.create(path).map_err(ProcessError::Write)?;
            let read = pump(processed, reader, options, |part| pending.write_all(part.text))?;
            pending.keep();
            Ok(read)
        }
        Target::Stream => {
            let mut spool = tempfile::spooled_tempfile(MAX_SPOOL_IN_MEMORY);
            let read = pump(processed, reader, options, |part| spool.write_all(part.text))?;
            processed.payload = Payload::Spool(spool);
            Ok(read)
        }
        Target::Nowhere | Target::Diff => pump(processed, reader, options, |_| Ok(())),
    }
}

/// Part of the result of a stream.
struct Part<'p> {
    text: &'p [u8],
    changed: bool,
    /// Digest of the original before the part.
    before: &'p Digest,
}

/// Processes a stream in parts and returns its digest.
fn pump(
    processed: &mut Processed,
    reader: &mut dyn Read,
    options: &Options,
    mut write: impl FnMut(Part<'_>) -> io::Result<()>,
) -> Result<Digest, ProcessError> {
    let mut chunks = Chunks::new(reader);
    let mut read = Digest::new();
    while let Some((origin, text)) = chunks.next()? {
        let outcome = run(&text, options)?;
        let changed = outcome.changed();
        processed.changed |= changed;
        let part = Part {
            text: &outcome.text,
            changed,
            before: &read,
        };
        write(part).map_err(ProcessError::Write)?;
        read.update(&text);
        let reports = outcome.reports.into_iter();
        let attach = |report| with_excerpt(report, &text, origin);
        processed.objects.extend(reports.map(attach));
    }
    Ok(read)
}

/// Adds excerpts to a report and makes its positions relative to the start of the input.
fn with_excerpt(mut report: Report, text: &[u8], origin: Origin) -> ReportWithExcerpts {
    let excerpts = report
        .findings
        .iter()
        .map(|finding| excerpt(text, finding))
        .collect();
    let places = report.findings.iter_mut().map(|finding| &mut finding.place);
    for place in places.chain([&mut report.place]) {
        place.offset += origin.offset;
        place.line += origin.lines;
    }
    ReportWithExcerpts { report, excerpts }
}

/// Maximum length of an excerpt.
const MAX_EXCERPT_LEN: usize = 120;

fn excerpt(text: &[u8], finding: &Finding) -> Excerpt {
    let place = finding.place;
    let offset = place.offset.min(text.len());
    let (before, behind) = text.split_at(offset);
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let end = behind
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(behind.len());
    let head = String::from_utf8_lossy(before.get(start..).unwrap_or_default());
    let tail = String::from_utf8_lossy(behind.get(..end).unwrap_or_default());
    let tail = tail.trim_end();
    let width = behind
        .get(..place.len.min(end))
        .map_or(0, |it| String::from_utf8_lossy(it).trim_end().chars().count());
    truncated(head.trim_start_matches('\u{feff}'), tail, width)
}

/// Truncates a line so that the position is in its first half.
fn truncated(head: &str, tail: &str, width: usize) -> Excerpt {
    let indent = head.chars().count();
    let cut = indent.saturating_sub(MAX_EXCERPT_LEN / 2);
    let mut text = String::new();
    if cut > 0 {
        text.push('…');
    }
    text.extend(head.chars().skip(cut).map(plain));
    let indent = text.chars().count();
    let capacity = MAX_EXCERPT_LEN.saturating_sub(indent);
    text.extend(tail.chars().take(capacity).map(plain));
    if tail.chars().nth(capacity).is_some() {
        text.push('…');
    }
    Excerpt {
        text,
        indent,
        width: width.clamp(1, capacity.max(1)),
    }
}

/// Replaces control characters, which could control the terminal.
fn plain(character: char) -> char {
    match character {
        '\t' => '\t',
        character if character.is_control() => '\u{fffd}',
        character => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, tail: &str, width: usize, expected: (&str, usize, usize)) {
        let found = truncated(head, tail, width);
        assert_eq!((found.text.as_str(), found.indent, found.width), expected);
    }

    #[test]
    fn long_lines_are_truncated() {
        check("a: ", "b c", 1, ("a: b c", 3, 1));
        check("a: ", "", 0, ("a: ", 3, 1));
        check("\ta: \u{1b}[31m", "x", 1, ("\ta: \u{fffd}[31mx", 9, 1));
        let long = "x".repeat(500);
        let found = truncated(&long, &long, 500);
        assert_eq!(found.text.chars().count(), MAX_EXCERPT_LEN + 1);
        assert_eq!((found.indent, found.width), (61, MAX_EXCERPT_LEN - 61));
    }
}
