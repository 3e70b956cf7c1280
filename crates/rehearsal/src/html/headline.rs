//! Header of the page with the upgrade, its outcome and totals.

use std::fmt::Write as _;

use super::pluralize;
use super::text::text;
use crate::report::{Conclusion, Elapsed, Method, Report, Totals};

/// Renders title, outcome and totals.
pub(super) fn section(report: &Report) -> String {
    let upgrade = &report.upgrade;
    let (class, word) = match report.conclusion() {
        Conclusion::Completes => ("good", "Completes"),
        Conclusion::CompletesWithErrors => ("warn", "Completes with errors"),
        Conclusion::Fails => ("bad", "Fails"),
        Conclusion::NothingMoves => ("note", "No workload moves"),
        Conclusion::DoesNotComplete => ("bad", "Does not complete"),
    };
    let mut out = format!(
        "<header>\n<p class=\"kicker\">Rehearsal of an upgrade</p>\n<h1>Istio {} <span class=\"from\">{}</span> <span class=\"arrow\">to</span> {}</h1>\n\
         <p class=\"outcome\"><span class=\"badge {class}\">{word}</span> {}</p>\n",
        text(&upgrade.istio),
        text(&upgrade.from),
        text(&upgrade.to),
        text(&outcome_sentence(report)),
    );
    for supposition in upgrade.suppositions.iter().take(20) {
        let _ = writeln!(out, "<p class=\"supposition\">{}</p>", text(supposition));
    }
    let _ = writeln!(out, "<p class=\"source\">{}</p>", text(&origin_sentence(report)));
    out.push_str("</header>\n");
    out.push_str(&render_totals(&report.totals));
    out
}

fn outcome_sentence(report: &Report) -> String {
    let totals = &report.totals;
    let mut out = format!(
        "{} of {} migrated to {} in {}",
        totals.migrated,
        pluralize(totals.workloads, "workload"),
        report.upgrade.to_revision,
        totals.duration
    );
    for (count, words) in [
        (totals.failed, "failed"),
        (totals.skipped, "skipped"),
        (totals.services_interrupted, "interrupted"),
    ] {
        let _ = match (count, words) {
            (0, _) => Ok(()),

            (count, "interrupted") => write!(out, "; {} interrupted", pluralize(count, "service")),
            (count, words) => write!(out, "; {count} {words}"),
        };
    }
    out.push('.');
    out
}

fn origin_sentence(report: &Report) -> String {
    let method = match report.method {
        Method::Embedded => "simulated on an embedded Kubernetes API",
        Method::Calculated => "planned by the operator with calculated rollouts",
    };
    format!(
        "From {}; seed {}; {method} in virtual time. The cluster was not modified.",
        report.input.source, report.seed
    )
}

fn render_totals(totals: &Totals) -> String {
    let number = |count: usize| count.to_string();
    let time = |elapsed: Elapsed| elapsed.to_string();
    let tiles = [
        ("total time", time(totals.duration), ""),
        ("migration time", time(totals.moving), ""),
        ("migrated", number(totals.migrated), "good"),
        ("failed", number(totals.failed), "bad"),
        ("skipped", number(totals.skipped), "warn"),
        ("batches", number(totals.batches), ""),
        ("pods replaced", number(totals.pods), ""),
        ("namespaces relabeled", number(totals.namespaces), ""),
        ("services interrupted", number(totals.services_interrupted), "bad"),
        ("operator writes", number(totals.writes), ""),
    ];
    let mut out = String::from("<dl class=\"tiles\">\n");
    for (name, value, class) in tiles {
        let class = if value == "0" { "" } else { class };
        let _ = writeln!(
            out,
            "<div class=\"tile {class}\"><dt>{name}</dt><dd>{}</dd></div>",
            text(&value)
        );
    }
    out.push_str("</dl>\n");
    out
}
