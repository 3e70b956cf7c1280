//! Tests the page in a real browser: visible elements, colors, screen sizes, and that scripts in it are not
//! executed. `SCREENSHOTS=DIR` stores the screenshots.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

use mainstay_rehearsal::html::{self, Footer};
use mainstay_rehearsal::report::{Elapsed, Report, Service, SpanResult, WorkloadSpan};
use mainstay_testkit::browser::{Browser, Screenshot, View};
use serde_json::{Value, json};

/// A page that is open in a browser.
struct Open {
    browser: Browser,
    _directory: tempfile::TempDir,
}

fn open(report: &Report, view: View) -> Open {
    open_with_footer(report, None, view)
}

fn open_with_footer(report: &Report, footer: Option<&Footer>, view: View) -> Open {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.html");
    std::fs::write(&file, html::page(report, footer)).unwrap();
    let mut browser = Browser::start().unwrap();
    browser.open(&file, view).unwrap();
    Open {
        browser,
        _directory: directory,
    }
}

impl Open {
    fn evaluate(&mut self, expression: &str) -> Value {
        self.browser.evaluate(expression).unwrap()
    }

    /// Returns the number of visible elements.
    fn count_visible(&mut self, selector: &str) -> u64 {
        let visible = "(it => { const box = it.getBoundingClientRect(); return it.checkVisibility() && box.width > 0 && box.height > 0; })";
        let count = format!("[...document.querySelectorAll({selector:?})].filter({visible}).length");
        self.evaluate(&count).as_u64().unwrap()
    }

    fn picture(&mut self, name: &str) -> Screenshot {
        let picture = self.browser.screenshot().unwrap();
        if let Some(directory) = std::env::var_os("SCREENSHOTS") {
            let file = std::path::Path::new(&directory).join(format!("{name}.png"));
            std::fs::write(file, &picture.png).unwrap();
        }
        picture
    }

    /// Panics if an element scrolls horizontally.
    fn check_elements(&mut self) {
        let wider = "[...document.querySelectorAll('main *')].filter(it => !it.closest('svg') && it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).overflowX !== 'visible').map(it => it.outerHTML.slice(0, 80))";
        assert_eq!(self.evaluate(wider), json!([]), "elements scroll horizontally");
    }

    /// Panics if the page is wider than its window or has console errors.
    fn check_layout_and_console(&mut self) {
        let widths =
            self.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]");
        assert_eq!(widths[0], widths[1], "the page is wider than its window");
        assert_eq!(self.browser.console_errors(), Vec::<Value>::new());
    }
}

/// Returns the colors of a grid of pixels inside an element.
fn colors(open: &mut Open, picture: &Screenshot, selector: &str) -> Vec<[u8; 3]> {
    let expression = format!(
        "(it => {{ const box = it.getBoundingClientRect(); return [box.x + scrollX, box.y + scrollY, box.width, box.height]; }})(document.querySelector({selector:?}))"
    );
    let found = open.evaluate(&expression);
    let number = |index: usize| found[index].as_f64().unwrap();
    let (x, y, width, height) = (number(0), number(1), number(2), number(3));
    let place = |step: u32, from: f64, size: f64| (from + size * (f64::from(step) + 0.5) / 40.0) as usize;
    let grid = (0..40).flat_map(|row| (0..40).map(move |column| (row, column)));
    grid.map(|(row, column)| {
        picture
            .colour(place(column, x, width), place(row, y, height))
            .unwrap()
    })
    .collect()
}

fn brightness([red, green, blue]: [u8; 3]) -> u32 {
    (u32::from(red) * 3 + u32::from(green) * 6 + u32::from(blue)) / 10
}

fn is_red([red, green, blue]: [u8; 3]) -> bool {
    red > 130 && i32::from(red) - i32::from(green) > 70 && i32::from(red) - i32::from(blue) > 70
}

fn is_green([red, green, blue]: [u8; 3]) -> bool {
    green > 90
        && green > red
        && i32::from(green) - i32::from(blue) > 10
        && i32::from(green) - i32::from(red) > 60
}

