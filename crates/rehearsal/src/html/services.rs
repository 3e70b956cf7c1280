//! Availability: takes a report, gives a small drawing per Service: how many endpoints were ready, beside how many there should be. Those that
//! suffered come first; those that never had too few are only counted when there are many.

use std::fmt::Write as _;

use super::scale::{Px, Scale};
use super::text::{short, text};
use super::{many, section as section_of};
use crate::report::{Moment, Report, Service};

/// So many are drawn.
const MOST: usize = 96;
/// Of these, so many that never had too few.
const MOST_WELL: usize = 12;
/// A step function is drawn in at most so many steps, each as low as it gets within.
const MOST_STEPS: u64 = 240;

const WIDTH: u64 = 240;
const HEIGHT: u64 = 56;

/// The section.
pub(super) fn section(report: &Report) -> String {
    if report.services.is_empty() {
        return String::new();
    }
    let end = report.totals.duration;
    let mut ill: Vec<&Service> = report
        .services
        .iter()
        .filter(|one| one.fewest < one.desired)
        .collect();
    ill.sort_by_key(|one| (std::cmp::Reverse(one.interrupted), one.fewest));
    let well = report.services.iter().filter(|one| one.fewest >= one.desired);
    let drawn: Vec<&Service> = ill
        .iter()
        .copied()
        .chain(well.take(MOST_WELL))
        .take(MOST)
        .collect();
    let mut body = String::from("<div class=\"multiples\">\n");
    for service in &drawn {
        body.push_str(&figure(service, end));
    }
    body.push_str("</div>\n");
    let left = report.services.len() - drawn.len();
    if left > 0 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">{} not drawn; the JSON output has them all.</p>",
            many(left, "more service")
        );
    }
    let lead = format!(
        "Ready endpoints over time, against how many there should be (dashed). Of {}, {} had fewer for a while, {} none.",
        many(report.services.len(), "service"),
        ill.len(),
        report.totals.services_interrupted
    );
    section_of("services", "Availability", &lead, &body)
}

fn figure(service: &Service, end: Moment) -> String {
    let (class, told) = if service.interrupted.0 > 0 {
        ("bad", format!("none ready for {}", service.interrupted))
    } else if service.fewest < service.desired {
        (
            "warn",
            format!("{} of {} at worst", service.fewest, service.desired),
        )
    } else {
        ("good", format!("never fewer than {}", service.desired))
    };
    let name = format!("{}/{}", service.namespace, service.name);
    let scale = Scale::new(end, Px::whole(0), Px::whole(WIDTH));
    let most = service
        .points
        .iter()
        .map(|point| point.ready)
        .max()
        .unwrap_or_default();
    let most = most.max(service.desired).max(1);
    let y = |ready: u32| Px::whole(4).plus(height(most - ready.min(most), most));
    format!(
        "<figure class=\"{class}\"><figcaption><span class=\"name\" title=\"{}\">{}</span><span class=\"told\">{}</span></figcaption>\
         <svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">\
         <path class=\"area\" d=\"{}\"/>{}<line class=\"desired\" x1=\"0\" y1=\"{}\" x2=\"{WIDTH}\" y2=\"{}\"/></svg></figure>\n",
        short(&name, 300),
        short(&name, 60),
        text(&told),
        text(&told),
        area(service, &scale, &y),
        gaps(service, &scale, end),
        y(service.desired),
        y(service.desired),
    )
}

fn height(part: u32, whole: u32) -> Px {
    let room = Px::whole(HEIGHT - 8).0;
    Px(room * u64::from(part) / u64::from(whole))
}

/// The numbers as a filled step function.
fn area(service: &Service, scale: &Scale, y: &dyn Fn(u32) -> Px) -> String {
    let bottom = Px::whole(HEIGHT - 4);
    let steps = steps(service, scale);
    let first = steps.first().map_or(0, |(_, ready)| *ready);
    let mut out = format!("M0 {bottom}V{}", y(first));
    for (x, ready) in steps {
        let _ = write!(out, "H{x}V{}", y(ready));
    }
    let _ = write!(out, "H{WIDTH}V{bottom}Z");
    out
}

/// Where the number changes: at most one step per slot, as low as it gets within it; what holds at the end of a slot goes on.
fn steps(service: &Service, scale: &Scale) -> Vec<(Px, u32)> {
    let slot = Px::whole(WIDTH).0 / MOST_STEPS;
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

/// A stripe wherever there was none at all although there should be, wide enough to be seen.
fn gaps(service: &Service, scale: &Scale, end: Moment) -> String {
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
    for (point, end) in stretches.take(MOST_STEPS as usize) {
        let x = scale.x(point.at);
        let width = scale.x(end).minus(x).max(Px::whole(3));
        let _ = write!(
            out,
            "<rect class=\"gap\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"{HEIGHT}\"/>"
        );
    }
    out
}
