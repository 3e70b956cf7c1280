//! Runs the injection over a stream of documents.

use std::borrow::Cow;
use std::ops::Range;

use crate::document::{self, Treated};
use crate::split::documents;
use crate::{InjectError, Options, Outcome, Report};

/// Injects into every workload of `input`, or takes the injected away, as `options` say.
///
/// An object that cannot be treated is reported with [`Action::Failed`](crate::Action) and stays as it is;
/// the others are treated all the same. Whether that is good enough is the caller's choice.
pub fn run<'a>(input: &'a [u8], options: &Options) -> Result<Outcome<'a>, InjectError> {
    if input.starts_with(b"\xFF\xFE") || input.starts_with(b"\xFE\xFF") {
        return Err(InjectError::Utf16);
    }
    let parts = parts(input, options.threads);
    let treated = treat_all(input, &parts, options);
    let mut stream = Stream {
        input,
        kept: 0,
        text: Vec::new(),
        counted: (0, 0),
        reports: Vec::new(),
    };
    for (range, treated) in treated.into_iter().flatten() {
        stream.take(range.start, range.end, treated);
    }
    Ok(stream.finish())
}

/// Below this a thread costs more than it saves.
const WORTH_A_THREAD: usize = 256 << 10;

/// The documents, in runs of about the same size, one per thread.
fn parts(input: &[u8], threads: usize) -> Vec<Vec<Range<usize>>> {
    let most = threads.min(input.len() / WORTH_A_THREAD).max(1);
    let share = input.len() / most + 1;
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

/// Results of documents with changes or reports, in order.
type Part = Vec<(Range<usize>, Treated)>;

fn treat_all(input: &[u8], parts: &[Vec<Range<usize>>], options: &Options) -> Vec<Part> {
    let treat = |part: &[Range<usize>]| -> Part {
        let treated = part.iter().map(|range| {
            let text = input.get(range.clone()).unwrap_or_default();
            (range.clone(), document::treat(text, options))
        });
        treated.filter(|(_, treated)| !treated.is_nothing()).collect()
    };
    let Some((first, others)) = parts.split_first() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|part| scope.spawn(|| treat(part))).collect();
        let mut all = vec![treat(first)];
        all.extend(others.into_iter().map(|other| match other.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        all
    })
}

struct Stream<'a> {
    input: &'a [u8],
    /// How much of the input is dealt with in `text`.
    kept: usize,
    /// What was written, from the first change on.
    text: Vec<u8>,
    /// Bytes in which lines were counted, and how many lines that were.
    counted: (usize, usize),
    reports: Vec<Report>,
}

impl<'a> Stream<'a> {
    fn take(&mut self, start: usize, end: usize, treated: Treated) {
        if !treated.reports.is_empty() {
            let lines = self.lines_before(start);
            let shifted = treated
                .reports
                .into_iter()
                .map(|report| shift(report, start, lines));
            self.reports.extend(shifted);
        }
        if let Some(text) = treated.text {
            if self.text.is_empty() {
                self.text.reserve(self.input.len() + self.input.len() / 8);
            }
            self.text
                .extend_from_slice(self.input.get(self.kept..start).unwrap_or_default());
            self.text.extend_from_slice(&text);
            self.kept = end;
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
        let text = if self.kept == 0 && self.text.is_empty() {
            Cow::Borrowed(self.input)
        } else {
            self.text
                .extend_from_slice(self.input.get(self.kept..).unwrap_or_default());
            Cow::Owned(self.text)
        };
        Outcome {
            text,
            reports: self.reports,
        }
    }
}

/// A report about a document as one about the stream.
fn shift(mut report: Report, bytes: usize, lines: usize) -> Report {
    let findings = report.findings.iter_mut().map(|finding| &mut finding.place);
    for place in findings.chain([&mut report.place]) {
        place.offset += bytes;
        place.line += lines;
    }
    report
}