#[test]
fn every_bar_is_visible_in_light_and_dark_mode() {
    let report = Report::sample();
    for dark in [false, true] {
        let name = if dark { "dark" } else { "light" };
        let mut page = open(
            &report,
            View {
                dark,
                ..View::default()
            },
        );
        page.check_layout_and_console();
        for (selector, count) in [
            (".gantt .bar.migrated", 4),
            (".gantt .bar.failed", 1),
            (".gantt .bar.unfinished", 0),
            (".gantt .bar.phase", report.phases.len() as u64),
            (".gantt .down", 1),
            ("#services figure", report.services.len() as u64),
            ("#findings .finding .name", report.findings.len() as u64),
            (".badge.bad", 2),
            ("header .badge.warn", 1),
        ] {
            assert_eq!(page.count_visible(selector), count, "{name}: {selector}");
        }
        let picture = page.picture(name);
        let background = brightness(picture.colour(2, 2).unwrap());
        assert!(
            if dark { background < 40 } else { background > 230 },
            "{name}: {background}"
        );
        let failed = colors(&mut page, &picture, ".gantt .bar.failed");
        let red = failed.iter().filter(|colour| is_red(**colour)).count();
        assert!(
            (failed.len() / 10..failed.len() * 8 / 10).contains(&red),
            "{name}: failed bars must be hatched: {red}"
        );
        let moved = colors(&mut page, &picture, ".gantt .bar.migrated");
        let green = moved.iter().filter(|colour| is_green(**colour)).count();
        assert!(
            green > moved.len() * 8 / 10,
            "{name}: migrated bars must be solid: {green}"
        );
        let gap = colors(&mut page, &picture, "#services .gap");
        assert!(
            gap.iter().any(|colour| is_red(*colour)),
            "{name}: an interruption is visible"
        );
    }
}

#[test]
fn text_has_enough_contrast() {
    let contrast = r#"(() => {
        const light = colour => {
            const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = it => { for (; it; it = it.parentElement) { const c = getComputedStyle(it).backgroundColor; if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
        const poor = [];
        for (const it of document.querySelectorAll("h1, h2, p, td, th, dt, dd, li, summary, .badge, .status, .name, .label, .note, .gantt text")) {
            const style = getComputedStyle(it);
            const ink = it.closest("svg") ? style.fill : style.color;
            const [a, b] = [light(ink), light(ground(it))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < 4.5) poor.push([it.className.baseVal ?? it.className, it.textContent.slice(0, 30), ratio]);
        }
        return poor;
    })()"#;
    for (dark, printed) in [(false, false), (true, false), (false, true), (true, true)] {
        let view = View {
            dark,
            printed,
            ..View::default()
        };
        let mut page = open(&Report::sample(), view);
        assert_eq!(page.evaluate(contrast), json!([]), "{view:?}");
    }
}

#[test]
fn the_page_fits_phones_and_paper() {
    for (name, view) in [
        (
            "telephone",
            View {
                width: 360,
                ..View::default()
            },
        ),
        (
            "paper",
            View {
                width: 794,
                printed: true,
                ..View::default()
            },
        ),
        (
            "paper-of-a-dark-screen",
            View {
                width: 794,
                dark: true,
                printed: true,
                ..View::default()
            },
        ),
    ] {
        let mut page = open(&Report::sample(), view);
        page.check_layout_and_console();
        assert_eq!(page.count_visible(".gantt .bar"), 10, "{name}");
        page.check_elements();
        let picture = page.picture(name);
        assert!(brightness(picture.colour(2, 2).unwrap()) > 230, "{name}");
        if view.printed {
            let right = page.evaluate("document.querySelector('.gantt').getBoundingClientRect().right");
            assert!(right.as_f64().unwrap() <= 794.0, "{name}: {right}");
            let open = page.count_visible("#changes pre");
            assert_eq!(open, 2, "{name}: collapsed sections must be printed");
        } else {
            assert_eq!(
                page.count_visible("#changes pre"),
                0,
                "{name}: collapsed content is visible"
            );
        }
    }
}

#[test]
fn long_commands_and_names_fit_phones() {
    let words = (0..40).map(|number| format!("--snapshot directory-{number}/cluster.yaml"));
    let footer = Footer {
        date: "2026-01-01 00:00 UTC".into(),
        version: "0.1.0".into(),
        command: format!(
            "mainstay rehearse {} --report {}.html",
            words.collect::<Vec<_>>().join(" "),
            "x".repeat(300)
        ),
    };
    let phone = View {
        width: 360,
        ..View::default()
    };
    let name = "n".repeat(250);
    for (case, report) in [("command", Report::sample()), ("name", named(&name))] {
        let mut page = open_with_footer(&report, Some(&footer), phone);
        page.picture(&format!("telephone-{case}"));
        page.check_layout_and_console();
        page.check_elements();
        let shown = page.evaluate("document.querySelector('footer').innerText");
        assert!(
            shown.as_str().unwrap().contains(&footer.command),
            "{case}: {shown}"
        );
        let outside = "[...document.querySelectorAll('main *')].filter(it => !it.closest('svg') && it.checkVisibility() && it.getBoundingClientRect().right > innerWidth + 1).map(it => it.outerHTML.slice(0, 80))";
        assert_eq!(page.evaluate(outside), json!([]), "{case}: cut at the edge");
    }
}

/// Returns a report in which `with` is prepended to every name.
fn named(with: &str) -> Report {
    let mut report = Report::sample();
    report.upgrade.istio.insert_str(0, with);
    report.input.source.insert_str(0, with);
    for span in &mut report.workloads {
        for text in [
            &mut span.namespace,
            &mut span.name,
            &mut span.kind,
            &mut span.message,
        ] {
            text.insert_str(0, with);
        }
    }
    for service in &mut report.services {
        service.name.insert_str(0, with);
    }
    for finding in &mut report.findings {
        for text in [&mut finding.subject, &mut finding.what, &mut finding.remedy] {
            text.insert_str(0, with);
        }
    }
    for object in &mut report.objects {
        object.name.insert_str(0, with);
        for field in &mut object.fields {
            field.path.insert_str(0, with);
            field.diff = field.diff.take().map(|diff| format!("+{with}\n{diff}"));
        }
    }
    report
}

#[test]
fn names_from_the_cluster_are_never_executed_or_loaded() {
    let elements = |page: &mut Open| page.evaluate("document.querySelectorAll('*').length");
    let plain = elements(&mut open(&named("x"), View::default()));
    for hostile in [
        "<script>window.owned = 1</script>",
        "<img src=x onerror='window.owned = 1'>",
        "\"><svg onload='window.owned = 1'>",
        "</text></svg><iframe srcdoc='<script>parent.owned = 1</script>'>",
        "<style>body{display:none}</style>",
        "<meta http-equiv=refresh content='0;url=about:blank'>",
    ] {
        let mut page = open(&named(hostile), View::default());
        assert_eq!(elements(&mut page), plain, "{hostile}");
        assert_eq!(page.evaluate("typeof window.owned"), "undefined", "{hostile}");
        let shown = page.evaluate("document.querySelector('h1').textContent");
        assert!(
            shown.as_str().unwrap().contains(hostile),
            "the text must be shown verbatim: {shown}"
        );
        page.check_layout_and_console();
    }
    // The content security policy blocks scripts even if text is not escaped.
    let mut page = open(&Report::sample(), View::default());
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned = 1\">')",
    );
    assert_eq!(page.evaluate("typeof window.owned"), "undefined");
    assert!(!page.browser.console_errors().is_empty());
}

