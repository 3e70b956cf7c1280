//! One input through the engine: takes its text and the options, gives its reports and what is to be delivered.

use std::io::{self, Read, Write};

use mainstay_inject::{Finding, InjectError, Options, Report, run};
use tempfile::SpooledTempFile;

use super::chunk::{Chunks, Origin};
use super::content::{self, Content};
use super::diff;
use super::inputs::{Input, reason};
use super::output::{Plan, Target};
use super::stage::Stage;

/// What became of one input.
pub(super) struct Treated {
    /// What the user calls it.
    pub(super) name: String,
    /// Whether its text is another one now.
    pub(super) changed: bool,
    /// Its workloads.
    pub(super) objects: Vec<Told>,
    /// Why it could not be read or written.
    pub(super) error: Option<String>,
    /// Whether it was the writing: that is never good enough.
    pub(super) unwritable: bool,
    /// What goes to standard output or into the one file.
    pub(super) payload: Payload,
}

/// Text on its way out.
pub(super) enum Payload {
    /// It goes elsewhere, or nowhere.
    None,
    /// A short one.
    Text(Vec<u8>),
    /// A long one.
    Spool(SpooledTempFile),
}

/// A report with the source lines its findings point at.
pub(super) struct Told {
    pub(super) report: Report,
    /// One per finding.
    pub(super) excerpts: Vec<Excerpt>,
}

/// A part of a source line that fits a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    /// Characters before the caret.
    pub(super) indent: usize,
    /// Carets.
    pub(super) width: usize,
}

/// Why an input was given up.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{}", reason(.0))]
    Read(#[from] io::Error),
    #[error("{}", reason(.0))]
    Write(io::Error),
    #[error(transparent)]
    Engine(#[from] InjectError),
}

/// Treats one input; whatever goes wrong is part of the answer.
pub(super) fn treat(input: &Input, options: &Options, plan: &Plan, stage: &Stage) -> Treated {
    let mut treated = Treated {
        name: input.name.clone(),
        changed: false,
        objects: Vec::new(),
        error: None,
        unwritable: false,
        payload: Payload::None,
    };
    if let Err(trouble) = fill(&mut treated, input, options, plan, stage) {
        treated.unwritable = matches!(trouble, Trouble::Write(_));
        treated.error = Some(trouble.to_string());
    }
    treated
}

fn fill(
    treated: &mut Treated,
    input: &Input,
    options: &Options,
    plan: &Plan,
    stage: &Stage,
) -> Result<(), Trouble> {
    let target = plan.target(input);
    match content::open(input)? {
        Content::Long(reader) if target != Target::Diff => long(treated, reader, options, &target, stage),
        content => short(treated, &content.whole()?, options, &target, stage),
    }
}

fn short(
    treated: &mut Treated,
    text: &[u8],
    options: &Options,
    target: &Target,
    stage: &Stage,
) -> Result<(), Trouble> {
    let outcome = run(text, options)?;
    treated.changed = outcome.changed();
    match target {
        Target::Nowhere => {}
        Target::Replace(_) | Target::Diff if !treated.changed => {}
        Target::Replace(path) | Target::Write(path) => {
            stage.write(path, &outcome.text).map_err(Trouble::Write)?;
        }
        Target::Stream => treated.payload = Payload::Text(outcome.text.to_vec()),
        Target::Diff => treated.payload = Payload::Text(diff::unified(&treated.name, text, &outcome.text)),
    }
    treated.objects = told_all(outcome.reports, text);
    Ok(())
}

/// The reports of a whole text with their excerpts.
pub(super) fn told_all(reports: Vec<Report>, text: &[u8]) -> Vec<Told> {
    let told = |report| told(report, text, Origin::default());
    reports.into_iter().map(told).collect()
}

/// What is held in memory of a stream before it goes to a file.
const SPOOL: usize = 8 << 20;

fn long(
    treated: &mut Treated,
    reader: Box<dyn Read>,
    options: &Options,
    target: &Target,
    stage: &Stage,
) -> Result<(), Trouble> {
    match target {
        Target::Replace(path) | Target::Write(path) => {
            let mut pending = stage.create(path).map_err(Trouble::Write)?;
            pump(treated, reader, options, &mut pending)?;
            if treated.changed || matches!(target, Target::Write(_)) {
                pending.keep();
            }
        }
        Target::Stream => {
            let mut spool = tempfile::spooled_tempfile(SPOOL);
            pump(treated, reader, options, &mut spool)?;
            treated.payload = Payload::Spool(spool);
        }
        Target::Nowhere | Target::Diff => pump(treated, reader, options, &mut io::sink())?,
    }
    Ok(())
}

fn pump(
    treated: &mut Treated,
    reader: Box<dyn Read>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let mut chunks = Chunks::new(reader);
    while let Some((origin, text)) = chunks.next()? {
        let outcome = run(&text, options)?;
        treated.changed |= outcome.changed();
        out.write_all(&outcome.text).map_err(Trouble::Write)?;
        treated.objects.extend(
            outcome
                .reports
                .into_iter()
                .map(|report| told(report, &text, origin)),
        );
    }
    Ok(())
}

/// The report with its excerpts, and its places counted from the start of the input.
fn told(mut report: Report, text: &[u8], origin: Origin) -> Told {
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
    Told { report, excerpts }
}

/// So many characters of a source line are shown.
const WIDTH: usize = 120;

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
    framed(head.trim_start_matches('\u{feff}'), tail, width)
}

/// A line cut to what fits, the place in its first half.
fn framed(head: &str, tail: &str, width: usize) -> Excerpt {
    let indent = head.chars().count();
    let cut = indent.saturating_sub(WIDTH / 2);
    let mut text = String::new();
    if cut > 0 {
        text.push('…');
    }
    text.extend(head.chars().skip(cut).map(plain));
    let indent = text.chars().count();
    let room = WIDTH.saturating_sub(indent);
    text.extend(tail.chars().take(room).map(plain));
    if tail.chars().nth(room).is_some() {
        text.push('…');
    }
    Excerpt {
        text,
        indent,
        width: width.clamp(1, room.max(1)),
    }
}

/// A terminal must not be driven by a manifest.
fn plain(letter: char) -> char {
    match letter {
        '\t' => '\t',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, tail: &str, width: usize, expected: (&str, usize, usize)) {
        let found = framed(head, tail, width);
        assert_eq!((found.text.as_str(), found.indent, found.width), expected);
    }

    #[test]
    fn lines_fit_the_terminal() {
        check("a: ", "b c", 1, ("a: b c", 3, 1));
        check("a: ", "", 0, ("a: ", 3, 1));
        check("\ta: \u{1b}[31m", "x", 1, ("\ta: \u{fffd}[31mx", 9, 1));
        let long = "x".repeat(500);
        let found = framed(&long, &long, 500);
        assert_eq!(found.text.chars().count(), WIDTH + 1);
        assert_eq!((found.indent, found.width), (61, WIDTH - 61));
    }
}
