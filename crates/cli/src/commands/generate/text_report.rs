//! Text report on standard error.

use std::io::{self, BufWriter, Write};

use mainstay_inject::{Action, Finding, Report, Severity};

use super::args::Args;
use super::counted;
use super::process::{Excerpt, Processed, ReportWithExcerpts};
use super::summary::Summary;
use crate::ui::snippet::{self, Mark};
use crate::ui::style::{ERROR, FRAME, HINT, WARNING};

/// Settings of the text report.
#[derive(Clone, Copy)]
pub(super) struct Wording {
    /// Whether only findings are printed.
    pub(super) quiet: bool,
    /// Whether nothing is written: with `--check` and `--diff`.
    pub(super) dry_run: bool,
}

impl Wording {
    /// Returns the settings for the flags.
    pub(super) fn from_args(args: &Args) -> Self {
        Self {
            quiet: args.quiet,
            dry_run: args.check || args.diff,
        }
    }

    /// Returns the prefix of an action that changes the input.
    fn prefix(self) -> &'static str {
        if self.dry_run { "would be " } else { "" }
    }
}

/// Prints a warning.
pub(super) fn warn(message: &str) {
    let mut out = anstream::stderr().lock();
    // A closed stderr is ignored.
    let _ = writeln!(out, "{WARNING}Warning:{WARNING:#} {message}");
}

/// Prints a line per workload with its findings, and a summary.
pub(super) fn print(all: &[Processed], summary: &Summary, wording: Wording) {
    let mut out = BufWriter::new(anstream::stderr().lock());
    // A closed stderr is ignored.
    let _ = lines(all, summary, wording, &mut out).and_then(|()| out.flush());
}

fn lines(all: &[Processed], summary: &Summary, wording: Wording, out: &mut dyn Write) -> io::Result<()> {
    for processed in all {
        for object in &processed.objects {
            if !wording.quiet {
                writeln!(out, "{}:{}", processed.name, line(&object.report, wording))?;
            }
            findings(&processed.name, object, out)?;
        }
        if let Some(error) = &processed.error {
            writeln!(out, "{ERROR}Error:{ERROR:#} {}: {error}", processed.name)?;
        }
    }
    if wording.quiet {
        Ok(())
    } else {
        writeln!(out, "{}", closing(summary, wording))
    }
}

/// Formats a report as `LINE: KIND NAMESPACE/NAME: ACTION (REASON)`.
fn line(report: &Report, wording: Wording) -> String {
    let kind = if report.kind.is_empty() {
        "document"
    } else {
        &report.kind
    };
    let namespace = report
        .namespace
        .as_deref()
        .map(|it| format!("{it}/"))
        .unwrap_or_default();
    let name = if report.name.is_empty() {
        String::new()
    } else {
        format!(" {namespace}{}", report.name)
    };
    let prefix = match report.action {
        Action::Injected | Action::Removed => wording.prefix(),
        Action::Unchanged | Action::Skipped | Action::Failed => "",
    };
    let (action, reason) = (report.action.code(), report.reason.code());
    format!("{}: {kind}{name}: {prefix}{action} ({reason})", report.place.line)
}

fn findings(file: &str, object: &ReportWithExcerpts, out: &mut dyn Write) -> io::Result<()> {
    for (finding, excerpt) in object.report.findings.iter().zip(&object.excerpts) {
        draw(file, finding, excerpt, out)?;
    }
    Ok(())
}

/// Prints a finding like an error: message, location, source line, hint.
fn draw(file: &str, finding: &Finding, excerpt: &Excerpt, out: &mut dyn Write) -> io::Result<()> {
    let (style, word, mark) = match finding.severity {
        Severity::Error => (ERROR, "Error", Mark::Error),
        Severity::Warning => (WARNING, "Warning", Mark::Warning),
        Severity::Note => (HINT, "Note", Mark::Note),
    };
    let (line, column) = (finding.place.line, finding.place.column);
    let margin = " ".repeat(line.to_string().len());
    writeln!(out, "{style}{word}:{style:#} {}", finding.message)?;
    writeln!(
        out,
        "{margin}{FRAME}-->{FRAME:#} {file}:{line}:{column} ({})",
        finding.code.code()
    )?;
    let marked = snippet::Excerpt {
        line,
        text: &excerpt.text,
        indent: Some(excerpt.indent),
        width: excerpt.width,
    };
    out.write_all(snippet::draw(&marked, mark).as_bytes())?;
    match &finding.help {
        Some(help) => writeln!(out, "{HINT}hint:{HINT:#} {help}"),
        None => Ok(()),
    }
}

fn closing(summary: &Summary, wording: Wording) -> String {
    let prefix = wording.prefix();
    let counts = [
        (summary.injected, prefix, "injected"),
        (summary.removed, prefix, "removed"),
        (summary.unchanged, "", "unchanged"),
        (summary.skipped, "", "skipped"),
        (summary.objects_failed, "", "failed"),
    ];
    let parts: Vec<_> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, prefix, word)| format!("{count} {prefix}{word}"))
        .collect();
    let of = if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join(", "))
    };
    let files = counted(summary.files, "input", "inputs");
    format!(
        "{files}, {}{of}",
        counted(summary.workloads, "workload", "workloads")
    )
}
