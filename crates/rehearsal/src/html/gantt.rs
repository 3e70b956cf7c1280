//! Section with the timeline: a chart with a bar per phase and per workload. If there are many workloads,
//! the chart shows groups of batches, and there is an expandable chart with every workload per group.

use std::fmt::Write as _;

use super::scale::{Px, Scale};
use super::text::{short, text};
use super::{pluralize, section as section_of};
use crate::report::{Elapsed, Phase, PhaseKind, Report, SpanResult, WorkloadSpan};

/// Maximum number of workloads in one chart.
const MAX_CHART_WORKLOADS: usize = 300;
/// Approximate number of groups if there are more workloads.
const GROUPS: usize = 40;
/// Maximum number of workload bars. Failed workloads are drawn first.
const MAX_BARS: usize = 10_000;
/// Maximum length of a label in characters: a name has at most 253 characters, its namespace at most 63.
const MAX_NAME_LEN: usize = 340;
/// Maximum length of a note in characters.
const MAX_NOTE_LEN: usize = 160;

/// Minimum width of a bar, in percent of the chart.
const MIN_WIDTH: Px = Px(3);

pub(super) fn section(report: &Report) -> String {
    let scale = shared_scale(report);
    let spans = &report.workloads;
    let mut body = String::new();
    if spans.len() <= MAX_CHART_WORKLOADS {
        let mut chart = Chart::new(scale);
        chart.add_phases(&report.phases);
        for batch in spans.chunk_by(|a, b| a.batch == b.batch) {
            chart.add_batch(batch);
        }
        body.push_str(&chart.render("Phases and workloads over time"));
    } else {
        let mut chart = Chart::new(scale);
        chart.add_phases(&report.phases);
        let groups = groups(spans);
        for group in &groups {
            chart.add_group(group);
        }
        body.push_str(&chart.render("Phases and batches over time"));
        body.push_str(&render_group_charts(&groups, scale));
    }
    body.push_str(LEGEND);
    let lead = format!(
        "{} in {}, since the version change.",
        pluralize(spans.len(), "workload"),
        pluralize(report.batches.len(), "batch")
    );
    section_of("timeline", "Timeline", &lead, &body)
}

const LEGEND: &str = r#"<p class="legend"><span><svg width="26" height="12" aria-hidden="true"><rect class="bar phase" width="26" height="12" rx="2"/></svg> phase</span>
<span><svg width="26" height="12" aria-hidden="true"><rect class="bar migrated" width="26" height="12" rx="2"/></svg> migrated</span>
<span><svg width="26" height="12" aria-hidden="true"><rect class="bar failed" width="26" height="12" rx="2"/></svg> failed</span>
<span><svg width="26" height="12" aria-hidden="true"><rect class="bar unfinished" width="26" height="12" rx="2"/></svg> not finished</span>
<span><svg width="12" height="12" aria-hidden="true"><path class="down" d="M1 2h10l-5 8z"/></svg> no ready pod at some time</span></p>
"#;

/// Returns the scale that all charts of a report share.
fn shared_scale(report: &Report) -> Scale {
    let ends = report.phases.iter().map(|phase| phase.end);
    let ends = ends.chain(report.workloads.iter().map(|span| span.end));
    let end = ends.max().unwrap_or_default().max(report.totals.duration);
    // The unit is percent of the chart's width, so that charts fit every screen.
    Scale::new(end, Px::whole(0), Px::whole(100))
}

/// Splits workloads into groups of about the same size. A batch is split only if it is larger than a group.
fn groups(spans: &[WorkloadSpan]) -> Vec<&[WorkloadSpan]> {
    let size = spans.len().div_ceil(GROUPS).max(1);
    let mut found = Vec::new();
    let mut rest = spans;
    while !rest.is_empty() {
        let mut length = 0;
        for batch in rest.chunk_by(|a, b| a.batch == b.batch) {
            if length > 0 && length + batch.len() > size {
                break;
            }
            length += batch.len();
        }
        let (group, tail) = rest.split_at(length.min(size.max(MAX_CHART_WORKLOADS)));
        found.push(group);
        rest = tail;
    }
    found
}

