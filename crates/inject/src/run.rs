//! Runs the injection over a stream of documents.

use std::borrow::Cow;
use std::ops::Range;

use crate::document::{self, Processed};
use crate::split::documents;
use crate::{InjectError, Options, Outcome, Report};

/// Injects into every workload of `input`, or removes earlier injections, according to `options`.
///
/// An object that cannot be processed is reported with [`Action::Failed`](crate::Action) and left unchanged;
/// all other objects are processed. The caller decides whether to accept such an outcome.
pub fn run<'a>(input: &'a [u8], options: &Options) -> Result<Outcome<'a>, InjectError> {
    if input.starts_with(b"\xFF\xFE") || input.starts_with(b"\xFE\xFF") {
        return Err(InjectError::Utf16);
    }
    let parts = partition(input, options.threads);
    let processed = process_all(input, &parts, options);
    let mut stream = Stream {
        input,
        covered: 0,
        text: Vec::new(),
        counted: (0, 0),
        reports: Vec::new(),
    };
    for (range, processed) in processed.into_iter().flatten() {
        stream.append(range.start, range.end, processed);
    }
    Ok(stream.finish())
}

/// Minimum input per thread in bytes; for less input a thread costs more than it saves.
const MIN_THREAD_INPUT: usize = 256 << 10;

/// Partitions the documents into consecutive groups of about the same size, one per thread.
fn partition(input: &[u8], threads: usize) -> Vec<Vec<Range<usize>>> {
    let count = threads.min(input.len() / MIN_THREAD_INPUT).max(1);
    let share = input.len() / count + 1;
    let mut parts: Vec<Vec<Range<usize>>> = vec![Vec::new()];
    let mut next = share;
    for range in documents(input) {
        if range.start >= next {
            parts.push(Vec::new());
            next += share;
        }
        if let Some(part) = parts.last_mut() {
            part.push(range);
        }
    }
    parts
}

/// Documents of one group with changes or reports, in input order.
type Part = Vec<(Range<usize>, Processed)>;

fn process_all(input: &[u8], parts: &[Vec<Range<usize>>], options: &Options) -> Vec<Part> {
    let process = |part: &[Range<usize>]| -> Part {
        let processed = part.iter().map(|range| {
            let text = input.get(range.clone()).unwrap_or_default();
            (range.clone(), document::process(text, options))
        });
        processed.filter(|(_, processed)| !processed.is_empty()).collect()
    };
    let Some((first, others)) = parts.split_first() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|part| scope.spawn(|| process(part))).collect();
        let mut all = vec![process(first)];
        all.extend(others.into_iter().map(|other| match other.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        all
    })
}

struct Stream<'a> {
    input: &'a [u8],
    /// Length of the input prefix that `text` covers.
    covered: usize,
    /// Output so far; empty until the first change.
    text: Vec<u8>,
    /// An offset, and the number of line breaks before it.
    counted: (usize, usize),
    reports: Vec<Report>,
}

impl<'a> Stream<'a> {
    fn append(&mut self, start: usize, end: usize, processed: Processed) {
        if !processed.reports.is_empty() {
            let lines = self.lines_before(start);
            let shifted = processed
                .reports
                .into_iter()
                .map(|report| shift_report(report, start, lines));
            self.reports.extend(shifted);
        }
        if let Some(text) = processed.text {
            if self.text.is_empty() {
                self.text.reserve(self.input.len() + self.input.len() / 8);
            }
            self.text
                .extend_from_slice(self.input.get(self.covered..start).unwrap_or_default());
            self.text.extend_from_slice(&text);
            self.covered = end;
        }
    }

    fn lines_before(&mut self, at: usize) -> usize {
        let (counted, lines) = self.counted;
        let more = self.input.get(counted..at).unwrap_or_default();
        let lines = lines + memchr::memchr_iter(b'\n', more).count();
        self.counted = (at, lines);
        lines
    }

    fn finish(mut self) -> Outcome<'a> {
        let text = if self.covered == 0 && self.text.is_empty() {
            Cow::Borrowed(self.input)
        } else {
            self.text
                .extend_from_slice(self.input.get(self.covered..).unwrap_or_default());
            Cow::Owned(self.text)
        };
        Outcome {
            text,
            reports: self.reports,
        }
    }
}

/// Converts places in a document to places in the stream. `bytes` and `lines` precede the document.
fn shift_report(mut report: Report, bytes: usize, lines: usize) -> Report {
    let findings = report.findings.iter_mut().map(|finding| &mut finding.place);
    for place in findings.chain([&mut report.place]) {
        place.offset += bytes;
        place.line += lines;
    }
    report
}
