//! Draws the upgrade as an SVG: requests per second, errors, and proxies per revision over time.

use std::fmt::Write as _;
use std::time::Duration;

use mainstay_testkit::mesh::Results;
use mainstay_testkit::repository_root;

use crate::fixtures::{NEW, OLD};
use crate::observer::PodObserver;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
/// Top and height of the two panels.
const REQUESTS: (f64, f64) = (50.0, 150.0);
const PROXIES: (f64, f64) = (250.0, 130.0);
const COLORS: [(&str, &str, &str); 2] = [(OLD, "1.28.2", "#b45309"), (NEW, "1.29.1", "#0f766e")];

/// Writes the chart to the directory of proof results.
pub fn write(observer: &PodObserver, results: &Results) {
    let directory = repository_root().join("target/prove");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("traffic.svg"), draw_chart(observer, results)).unwrap();
}

fn draw_chart(observer: &PodObserver, results: &Results) -> String {
    let seconds = results.by_second();
    // The last second is incomplete.
    let complete = &seconds[..seconds.len().saturating_sub(1)];
    let scale = Scale {
        end: complete.len().max(1) as f64,
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} 440\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"440\" fill=\"#ffffff\"/>\n"
    );
    draw_text(
        &mut svg,
        LEFT,
        22.0,
        "#111827",
        &format!(
            "Istio 1.28.2 to 1.29.1 under load: {} requests, {} failed",
            results.sent(),
            results.failures().count(),
        ),
    );
    draw_requests(&mut svg, &scale, complete);
    draw_proxies(&mut svg, &scale, observer);
    for (at, what) in &observer.notes {
        draw_note(&mut svg, &scale, *at, what);
    }
    draw_axis(&mut svg, &scale);
    svg + "</svg>\n"
}

struct Scale {
    end: f64,
}

impl Scale {
    fn x(&self, at: f64) -> f64 {
        LEFT + (at / self.end).min(1.0) * (WIDTH - LEFT - RIGHT)
    }
}

fn y((top, height): (f64, f64), share: f64) -> f64 {
    top + height * (1.0 - share)
}

fn draw_requests(svg: &mut String, scale: &Scale, seconds: &[(usize, usize)]) {
    let most = seconds
        .iter()
        .map(|(good, bad)| good + bad)
        .max()
        .unwrap_or(1)
        .max(1) as f64
        * 1.1;
    draw_label(svg, REQUESTS, "requests per second", most);
    let mut line = String::new();
    for (second, (good, bad)) in seconds.iter().enumerate() {
        let x = scale.x(second as f64 + 0.5);
        let _ = write!(line, "{x:.1},{:.1} ", y(REQUESTS, *good as f64 / most));
        if *bad > 0 {
            let top = y(REQUESTS, *bad as f64 / most);
            let bottom = y(REQUESTS, 0.0);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" stroke=\"#dc2626\" stroke-width=\"4\"/>"
            );
        }
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{line}\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"2\"/>"
    );
}

fn draw_proxies(svg: &mut String, scale: &Scale, observer: &PodObserver) {
    let counts = observer.proxies.iter().flat_map(|(_, counts)| counts.values());
    let most = counts.max().copied().unwrap_or(1).max(1) as f64 * 1.1;
    draw_label(svg, PROXIES, "proxies connected", most);
    for (number, (revision, name, color)) in COLORS.iter().enumerate() {
        let mut line = String::new();
        for (at, counts) in &observer.proxies {
            let count = counts.get(*revision).copied().unwrap_or(0) as f64;
            let _ = write!(
                line,
                "{:.1},{:.1} ",
                scale.x(at.as_secs_f64()),
                y(PROXIES, count / most)
            );
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{line}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
        );
        draw_text(
            svg,
            WIDTH - 180.0 + 80.0 * number as f64,
            PROXIES.0 - 8.0,
            color,
            name,
        );
    }
}

fn draw_label(svg: &mut String, field: (f64, f64), what: &str, most: f64) {
    draw_text(svg, LEFT, field.0 - 8.0, "#374151", what);
    for share in [0.0, 0.5, 0.9] {
        let at = y(field, share);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e5e7eb\"/>",
            WIDTH - RIGHT
        );
        draw_text(svg, 20.0, at + 4.0, "#6b7280", &format!("{:.0}", most * share));
    }
}

fn draw_note(svg: &mut String, scale: &Scale, at: Duration, what: &str) {
    let x = scale.x(at.as_secs_f64());
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"50\" y2=\"380\" stroke=\"#9ca3af\" stroke-dasharray=\"3 3\"/>"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"396\" fill=\"#374151\" text-anchor=\"middle\">{what}</text>"
    );
}

fn draw_axis(svg: &mut String, scale: &Scale) {
    let step = if scale.end > 60.0 { 20 } else { 10 };
    for second in (0..=scale.end as usize).step_by(step) {
        draw_text(
            svg,
            scale.x(second as f64) - 8.0,
            425.0,
            "#6b7280",
            &format!("{second} s"),
        );
    }
}

fn draw_text(svg: &mut String, x: f64, y: f64, color: &str, what: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{color}\">{what}</text>"
    );
}
