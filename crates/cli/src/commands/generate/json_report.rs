//! JSON report. Its format is stable; `version` changes with incompatible changes.

use std::io::Write;

use mainstay_inject::{Finding, Mode, Options, Severity};
use serde::Serialize;

use super::output::Plan;
use super::process::{Processed, ReportWithExcerpts};
use super::summary::Summary;
use crate::commands;
use crate::error::CliError;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    mode: &'static str,
    profile: &'static str,
    summary: &'a Summary,
    files: Vec<FileReport<'a>>,
}

#[derive(Serialize)]
struct FileReport<'a> {
    path: &'a str,
    changed: bool,
    error: Option<&'a str>,
    objects: Vec<ObjectReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReport<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    pod_template_path: &'a str,
    line: usize,
    action: &'static str,
    reason: &'static str,
    findings: Vec<FindingReport<'a>>,
}

#[derive(Serialize)]
struct FindingReport<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    line: usize,
    column: usize,
    length: usize,
    help: Option<&'a str>,
}

/// Prints the report to standard output, or to standard error if standard output carries manifests or a diff.
pub(super) fn print(
    all: &[Processed],
    summary: &Summary,
    options: &Options,
    plan: &Plan,
) -> Result<(), CliError> {
    let document = Document {
        version: 1,
        mode: match options.mode {
            Mode::Inject => "inject",
            Mode::Uninject => "uninject",
        },
        profile: options.profile.name,
        summary,
        files: all.iter().map(file).collect(),
    };
    let mut text = serde_json::to_vec_pretty(&document).map_err(std::io::Error::from)?;
    text.push(b'\n');
    if plan.uses_stdout(all) {
        std::io::stderr().lock().write_all(&text)?;
        return Ok(());
    }
    commands::print(&text)
}

fn file(processed: &Processed) -> FileReport<'_> {
    FileReport {
        path: &processed.name,
        changed: processed.changed,
        error: processed.error.as_deref(),
        objects: processed.objects.iter().map(object).collect(),
    }
}

fn object(processed: &ReportWithExcerpts) -> ObjectReport<'_> {
    let report = &processed.report;
    ObjectReport {
        api_version: &report.api_version,
        kind: &report.kind,
        namespace: report.namespace.as_deref(),
        name: &report.name,
        pod_template_path: &report.path,
        line: report.place.line,
        action: report.action.code(),
        reason: report.reason.code(),
        findings: report.findings.iter().map(finding).collect(),
    }
}

fn finding(finding: &Finding) -> FindingReport<'_> {
    FindingReport {
        severity: severity(finding.severity),
        code: finding.code.code(),
        message: &finding.message,
        line: finding.place.line,
        column: finding.place.column,
        length: finding.place.len,
        help: finding.help.as_deref(),
    }
}

/// Returns the severity as in KRM functions.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "info",
    }
}