fn render_group_charts(groups: &[&[WorkloadSpan]], scale: Scale) -> String {
    let failed = groups
        .iter()
        .flat_map(|group| group.iter())
        .filter(|span| is_problem(span))
        .count();
    let mut problems = failed.min(MAX_BARS);
    let mut others = MAX_BARS - problems;
    let mut out = String::new();
    for group in groups {
        let mut chart = Chart::new(scale);
        let mut left = 0;
        for span in *group {
            let budget = if is_problem(span) {
                &mut problems
            } else {
                &mut others
            };
            if *budget == 0 {
                left += 1;
                continue;
            }
            *budget -= 1;
            chart.add_workload(span);
        }
        let drawn = if chart.rows > 0 {
            chart.render("Workloads over time")
        } else {
            String::new()
        };
        let more = match left {
            0 => String::new(),
            left => format!(
                "<p class=\"lead\">{} not shown; the JSON output contains all of them.</p>\n",
                pluralize(left, "more workload")
            ),
        };
        let _ = write!(
            out,
            "<details class=\"group\"><summary>{} <span class=\"count\">{}</span></summary>\n{drawn}{more}</details>\n",
            text(&group_title(group)),
            text(&group_summary(group)),
        );
    }
    out
}

fn is_problem(span: &WorkloadSpan) -> bool {
    span.result != SpanResult::Migrated
}

/// Returns the title of a group: the numbers of its batches.
fn group_title(group: &[WorkloadSpan]) -> String {
    let number = |span: Option<&WorkloadSpan>| span.map_or(0, |span| span.batch);
    match (number(group.first()), number(group.last())) {
        (0, 0) => "Never restarted".to_owned(),
        (first, last) if first == last => format!("Batch {first}"),
        (first, last) => format!("Batches {first}–{last}"),
    }
}

fn group_summary(group: &[WorkloadSpan]) -> String {
    let failed = group.iter().filter(|span| is_problem(span)).count();
    let all = pluralize(group.len(), "workload");
    match failed {
        0 => all,
        failed => format!("{all}, {failed} failed"),
    }
}

/// A chart. Each row consists of a label, a bar on the shared scale and a note. On phones, the bar is below
/// the label.
struct Chart {
    scale: Scale,
    rows: u64,
    body: String,
}

/// A bar with its label and note.
struct Bar<'a> {
    class: &'a str,
    start: Elapsed,
    end: Elapsed,
    label: &'a str,
    note: &'a str,
    title: &'a str,
    was_down: bool,
}

impl Chart {
    fn new(scale: Scale) -> Self {
        Self {
            scale,
            rows: 0,
            body: String::new(),
        }
    }

    fn add_phases(&mut self, phases: &[Phase]) {
        for phase in phases.iter().take(100) {
            let name = match phase.kind {
                PhaseKind::ControlPlane => "Control plane",
                PhaseKind::Tags => "Tags",
                PhaseKind::Namespaces => "Namespaces",
                PhaseKind::Batches => "Workloads",
                PhaseKind::Pruning => "Pruning",
            };
            let lasted = phase.end.since(phase.start);
            self.add_row(&Bar {
                class: "phase",
                start: phase.start,
                end: phase.end,
                label: name,
                note: &format!("{lasted} · {}", phase.detail),
                title: &format!("{name}: {}, from {} to {}", phase.detail, phase.start, phase.end),
                was_down: false,
            });
        }
    }

    /// Adds a heading and the workloads of a batch.
    fn add_batch(&mut self, batch: &[WorkloadSpan]) {
        let _ = writeln!(
            self.body,
            "<p class=\"head\">{} <span class=\"count\">{}</span></p>",
            text(&group_title(batch)),
            text(&group_summary(batch))
        );
        for span in batch {
            self.add_workload(span);
        }
    }

