//! Text report on standard error.

use std::io::{self, BufWriter, Write};

use mainstay_inject::{Finding, Report, Severity};

use super::counted;
use super::process::{Excerpt, Processed, ReportWithExcerpts};
use super::summary::Summary;
use crate::ui::snippet::{self, Mark};
use crate::ui::style::{ERROR, FRAME, HINT, WARNING};

/// Prints a line per workload with its findings, and a summary.
pub(super) fn print(all: &[Processed], summary: &Summary, quiet: bool) {
    let mut out = BufWriter::new(anstream::stderr().lock());
    // A closed stderr is ignored.
    let _ = lines(all, summary, quiet, &mut out).and_then(|()| out.flush());
}

fn lines(all: &[Processed], summary: &Summary, quiet: bool, out: &mut dyn Write) -> io::Result<()> {
    for processed in all {
        for object in &processed.objects {
            if !quiet {
                writeln!(out, "{}:{}", processed.name, line(&object.report))?;
            }
            findings(&processed.name, object, out)?;
        }
        if let Some(error) = &processed.error {
            writeln!(out, "{ERROR}Error:{ERROR:#} {}: {error}", processed.name)?;
        }
    }
    if quiet {
        Ok(())
    } else {
        writeln!(out, "{}", closing(summary))
    }
}

/// `LINE: KIND NAMESPACE/NAME: ACTION (REASON)`.
fn line(report: &Report) -> String {
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
    let (action, reason) = (report.action.code(), report.reason.code());
    format!("{}: {kind}{name}: {action} ({reason})", report.place.line)
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

fn closing(summary: &Summary) -> String {
    let counts = [
        (summary.injected, "injected"),
        (summary.removed, "removed"),
        (summary.unchanged, "unchanged"),
        (summary.skipped, "skipped"),
        (summary.objects_failed, "failed"),
    ];
    let parts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
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
