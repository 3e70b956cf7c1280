//! Tests the structure, the escaping and the size of pages.

use serde_json::Value;

use super::Footer;
use crate::report::{Elapsed, Report, Service, SpanResult, WorkloadSpan};

fn page(report: &Report) -> String {
    super::page(report, None)
}

/// Elements without an end tag.
const VOID: [&str; 2] = ["meta", "!doctype"];

/// Returns all start tags in order. Panics if tags are not balanced.
fn tags(page: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::<String>::new(), Vec::new());
    let after_style = page.split_once("<style>").unwrap();
    let (style, body) = after_style.1.split_once("</style>").unwrap();
    assert!(!style.contains('<'));
    let markup = format!("{}<style></style>{body}", after_style.0);
    for piece in markup.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') && !tag.contains('\n'), "{piece:?}");
        let name = tag
            .split([' ', '/'])
            .find(|word| !word.is_empty())
            .unwrap()
            .to_lowercase();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "{piece:?}");
        } else {
            all.push(name.clone());
            if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

fn count(page: &str, what: &str) -> usize {
    page.matches(what).count()
}

/// Prepends `with` to all free text in a report.
fn prefix_strings(value: &mut Value, with: &str, at: &str) {
    // Enum values are not free text.
    const WORDS: [&str; 6] = ["method", "outcome", "severity", "result", "change", "kind"];
    match value {
        // Prepended, because a trailing newline must stay at the end.
        Value::String(text) => text.insert_str(0, with),
        Value::Array(all) => all.iter_mut().for_each(|one| prefix_strings(one, with, at)),
        Value::Object(all) => {
            for (key, one) in all.iter_mut() {
                let is_word = WORDS.contains(&key.as_str()) && one.is_string();
                let is_free = key == "kind" && !["findings", "phases"].contains(&at);
                if !is_word || is_free {
                    let at = if at.is_empty() { key.clone() } else { at.to_owned() };
                    prefix_strings(one, with, &at);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_page_has_a_bar_per_workload_and_phase() {
    let report = Report::sample();
    let page = page(&report);
    tags(&page);
    let bars = |class: &str| count(&page, &format!("class=\"bar {class}\"")) - 1;
    assert_eq!(bars("migrated"), 4);
    assert_eq!(bars("failed"), 1);
    assert_eq!(bars("unfinished"), 0);
    assert_eq!(bars("phase"), report.phases.len());
    assert_eq!(count(&page, "<figure"), report.services.len());
    for text in [
        "shop/slow",
        "not ready 5m0s after its restart",
        "no endpoint for 4.5s",
        "Completes with errors",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_page_has_no_scripts_and_no_external_resources() {
    let page = page(&Report::sample());
    let tags = tags(&page);
    for forbidden in [
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "a",
        "use",
        "foreignobject",
    ] {
        assert!(!tags.iter().any(|tag| tag == forbidden), "{forbidden}");
    }
    for forbidden in [
        "http:",
        "https:",
        "//",
        "src=",
        "href=",
        "style=\"",
        " on",
        "@import",
        "@font-face",
    ] {
        let found = page
            .replace("</", "")
            .find(forbidden)
            .filter(|_| forbidden != " on");
        assert_eq!(found, None, "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_are_escaped() {
    let clean = tags(&page(&Report::sample()));
    for hostile in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onload='alert(1)",
        "</title></style></svg><svg onload=alert(1)>",
        "--><!--",
        "]]>",
        "&lt;script&gt;",
        "\u{202e}\u{0}\u{1b}[2J\u{feff}",
        "{{7*7}}${x}",
    ] {
        let mut value = serde_json::to_value(Report::sample()).unwrap();
        prefix_strings(&mut value, hostile, "");
        let report: Report = serde_json::from_value(value).unwrap();
        let page = page(&report);
        assert_eq!(tags(&page), clean, "{hostile:?}");
        assert!(!page.contains('\u{202e}') && !page.contains('\u{0}') && !page.contains('\u{1b}'));
    }
}

#[test]
fn the_same_report_produces_the_same_page() {
    assert_eq!(page(&Report::sample()), page(&Report::sample()));
    tags(&page(&Report::default()));
}

fn large(count: u32, batch: u32) -> Report {
    let mut report = Report::sample();
    report.workloads = (0..count)
        .map(|number| WorkloadSpan {
            namespace: format!("namespace-{:03}", number % 1_000),
            name: format!("workload-{number:05}"),
            kind: "Deployment".into(),
            batch: number / batch + 1,
            replicas: 3,
            start: Elapsed::from_secs(u64::from(number / batch) * 40),
            end: Elapsed::from_secs(u64::from(number / batch) * 40 + 10),
            result: if number % 999 == 998 {
                SpanResult::Failed
            } else {
                SpanResult::Migrated
            },
            reason: String::new(),
            message: String::new(),
            fewest_ready: 3,
        })
        .collect();
    let service = report.services.first().unwrap().clone();
    report.services = vec![service; count as usize];
    report.totals.duration = Elapsed::from_secs(u64::from(count / batch) * 40);
    report
}

#[test]
fn many_workloads_are_grouped() {
    for (count, batch) in [(10_000, 10), (10_000, 1), (10_000, 10_000), (301, 1)] {
        let report = large(count, batch);
        let page = page(&report);
        tags(&page);
        let folds = self::count(&page, "<details class=\"group\">");
        assert!((30..=60).contains(&folds), "{folds} of {count} by {batch}");
        let failed = report
            .workloads
            .iter()
            .filter(|span| span.result == SpanResult::Failed)
            .count();
        let groups = self::count(&page, "<title>Batch");
        let bars = self::count(&page, "<title>Deployment namespace-");
        assert_eq!(
            (bars, groups),
            (count as usize, folds),
            "{count} by {batch}, {failed} failed"
        );
        assert!(page.len() < 8_000_000, "{}", page.len());
    }
}

#[test]
fn the_page_is_bounded_and_failures_are_drawn_first() {
    let mut report = large(60_000, 10);
    let mut hostile = report.findings.first().unwrap().clone();
    hostile.what = "<".repeat(100_000);
    report.findings = vec![hostile; 5_000];
    let object = report.objects.first().unwrap().clone();
    report.objects = vec![object; 5_000];
    for object in &mut report.objects {
        object
            .fields
            .iter_mut()
            .for_each(|field| field.diff = Some("+<\n".repeat(50_000)));
    }
    let page = page(&report);
    assert_eq!(count(&page, "Deployment namespace-"), 10_000);
    let failed = report
        .workloads
        .iter()
        .filter(|span| span.result == SpanResult::Failed)
        .count();
    assert!(count(&page, "class=\"bar failed\"") > failed);
    assert!(page.len() < 24_000_000, "{}", page.len());
}

fn service(points: &[(u64, u32)], interrupted: u64) -> Service {
    Service {
        namespace: "a".into(),
        name: "b".into(),
        desired: 2,
        fewest: points.iter().map(|(_, ready)| *ready).min().unwrap_or_default(),
        points: points
            .iter()
            .map(|(at, ready)| crate::report::Point {
                at: Elapsed(*at),
                ready: *ready,
            })
            .collect(),
        interrupted: Elapsed(interrupted),
    }
}

#[test]
fn a_short_interruption_is_visible() {
    let mut report = Report::sample();
    report.totals.duration = Elapsed::from_secs(100_000);
    report.services = vec![service(&[(0, 2), (50_000_000, 0), (50_000_200, 2)], 200)];
    let page = page(&report);
    assert!(
        page.contains("<path class=\"area\" d=\"M0 52V4H0V4H120V52H121V4H240V52Z\"/>"),
        "{page}"
    );
    assert!(
        page.contains("<rect class=\"gap\" x=\"120\" y=\"0\" width=\"3\""),
        "{page}"
    );
}

#[test]
fn long_names_are_shown_in_full() {
    let mut report = Report::sample();
    let name = format!("{}-eu-west-1", "checkout-".repeat(27));
    for span in &mut report.workloads {
        span.name.clone_from(&name);
    }
    for service in &mut report.services {
        service.name.clone_from(&name);
    }
    let page = page(&report);
    let shown = count(&page, &format!("/{name}</span>"));
    assert_eq!(shown, report.workloads.len() + report.services.len());
}

#[test]
fn the_footer_names_date_versions_and_command() {
    let footer = Footer {
        date: "2026-11-18 13:00 UTC".into(),
        version: "0.1.0".into(),
        command: "mainstay rehearse '<b>' --to v1.29.1".into(),
    };
    let page = super::page(&Report::sample(), Some(&footer));
    tags(&page);
    let (_, foot) = page.split_once("<footer>").unwrap();
    for text in [
        "2026-11-18 13:00 UTC",
        "Mainstay 0.1.0",
        "v1.28.2 to v1.29.1",
        "mainstay rehearse &#39;&lt;b&gt;&#39; --to v1.29.1",
    ] {
        assert!(foot.contains(text), "{text}: {foot}");
    }
}
