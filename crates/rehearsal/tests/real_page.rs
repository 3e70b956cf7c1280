//! Tests the pages of real rehearsals with both methods in a real browser: the visible content is compared
//! with the JSON of the same report. `SCREENSHOTS=DIR` stores the screenshots.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::collections::BTreeSet;

use mainstay_rehearsal::report::{Method, SpanResult};
use mainstay_rehearsal::{RehearsalRequest, Report, html};
use mainstay_testkit::browser::{Browser, Screenshot, View};
use serde_json::{Value, json};

use support::many::many;
use support::{batched, istio, mixed_workloads, report, snapshot, upgrade};

/// Script that returns the visible contents of a page.
const SEEN: &str = r"(() => {
    const seen = it => { const box = it.getBoundingClientRect(); return it.checkVisibility() && box.width > 0 && box.height > 0; };
    const all = selector => [...document.querySelectorAll(selector)].filter(seen);
    const words = selector => all(selector).map(it => it.textContent.trim());
    const tiles = Object.fromEntries(all('.tile').map(it => [it.querySelector('dt').textContent, it.querySelector('dd').textContent]));
    return {
        title: document.title,
        heading: document.querySelector('h1').textContent,
        outcome: words('.outcome .badge')[0],
        tiles,
        phases: all('#timeline > .gantt .bar.phase').length,
        heads: words('#timeline > .gantt .head'),
        migrated: all('#timeline > .gantt .bar.migrated').length,
        failed: all('#timeline > .gantt .bar.failed').map(it => it.closest('.row').querySelector('.label').textContent),
        stretches: all('details.group').length,
        findings: all('#findings li').flatMap(it => {
            const names = [...it.querySelectorAll('.name')].map(name => name.textContent);
            const what = it.querySelector('p').textContent.slice(names.join(', ').length + 2);
            return names.map(name => [name, what]);
        }),
        services: all('#services figure').length,
    };
})()";

struct Page {
    browser: Browser,
    seen: Value,
    address: String,
    _directory: tempfile::TempDir,
}

fn open(report: &Report) -> Page {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("upgrade.html");
    std::fs::write(&file, html::page(report, None)).unwrap();
    let mut browser = Browser::start().unwrap();
    browser.open(&file, View::default()).unwrap();
    let seen = browser.evaluate(SEEN).unwrap();
    Page {
        browser,
        seen,
        address: format!("file://{}", file.display()),
        _directory: directory,
    }
}

/// Panics if the page has errors, sends requests, or has a screenshot with empty parts.
fn check_page(page: &mut Page, name: &str) {
    assert_eq!(page.browser.console_errors(), Vec::<Value>::new(), "{name}");
    assert_eq!(page.browser.requests(), [page.address.as_str()], "{name}");
    let sizes = page
        .browser
        .evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        .unwrap();
    assert_eq!(sizes[0], sizes[1], "{name}: the page is wider than its window");
    let picture = page.browser.screenshot().unwrap();
    if let Some(directory) = std::env::var_os("SCREENSHOTS") {
        let file = std::path::Path::new(&directory).join(format!("{name}.png"));
        std::fs::write(file, &picture.png).unwrap();
    }
    let (width, height) = (sizes[1].as_u64().unwrap(), sizes[2].as_u64().unwrap());
    let (colors, empty) = measure(&picture, width, height);
    assert!(colors > 20, "{name}: only {colors} colors");
    assert!(empty < 900, "{name}: {empty} consecutive rows are empty");
}

/// Returns the number of colors in a grid of pixels, and the largest number of consecutive rows of a single
/// color.
fn measure(picture: &Screenshot, width: u64, height: u64) -> (usize, usize) {
    let (mut colors, mut empty, mut longest) = (BTreeSet::new(), 0, 0);
    for y in 0..usize::try_from(height).unwrap() {
        let places = (0..usize::try_from(width).unwrap()).step_by(3);
        let row: BTreeSet<[u8; 3]> = places.map(|x| picture.colour(x, y).unwrap()).collect();
        empty = if row.len() == 1 { empty + 1 } else { 0 };
        longest = longest.max(empty);
        colors.extend(row);
    }
    (colors.len(), longest)
}

