//! Text output of `mainstay status`.

use std::fmt::Write as _;

use mainstay_mesh::Snapshot;

use crate::report::{IstioReport, Report, RevisionReport, named, referrers, unmanaged_section};
use crate::ui::style::{ERROR, FRAME, GOOD, HINT, WARNING};
use crate::ui::table;

/// Maximum number of referrers listed per revision.
const MAX_REFERRERS: usize = 3;

/// Formats a report.
pub(crate) fn page(report: &Report, snapshot: &Snapshot, wide: bool) -> String {
    let mut out = format!("Operator: {}\n", report.operator.message);
    if report.istios.is_empty() && report.revisions.is_empty() && report.unmanaged.is_empty() {
        out.push_str("\nNo Istio or IstioRevision found.\n");
    }
    for istio in &report.istios {
        out.push_str(&istio_section(istio, report));
    }
    let alone: Vec<&RevisionReport> = report.revisions_of("").collect();
    if !alone.is_empty() {
        out.push_str("\nRevisions without an Istio\n");
        out.push_str(&revision_lines(&alone, ""));
    }
    out.push_str(&unmanaged_section(&report.unmanaged));
    out.push_str(&tag_section(report));
    out.push_str(&use_section(report, snapshot, wide));
    out.push_str(&component_section(report));
    if !report.not_read.is_empty() {
        let rows: Vec<Vec<String>> = report.not_read.iter().map(|line| vec![line.clone()]).collect();
        out.extend(["\nNot read\n", &table::lines("  ", &rows)]);
    }
    out.push_str(&problem_section(report));
    out
}

fn istio_section(istio: &IstioReport, report: &Report) -> String {
    let mut out = format!(
        "\nIstio {}  {}  {}  in namespace {}  {}\n",
        istio.name,
        istio.version,
        istio.strategy,
        istio.namespace,
        colored_state(&istio.state)
    );
    let revisions: Vec<&RevisionReport> = report.revisions_of(&istio.name).collect();
    if revisions.is_empty() {
        out.push_str("  no revision yet\n");
    } else {
        out.push_str(&revision_lines(&revisions, &istio.active_revision));
    }
    if let Some(message) = &istio.migration {
        let _ = writeln!(out, "  migration: {}", table::one_line(message));
    }
    out
}

fn revision_lines(revisions: &[&RevisionReport], active: &str) -> String {
    let head = [
        "REVISION",
        "VERSION",
        "STATE",
        "CONTROL PLANE",
        "IN USE BY",
        "PRUNING",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for revision in revisions {
        let mark = if revision.name == active { "*" } else { "" };
        let when = revision
            .pruned_at
            .as_ref()
            .map(|at| format!(" ({at})"))
            .unwrap_or_default();
        rows.push(vec![
            format!("{}{mark}", revision.name),
            revision.version.clone(),
            revision.state.clone(),
            revision.control_plane.clone(),
            revision.in_use_by.to_string(),
            format!("{}{when}", revision.pruning),
        ]);
    }
    table::lines("  ", &rows)
}

fn tag_section(report: &Report) -> String {
    if report.tags.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["TAG", "TARGET", "REVISION", "STATE", "IN USE BY"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for tag in &report.tags {
        rows.push(vec![
            tag.name.clone(),
            tag.target.clone(),
            if tag.revision.is_empty() {
                "-".to_owned()
            } else {
                tag.revision.clone()
            },
            tag.state.clone(),
            tag.in_use_by.to_string(),
        ]);
    }
    format!("\nTags\n{}", table::lines("  ", &rows))
}

/// Formats the referrers of each revision.
fn use_section(report: &Report, snapshot: &Snapshot, wide: bool) -> String {
    let mut out = String::new();
    for revision in &report.revisions {
        let mut all: Vec<String> = referrers(snapshot, &revision.name)
            .into_iter()
            .map(|(who, _)| who.trim().to_owned())
            .collect();
        // A referrer with two causes is listed once.
        all.dedup();
        if !all.is_empty() {
            let max = if wide { all.len() } else { MAX_REFERRERS };
            let _ = writeln!(out, "  {}: {}", revision.name, named(&all, max));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("\nReferrers\n{out}")
    }
}

fn component_section(report: &Report) -> String {
    let mut out = String::new();
    for one in &report.components {
        let _ = writeln!(
            out,
            "\n{} {}  {}  in namespace {}  {}  {}",
            one.kind,
            one.name,
            one.version,
            one.namespace,
            one.ready,
            colored_state(&one.state)
        );
    }
    out
}

fn problem_section(report: &Report) -> String {
    if report.problems.is_empty() {
        return format!("\n{GOOD}No problems found.{GOOD:#}\n");
    }
    let mut out = format!("\n{ERROR}Problems{ERROR:#}\n");
    for problem in &report.problems {
        let _ = writeln!(
            out,
            "  {} {WARNING}{}{WARNING:#}: {}",
            problem.object,
            problem.reason,
            table::one_line(&problem.message)
        );
        let _ = writeln!(out, "    {HINT}hint:{HINT:#} {}", problem.remedy);
    }
    out
}

fn colored_state(state: &str) -> String {
    match state {
        "Healthy" => format!("{GOOD}{state}{GOOD:#}"),
        "Pending" | "Deleting" => format!("{FRAME}{state}{FRAME:#}"),
        _ => format!("{WARNING}{state}{WARNING:#}"),
    }
}
