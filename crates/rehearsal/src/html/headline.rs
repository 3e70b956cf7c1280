//! The top of the page: takes a report, gives what it is about, how it ends, and the sums.

use std::fmt::Write as _;

use super::many;
use super::text::text;
use crate::report::{Method, Moment, Outcome, Report, Totals};

/// Title, verdict, sums.
pub(super) fn section(report: &Report) -> String {
    let upgrade = &report.upgrade;
    let (class, word) = match report.outcome {
        Outcome::Completed => ("good", "Everything moves"),
        Outcome::Failed => ("bad", "Something fails"),
        Outcome::NothingMoves => ("note", "Nothing moves"),
        Outcome::Unfinished => ("warn", "It does not end"),
    };
    let mut out = format!(
        "<header>\n<p class=\"kicker\">Rehearsal of an upgrade</p>\n<h1>Istio {} <span class=\"from\">{}</span> <span class=\"arrow\">to</span> {}</h1>\n\
         <p class=\"verdict\"><span class=\"badge {class}\">{word}</span> {}</p>\n",
        text(&upgrade.istio),
        text(&upgrade.from),
        text(&upgrade.to),
        text(&sentence(report)),
    );
    for supposition in upgrade.suppositions.iter().take(20) {
        let _ = writeln!(out, "<p class=\"supposition\">{}</p>", text(supposition));
    }
    let _ = writeln!(out, "<p class=\"source\">{}</p>", text(&origin(report)));
    out.push_str("</header>\n");
    out.push_str(&tiles(&report.totals));
    out
}

fn sentence(report: &Report) -> String {
    let totals = &report.totals;
    let mut out = format!(
        "{} of {} to {} in {}",
        totals.migrated,
        many(totals.workloads, "workload"),
        report.upgrade.to_revision,
        totals.duration
    );
    for (count, words) in [
        (totals.failed, "fail"),
        (totals.skipped, "left alone"),
        (totals.services_interrupted, "interrupted"),
    ] {
        let _ = match (count, words) {
            (0, _) => Ok(()),
            (count, "fail") => write!(out, "; {count} fail{}", if count == 1 { "s" } else { "" }),
            (count, "interrupted") => write!(out, "; {} interrupted", many(count, "service")),
            (count, words) => write!(out, "; {count} {words}"),
        };
    }
    out.push('.');
    out
}

fn origin(report: &Report) -> String {
    let method = match report.method {
        Method::Embedded => "every write went through an embedded Kubernetes API",
        Method::Calculated => "the operator's planner decided, rolling updates were calculated",
    };
    format!(
        "From {}; seed {}; in virtual time: {method}. Nothing was changed.",
        report.input.source, report.seed
    )
}

fn tiles(totals: &Totals) -> String {
    let number = |count: usize| count.to_string();
    let time = |moment: Moment| moment.to_string();
    let tiles = [
        ("from start to end", time(totals.duration), ""),
        ("moving workloads", time(totals.moving), ""),
        ("moved", number(totals.migrated), "good"),
        ("failed", number(totals.failed), "bad"),
        ("left alone", number(totals.skipped), "warn"),
        ("batches", number(totals.batches), ""),
        ("pods replaced", number(totals.pods), ""),
        ("namespaces relabelled", number(totals.namespaces), ""),
        ("services interrupted", number(totals.services_interrupted), "bad"),
        ("writes of the operator", number(totals.writes), ""),
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