/// Checks the parts that do not depend on the chart: heading, outcome, totals and findings.
fn check_text(seen: &Value, report: &Value) {
    let upgrade = &report["upgrade"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(
        text(&seen["title"]),
        format!(
            "Rehearsal: {} {} to {}",
            text(&upgrade["istio"]),
            text(&upgrade["from"]),
            text(&upgrade["to"])
        )
    );
    assert_eq!(seen["heading"], "Istio default v1.28.2 to v1.29.1");
    let totals = &report["totals"];
    for (tile, total) in [
        ("migrated", "migrated"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("batches", "batches"),
        ("pods replaced", "pods"),
        ("namespaces relabeled", "namespaces"),
        ("services interrupted", "servicesInterrupted"),
        ("operator writes", "writes"),
    ] {
        assert_eq!(seen["tiles"][tile], totals[total].to_string(), "{tile}");
    }
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.map(|one| json!([one["subject"], one["what"]]));
    // The page groups findings by kind.
    let sorted = |findings: Vec<Value>| {
        let mut texts: Vec<String> = findings.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    let seen_findings = seen["findings"].as_array().unwrap().clone();
    assert_eq!(sorted(seen_findings), sorted(findings.collect()));
    assert_eq!(seen["phases"], report["phases"].as_array().unwrap().len());
}

/// Returns the workloads with this result, named as in the labels of the bars.
fn workloads_with_result(report: &Report, result: SpanResult) -> Vec<String> {
    let spans = report.workloads.iter().filter(|span| span.result == result);
    spans
        .map(|span| format!("{}/{}", span.namespace, span.name))
        .collect()
}

#[test]
fn a_real_upgrade_is_drawn_bar_by_bar_with_both_methods() {
    let objects = snapshot(&istio(&batched(2, "10s")), mixed_workloads());
    for (name, method) in [("embedded", Method::Embedded), ("calculated", Method::Calculated)] {
        let request = RehearsalRequest {
            readiness_overrides: [("shop/slow".to_owned(), None)].into(),
            method: Some(method),
            ..upgrade()
        };
        let report = report(&objects, &request);
        assert_eq!(report.method, method);
        let mut page = open(&report);
        let seen = page.seen.clone();
        check_text(&seen, &serde_json::to_value(&report).unwrap());
        assert_eq!(seen["outcome"], "Completes with errors", "{name}");
        assert_eq!(
            seen["failed"],
            json!(workloads_with_result(&report, SpanResult::Failed)),
            "{name}"
        );
        assert_eq!(seen["failed"], json!(["shop/slow"]), "{name}");
        assert_eq!(
            seen["migrated"],
            workloads_with_result(&report, SpanResult::Migrated).len(),
            "{name}"
        );
        let heads: Vec<String> = report
            .batches
            .iter()
            .map(|batch| format!("Batch {} ", batch.number))
            .collect();
        let shown = seen["heads"].as_array().unwrap();
        assert_eq!(shown.len(), heads.len(), "{name}: {shown:?}");
        for (shown, head) in shown.iter().zip(&heads) {
            assert!(shown.as_str().unwrap().starts_with(head), "{name}: {shown}");
        }
        assert_eq!(seen["services"], report.services.len(), "{name}");
        check_page(&mut page, &format!("real-{name}"));
    }
}

#[test]
fn a_real_upgrade_of_many_workloads_is_drawn_in_groups_with_every_bar() {
    let request = RehearsalRequest {
        readiness_overrides: [("space-0031/app-00317".to_owned(), None)].into(),
        ..upgrade()
    };
    let report = report(&many(400), &request);
    assert_eq!(
        report.method,
        Method::Calculated,
        "this many workloads are calculated"
    );
    let mut page = open(&report);
    let seen = page.seen.clone();
    check_text(&seen, &serde_json::to_value(&report).unwrap());
    let stretches = seen["stretches"].as_u64().unwrap();
    assert_eq!(
        seen["migrated"].as_u64().unwrap() + seen["failed"].as_array().unwrap().len() as u64,
        stretches,
        "one bar per group"
    );
    assert_eq!(seen["failed"].as_array().unwrap().len(), 1, "{seen}");
    check_page(&mut page, "real-many");
    let bars = page.browser.evaluate(
        "[...document.querySelectorAll('details.group')].map(it => { it.open = true; return it.querySelectorAll('.bar').length; }).reduce((a, b) => a + b)",
    );
    assert_eq!(bars.unwrap(), 400);
    let failed = page.browser.evaluate(
        "[...document.querySelectorAll('details.group .bar.failed')].map(it => it.closest('.row').querySelector('.label').textContent)",
    );
    assert_eq!(failed.unwrap(), json!(["space-0031/app-00317"]));
}
