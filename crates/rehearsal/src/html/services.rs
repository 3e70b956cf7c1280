//! Section with the availability: a small chart per Service with ready and desired endpoints over time.
//! Interrupted Services come first. If there are many Services, those that always had enough endpoints are
//! only counted.

use std::fmt::Write as _;

use super::scale::{Px, Scale};
use super::text::{short, text};
use super::{pluralize, section as section_of};
use crate::report::{Elapsed, Report, Service};

/// Maximum number of charts.
const MAX_CHARTS: usize = 96;
/// Maximum number of charts for Services that always had enough endpoints.
const MAX_UNAFFECTED: usize = 12;
/// Maximum number of steps in a chart. Each shows the minimum within its slot.
const MAX_STEPS: u64 = 240;

const WIDTH: u64 = 240;
const HEIGHT: u64 = 56;

pub(super) fn section(report: &Report) -> String {
    if report.services.is_empty() {
        return String::new();
    }
    let end = report.totals.duration;
    let mut affected: Vec<&Service> = report
        .services
        .iter()
        .filter(|one| one.fewest < one.desired)
        .collect();
    affected.sort_by_key(|one| (std::cmp::Reverse(one.interrupted), one.fewest));
    let unaffected = report.services.iter().filter(|one| one.fewest >= one.desired);
    let drawn: Vec<&Service> = affected
        .iter()
        .copied()
        .chain(unaffected.take(MAX_UNAFFECTED))
        .take(MAX_CHARTS)
        .collect();
    let mut body = String::from("<div class=\"multiples\">\n");
    for service in &drawn {
        body.push_str(&render_chart(service, end));
    }
    body.push_str("</div>\n");
    let left = report.services.len() - drawn.len();
    if left > 0 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">{} not shown; the JSON output contains all of them.</p>",
            pluralize(left, "more service")
        );
    }
    let lead = format!(
        "Ready endpoints over time; the dashed line is the desired number. Of {}, {} had fewer at some time, {} had none.",
        pluralize(report.services.len(), "service"),
        affected.len(),
        report.totals.services_interrupted
    );
    section_of("services", "Availability", &lead, &body)
}

fn render_chart(service: &Service, end: Elapsed) -> String {
    let (class, status) = if service.interrupted.0 > 0 {
        ("bad", format!("no endpoint for {}", service.interrupted))
    } else if service.fewest < service.desired {
        (
            "warn",
            format!("minimum {} of {}", service.fewest, service.desired),
        )
    } else {
        ("good", format!("always at least {}", service.desired))
    };
    let name = format!("{}/{}", service.namespace, service.name);
    let scale = Scale::new(end, Px::whole(0), Px::whole(WIDTH));
    let max = service
        .points
        .iter()
        .map(|point| point.ready)
        .max()
        .unwrap_or_default();
    let max = max.max(service.desired).max(1);
    let y = |ready: u32| Px::whole(4).plus(height(max - ready.min(max), max));
    format!(
        "<figure class=\"{class}\"><figcaption><span class=\"name\" title=\"{}\">{}</span><span class=\"status\">{}</span></figcaption>\
         <svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">\
         <path class=\"area\" d=\"{}\"/>{}<line class=\"desired\" x1=\"0\" y1=\"{}\" x2=\"{WIDTH}\" y2=\"{}\"/></svg></figure>\n",
        short(&name, 300),
        short(&name, 300),
        text(&status),
        text(&status),
        render_area(service, &scale, &y),
        render_gaps(service, &scale, end),
        y(service.desired),
        y(service.desired),
    )
}

fn height(part: u32, whole: u32) -> Px {
    let full = Px::whole(HEIGHT - 8).0;
    Px(full * u64::from(part) / u64::from(whole))
}

/// Renders the area below the step function as an SVG path.
fn render_area(service: &Service, scale: &Scale, y: &dyn Fn(u32) -> Px) -> String {
    let bottom = Px::whole(HEIGHT - 4);
    let steps = chart_steps(service, scale);
    let first = steps.first().map_or(0, |(_, ready)| *ready);
    let mut out = format!("M0 {bottom}V{}", y(first));
    for (x, ready) in steps {
        let _ = write!(out, "H{x}V{}", y(ready));
    }
    let _ = write!(out, "H{WIDTH}V{bottom}Z");
    out
}

/// Returns at most one step per slot: the minimum within the slot, followed by the value at the end of the
/// slot.
fn chart_steps(service: &Service, scale: &Scale) -> Vec<(Px, u32)> {
    let slot = Px::whole(WIDTH).0 / MAX_STEPS;
    let mut out: Vec<(Px, u32)> = Vec::new();
    let mut last = None;
    for point in &service.points {
        let x = scale.x(point.at);
        let start = Px(x.0 / slot * slot);
        match out.last_mut() {
            Some((at, ready)) if at.0 / slot == x.0 / slot => *ready = (*ready).min(point.ready),
            _ => {
                if let (Some(last), Some((at, low))) = (last, out.last().copied())
                    && low != last
                    && at.0 + slot < start.0
                {
                    out.push((Px(at.0 + slot), last));
                }
                out.push((start, point.ready));
            }
        }
        last = Some(point.ready);
    }
    if let (Some(last), Some((at, low))) = (last, out.last().copied())
        && low != last
    {
        out.push((Px(at.0 + slot), last));
    }
    out
}

/// Renders a stripe for every period without a ready endpoint. Stripes have a minimum width, so that they
/// are visible.
fn render_gaps(service: &Service, scale: &Scale, end: Elapsed) -> String {
    let mut out = String::new();
    if service.interrupted.0 == 0 {
        return out;
    }
    let ends = service.points.iter().skip(1).map(|point| point.at).chain([end]);
    let stretches = service
        .points
        .iter()
        .zip(ends)
        .filter(|(point, _)| point.ready == 0);
    for (point, end) in stretches.take(MAX_STEPS as usize) {
        let x = scale.x(point.at);
        let width = scale.x(end).minus(x).max(Px::whole(3));
        let _ = write!(
            out,
            "<rect class=\"gap\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"{HEIGHT}\"/>"
        );
    }
    out
}