fn large() -> Report {
    let mut report = Report::sample();
    report.workloads = (0..10_000_u32)
        .map(|number| WorkloadSpan {
            namespace: format!("namespace-{:03}", number % 1_000),
            name: format!("workload-{number:05}"),
            kind: "Deployment".into(),
            batch: number / 10 + 1,
            replicas: 3,
            start: Elapsed::from_secs(u64::from(number / 10) * 40),
            end: Elapsed::from_secs(u64::from(number / 10) * 40 + 10),
            result: if number == 4_321 {
                SpanResult::Failed
            } else {
                SpanResult::Migrated
            },
            reason: String::new(),
            message: String::new(),
            fewest_ready: 3,
        })
        .collect();
    let service = report.services[0].clone();
    report.services = (0..10_000)
        .map(|number| Service {
            name: format!("service-{number}"),
            ..service.clone()
        })
        .collect();
    report.totals.duration = Elapsed::from_secs(40_000);
    report
}

#[test]
fn ten_thousand_workloads_are_shown_in_collapsed_groups() {
    let mut page = open(&large(), View::default());
    page.check_layout_and_console();
    page.picture("large");
    let folds = page.count_visible("details.group");
    assert!((30..=60).contains(&folds), "{folds}");
    assert_eq!(
        page.count_visible("#timeline > .gantt .bar.failed"),
        1,
        "one group contains the failure"
    );
    assert_eq!(
        page.count_visible("details.group .bar"),
        0,
        "collapsed groups must be hidden"
    );
    page.evaluate("[...document.querySelectorAll('details.group')].find(it => it.textContent.includes('workload-04321')).open = true");
    assert_eq!(page.count_visible("details.group .bar.failed"), 1);
    assert!(page.count_visible("details.group .bar") <= 300);
    let height = page.evaluate("document.documentElement.scrollHeight");
    assert!(height.as_u64().unwrap() < 15_000, "{height}");
}
