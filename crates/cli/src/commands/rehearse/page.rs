//! Text output of `mainstay rehearse`: outcome, findings, timeline, details.

use std::fmt::Write as _;

use mainstay_rehearsal::Report;
use mainstay_rehearsal::report::{
    Batch, Change, Conclusion, Elapsed, FindingGroup, Method, Outcome, PhaseKind, Severity, SpanResult,
    group_findings,
};

use crate::ui::style::{ERROR, FRAME, GOOD, WARNING};
use crate::ui::table;

/// Maximum number of findings of one severity.
const MAX_FINDINGS: usize = 20;
/// Maximum number of batches, Services and objects.
const MAX_ROWS: usize = 12;

/// Formats a report; the wide format omits nothing.
pub(super) fn page(report: &Report, wide: bool) -> String {
    let mut out = summary(report);
    findings(report, wide, &mut out);
    timeline(report, &mut out);
    batches(report, wide, &mut out);
    if wide {
        workloads(report, &mut out);
    }
    services(report, wide, &mut out);
    objects(report, wide, &mut out);
    rest(report, &mut out);
    out
}

fn many(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

fn summary(report: &Report) -> String {
    let (upgrade, totals) = (&report.upgrade, &report.totals);
    let (style, word) = match report.conclusion() {
        Conclusion::Completes => (GOOD, "completes"),
        Conclusion::CompletesWithErrors => (WARNING, "completes with errors"),
        Conclusion::Fails => (ERROR, "fails"),
        Conclusion::NothingMoves => (WARNING, "moves no workload"),
        Conclusion::DoesNotComplete => (ERROR, "does not complete"),
    };
    let mut out = format!(
        "{style}The upgrade {word}{style:#}: Istio {} from {} to {}, {}\n",
        upgrade.istio,
        upgrade.from,
        upgrade.to,
        match report.outcome {
            Outcome::NothingMoves => "no workload restarted".to_owned(),
            _ => format!(
                "{} of {} migrated in {}, {} failed, {} skipped",
                totals.migrated,
                many(totals.workloads, "workload", "workloads"),
                totals.duration,
                totals.failed,
                totals.skipped
            ),
        }
    );
    let _ = writeln!(
        out,
        "Rehearsed from {}, seed {}, {}",
        report.input.source,
        report.seed,
        method(report)
    );
    out
}

fn method(report: &Report) -> String {
    match report.method {
        Method::Embedded => "on the embedded cluster".to_owned(),
        Method::Calculated => "with calculated rollouts".to_owned(),
    }
}

fn findings(report: &Report, wide: bool, out: &mut String) {
    for (severity, style, word) in [
        (Severity::Error, ERROR, "Errors"),
        (Severity::Warning, WARNING, "Warnings"),
        (Severity::Info, FRAME, "Notes"),
    ] {
        let groups = group_findings(&report.findings);
        let mut found = groups
            .iter()
            .filter(|group| group.severity == severity)
            .peekable();
        if found.peek().is_some() {
            let _ = writeln!(out, "\n{style}{word}{style:#}");
        }
        found.for_each(|group| section(group, wide, out));
    }
}

/// Formats the findings of one kind. Equal findings are printed once, with all affected objects.
fn section(group: &FindingGroup<'_>, wide: bool, out: &mut String) {
    let max = if wide { usize::MAX } else { MAX_FINDINGS };
    let _ = writeln!(
        out,
        "  {FRAME}{} ({}){FRAME:#}",
        group.kind.title(),
        group.count()
    );
    for entry in group.entries.iter().take(max) {
        let listed = entry.subjects.iter().take(max).copied();
        let mut subjects = listed.collect::<Vec<_>>().join(", ");
        if entry.subjects.len() > max {
            let _ = write!(subjects, ", … {} more (-o wide)", entry.subjects.len() - max);
        }
        let _ = writeln!(out, "    {subjects}: {}", table::one_line(entry.what));
        if !entry.remedy.is_empty() {
            let _ = writeln!(out, "      → {}", table::one_line(entry.remedy));
        }
    }
    more(group.entries.len(), max, out);
}

fn more(count: usize, shown: usize, out: &mut String) {
    if count > shown {
        let _ = writeln!(out, "  … and {} more (-o wide)", count - shown);
    }
}

fn timeline(report: &Report, out: &mut String) {
    let _ = writeln!(out, "\n{FRAME}Timeline{FRAME:#}");
    let rows: Vec<Vec<String>> = report
        .phases
        .iter()
        .map(|phase| {
            let name = match phase.kind {
                PhaseKind::ControlPlane => "control plane",
                PhaseKind::Tags => "tags",
                PhaseKind::Namespaces => "namespaces",
                PhaseKind::Batches => "workloads",
                PhaseKind::Pruning => "pruning",
            };
            vec![
                period(phase.start, phase.end),
                name.to_owned(),
                phase.detail.clone(),
            ]
        })
        .collect();
    out.push_str(&table::lines("  ", &rows));
}

fn period(start: Elapsed, end: Elapsed) -> String {
    format!("{start} – {end}")
}

fn batches(report: &Report, wide: bool, out: &mut String) {
    if report.batches.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{FRAME}Batches{FRAME:#}");
    let max = if wide { usize::MAX } else { MAX_ROWS };
    // Failed batches are shown first if there are too many.
    let mut shown: Vec<&Batch> = report
        .batches
        .iter()
        .filter(|batch| batch.failed > 0)
        .take(max)
        .collect();
    let rest = report.batches.iter().filter(|batch| batch.failed == 0);
    shown.extend(rest.take(max.saturating_sub(shown.len())));
    shown.sort_by_key(|batch| batch.number);
    let rows: Vec<Vec<String>> = shown.iter().map(|batch| row(report, batch)).collect();
    out.push_str(&table::lines("  ", &rows));
    more(report.batches.len(), shown.len(), out);
}

fn row(report: &Report, batch: &Batch) -> Vec<String> {
    let names = report
        .workloads
        .iter()
        .filter(|span| span.batch == batch.number)
        .map(|span| {
            let mark = if span.result == SpanResult::Migrated {
                ""
            } else {
                " ✗"
            };
            format!("{}/{}{mark}", span.namespace, span.name)
        });
    let mut names: Vec<String> = names.take(6).collect();
    if batch.workloads > names.len() {
        names.push(format!("… {} more", batch.workloads - names.len()));
    }
    vec![
        batch.number.to_string(),
        period(batch.start, batch.end),
        names.join(" "),
    ]
}

fn workloads(report: &Report, out: &mut String) {
    let _ = writeln!(out, "\n{FRAME}Workloads{FRAME:#}");
    let rows: Vec<Vec<String>> = report
        .workloads
        .iter()
        .map(|span| {
            let result = match span.result {
                SpanResult::Migrated => "migrated",
                SpanResult::Failed => "failed",
                SpanResult::Unfinished => "unfinished",
            };
            let ready = format!("minimum {}/{} ready", span.fewest_ready, span.replicas);
            let name = format!("{} {}/{}", span.kind, span.namespace, span.name);
            vec![
                period(span.start, span.end),
                name,
                result.to_owned(),
                ready,
                span.message.clone(),
            ]
        })
        .collect();
    out.push_str(&table::lines("  ", &rows));
}

/// Formats Services with too few endpoints; all of them in the wide format.
fn services(report: &Report, wide: bool, out: &mut String) {
    let affected = report
        .services
        .iter()
        .filter(|service| wide || service.fewest < service.desired);
    let rows: Vec<Vec<String>> = affected
        .map(|service| {
            let interrupted = if service.interrupted > Elapsed(0) {
                format!("no endpoint for {}", service.interrupted)
            } else {
                String::new()
            };
            vec![
                format!("{}/{}", service.namespace, service.name),
                format!("minimum {} of {} endpoints", service.fewest, service.desired),
                interrupted,
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let max = if wide { usize::MAX } else { MAX_ROWS };
    let _ = writeln!(out, "\n{FRAME}Services{FRAME:#}");
    out.push_str(&table::lines(
        "  ",
        rows.get(..max.min(rows.len())).unwrap_or(&rows),
    ));
    more(rows.len(), max, out);
}

fn objects(report: &Report, wide: bool, out: &mut String) {
    if report.objects.is_empty() {
        return;
    }
    let count = |change| {
        report
            .objects
            .iter()
            .filter(|object| object.change == change)
            .count()
    };
    let _ = writeln!(
        out,
        "\n{FRAME}Control plane{FRAME:#}: {} changed, {} added, {} removed (ignoring version labels)",
        count(Change::Changed),
        count(Change::Added),
        count(Change::Removed)
    );
    for object in &report.objects {
        let sign = match object.change {
            Change::Added => "+",
            Change::Removed => "-",
            Change::Changed => "~",
        };
        let _ = writeln!(out, "  {sign} {} {}", object.kind, object.name);
        if wide {
            for field in &object.fields {
                let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
                let _ = match &field.diff {
                    Some(diff) => writeln!(out, "      {}\n{}", field.path, indented(diff)),
                    None => writeln!(
                        out,
                        "      {}: {} → {}",
                        field.path,
                        side(&field.old),
                        side(&field.new)
                    ),
                };
            }
        }
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().flat_map(|line| ["        ", line, "\n"]);
    lines.collect()
}

fn rest(report: &Report, out: &mut String) {
    let writes: Vec<String> = report
        .writes
        .iter()
        .map(|writes| format!("{} {} {}", writes.count, writes.verb, writes.kind))
        .collect();
    let _ = writeln!(
        out,
        "\n{FRAME}Writes{FRAME:#}: {} ({})",
        report.totals.writes,
        writes.join(", ")
    );
}