    fn add_workload(&mut self, span: &WorkloadSpan) {
        let mut name = format!("{}/{}", span.namespace, span.name);
        if span.kind != "Deployment" {
            let _ = write!(name, " ({})", span.kind);
        }
        let lasted = span.end.since(span.start);
        let note = match span.message.as_str() {
            "" => lasted.to_string(),
            message => format!("{lasted} · {message}"),
        };
        let title = format!(
            "{} {}/{}, batch {}: from {} to {}, minimum {} of {} ready. {}",
            span.kind,
            span.namespace,
            span.name,
            span.batch,
            span.start,
            span.end,
            span.fewest_ready,
            span.replicas,
            span.message
        );
        self.add_row(&Bar {
            class: class_of(span),
            start: span.start,
            end: span.end,
            label: &name,
            note: &note,
            title: &title,
            was_down: span.replicas > 0 && span.fewest_ready == 0,
        });
    }

    /// Adds one bar for a group of workloads.
    fn add_group(&mut self, group: &[WorkloadSpan]) {
        let start = group.iter().map(|span| span.start).min().unwrap_or_default();
        let end = group.iter().map(|span| span.end).max().unwrap_or_default();
        let worst = group.iter().map(class_of).max_by_key(|class| match *class {
            "failed" => 2,
            "unfinished" => 1,
            _ => 0,
        });
        let (name, note) = (group_title(group), group_summary(group));
        self.add_row(&Bar {
            class: worst.unwrap_or("migrated"),
            start,
            end,
            label: &name,
            note: &note,
            title: &format!("{name}: {note}, from {start} to {end}"),
            was_down: false,
        });
    }

    fn add_row(&mut self, bar: &Bar<'_>) {
        let (x, right) = (self.scale.x(bar.start), self.scale.x(bar.end));
        let width = right.minus(x).max(MIN_WIDTH);
        // A bar at the end of the scale must not exceed the chart.
        let x = x.min(Px::whole(100).minus(width));
        let _ = write!(
            self.body,
            "<div class=\"row\"><span class=\"label\">{}</span><svg class=\"track\"><title>{}</title><rect class=\"bar {}\" x=\"{x}%\" width=\"{width}%\" y=\"2\" height=\"12\" rx=\"2\"/>",
            short(bar.label, MAX_NAME_LEN),
            short(bar.title, 500),
            bar.class,
        );
        if bar.was_down {
            let _ = write!(
                self.body,
                "<svg class=\"mark-down\" x=\"{x}%\"><path class=\"down\" d=\"M0 0h8l-4 6z\"/></svg>"
            );
        }
        let _ = writeln!(
            self.body,
            "</svg><span class=\"note\">{}</span></div>",
            short(bar.note, MAX_NOTE_LEN)
        );
        self.rows += 1;
    }

    fn render(self, title: &str) -> String {
        let mut out = format!(
            "<div class=\"gantt\" role=\"group\" aria-label=\"{}\">\n",
            text(title)
        );
        let (mut marks, mut lines) = (String::new(), String::new());
        for mark in self.scale.ticks() {
            let x = self.scale.x(mark);
            let _ = write!(marks, "<text class=\"mark\" x=\"{x}%\" y=\"12\">{mark}</text>");
            let _ = write!(
                lines,
                "<line class=\"grid\" x1=\"{x}%\" x2=\"{x}%\" y1=\"0\" y2=\"100%\"/>"
            );
        }
        let _ = writeln!(
            out,
            "<div class=\"row axis\"><svg class=\"track\">{marks}</svg></div>"
        );
        let _ = write!(
            out,
            "<div class=\"rows\"><svg class=\"lines\" aria-hidden=\"true\">{lines}</svg>\n{}</div></div>\n",
            self.body
        );
        out
    }
}

fn class_of(span: &WorkloadSpan) -> &'static str {
    match span.result {
        SpanResult::Migrated => "migrated",
        SpanResult::Failed => "failed",
        SpanResult::Unfinished => "unfinished",
    }
}
