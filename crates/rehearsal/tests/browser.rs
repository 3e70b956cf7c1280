//! The report in a real browser: what is drawn, in which colours, on which screens, and that nothing in it is
//! ever run. With `SCREENSHOTS=DIR` the pictures are kept.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

use mainstay_rehearsal::html;
use mainstay_rehearsal::report::{Elapsed, Report, Service, SpanResult, WorkloadSpan};
use mainstay_testkit::browser::{Browser, Screenshot, View};
use serde_json::{Value, json};

/// A page that is open.
struct Open {
    browser: Browser,
    _directory: tempfile::TempDir,
}

fn open(report: &Report, view: View) -> Open {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.html");
    std::fs::write(&file, html::page(report, None)).unwrap();
    let mut browser = Browser::start().unwrap();
    browser.open(&file, view).unwrap();
    Open {
        browser,
        _directory: directory,
    }
}

impl Open {
    fn ask(&mut self, expression: &str) -> Value {
        self.browser.evaluate(expression).unwrap()
    }

    /// How many elements there are of which a person sees something.
    fn seen(&mut self, selector: &str) -> u64 {
        let visible = "(it => { const box = it.getBoundingClientRect(); return it.checkVisibility() && box.width > 0 && box.height > 0; })";
        let count = format!("[...document.querySelectorAll({selector:?})].filter({visible}).length");
        self.ask(&count).as_u64().unwrap()
    }

    fn picture(&mut self, name: &str) -> Screenshot {
        let picture = self.browser.screenshot().unwrap();
        if let Some(directory) = std::env::var_os("SCREENSHOTS") {
            let file = std::path::Path::new(&directory).join(format!("{name}.png"));
            std::fs::write(file, &picture.png).unwrap();
        }
        picture
    }

    /// Fails if the page is wider than its window, or complained.
    fn check_calm(&mut self) {
        let widths = self.ask("[document.documentElement.scrollWidth, document.documentElement.clientWidth]");
        assert_eq!(widths[0], widths[1], "the page is wider than its window");
        assert_eq!(self.browser.console_errors(), Vec::<Value>::new());
    }
}

/// The colours inside an element's box, each with how often it occurs among a grid of places.
fn colours(open: &mut Open, picture: &Screenshot, selector: &str) -> Vec<[u8; 3]> {
    let expression = format!(
        "(it => {{ const box = it.getBoundingClientRect(); return [box.x + scrollX, box.y + scrollY, box.width, box.height]; }})(document.querySelector({selector:?}))"
    );
    let found = open.ask(&expression);
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
fn a_person_sees_every_bar_on_bright_and_dark_screens() {
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
        page.check_calm();
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
            assert_eq!(page.seen(selector), count, "{name}: {selector}");
        }
        let picture = page.picture(name);
        let background = brightness(picture.colour(2, 2).unwrap());
        assert!(
            if dark { background < 40 } else { background > 230 },
            "{name}: {background}"
        );
        let failed = colours(&mut page, &picture, ".gantt .bar.failed");
        let red = failed.iter().filter(|colour| is_red(**colour)).count();
        assert!(
            (failed.len() / 10..failed.len() * 8 / 10).contains(&red),
            "{name}: hatched, not flat: {red}"
        );
        let moved = colours(&mut page, &picture, ".gantt .bar.migrated");
        let green = moved.iter().filter(|colour| is_green(**colour)).count();
        assert!(green > moved.len() * 8 / 10, "{name}: flat: {green}");
        let gap = colours(&mut page, &picture, "#services .gap");
        assert!(
            gap.iter().any(|colour| is_red(*colour)),
            "{name}: an interruption is seen"
        );
    }
}

#[test]
fn words_stand_out_from_what_is_behind_them() {
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
        assert_eq!(page.ask(contrast), json!([]), "{view:?}");
    }
}

#[test]
fn it_fits_telephones_and_paper() {
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
        page.check_calm();
        assert_eq!(page.seen(".gantt .bar"), 10, "{name}");
        let wider = "[...document.querySelectorAll('main *')].filter(it => !it.closest('svg') && it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).overflowX !== 'visible').length";
        assert_eq!(page.ask(wider), 0, "{name}: nothing scrolls sideways");
        let picture = page.picture(name);
        assert!(brightness(picture.colour(2, 2).unwrap()) > 230, "{name}");
        if view.printed {
            let right = page.ask("document.querySelector('.gantt').getBoundingClientRect().right");
            assert!(right.as_f64().unwrap() <= 794.0, "{name}: {right}");
            let open = page.seen("#changes pre");
            assert_eq!(open, 2, "{name}: what is folded is printed");
        } else {
            assert_eq!(page.seen("#changes pre"), 0, "{name}: folded");
        }
    }
}

/// Puts a text in front of every name of a report.
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
fn nothing_that_a_cluster_says_is_run_or_loaded() {
    let elements = |page: &mut Open| page.ask("document.querySelectorAll('*').length");
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
        assert_eq!(page.ask("typeof window.owned"), "undefined", "{hostile}");
        let shown = page.ask("document.querySelector('h1').textContent");
        assert!(
            shown.as_str().unwrap().contains(hostile),
            "shown as it is: {shown}"
        );
        page.check_calm();
    }
    // And the policy of the page itself would stop what escaping missed.
    let mut page = open(&Report::sample(), View::default());
    page.ask("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned = 1\">')");
    assert_eq!(page.ask("typeof window.owned"), "undefined");
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
fn ten_thousand_workloads_are_an_overview_with_folds() {
    let mut page = open(&large(), View::default());
    page.check_calm();
    page.picture("large");
    let folds = page.seen("details.group");
    assert!((30..=60).contains(&folds), "{folds}");
    assert_eq!(
        page.seen("#timeline > .gantt .bar.failed"),
        1,
        "the stretch with the failure"
    );
    assert_eq!(page.seen("details.group .bar"), 0, "folded");
    page.ask("[...document.querySelectorAll('details.group')].find(it => it.textContent.includes('workload-04321')).open = true");
    assert_eq!(page.seen("details.group .bar.failed"), 1);
    assert!(page.seen("details.group .bar") <= 300);
    let height = page.ask("document.documentElement.scrollHeight");
    assert!(height.as_u64().unwrap() < 15_000, "{height}");
}
