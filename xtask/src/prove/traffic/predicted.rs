//! Compares the prediction of `mainstay rehearse` with the upgrade that then ran.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;
use serde_json::Value;

use crate::build;
use crate::prove::row::{Row, RowKind};

/// Maximum relative deviation of the predicted duration.
const TOLERANCE: f64 = 0.10;

/// Returns one row for the properties that must be equal and one for the duration.
pub(super) fn rows() -> Vec<Row> {
    let (what, same) = (
        "rehearsal: batches, order and failures equal the upgrade's",
        "the same",
    );
    let (time, near) = ("rehearsal: predicted duration", "within 10 %");
    match compare() {
        Ok(comparison) => {
            println!("{}", comparison.side_by_side());
            let (equal, all) = comparison.equal();
            let deviation = comparison.deviation();
            vec![
                Row::correct(
                    what,
                    format!("{equal} of {all} workloads"),
                    same,
                    equal == all && all > 0,
                ),
                Row::fast(
                    time,
                    format!(
                        "{:.1} s predicted, {:.1} s observed: {:+.1} %",
                        seconds(comparison.predicted.moving),
                        seconds(comparison.actual.moving),
                        deviation * 100.0
                    ),
                    near,
                    deviation.abs() <= TOLERANCE,
                ),
            ]
        }
        Err(error) => vec![
            Row::not_measured(what, same, RowKind::Correctness, &error),
            Row::not_measured(time, near, RowKind::Performance, &error),
        ],
    }
}

/// Timeline of all workloads, predicted or observed.
#[derive(Debug, Default, PartialEq)]
struct Timeline {
    /// Spans by `namespace/name`.
    workloads: BTreeMap<String, WorkloadSpan>,
    /// From the first restart to the last end, in milliseconds.
    moving: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct WorkloadSpan {
    batch: i64,
    start: u64,
    end: u64,
    failed: bool,
}

struct Comparison {
    predicted: Timeline,
    actual: Timeline,
}

fn compare() -> anyhow::Result<Comparison> {
    let observed: Value =
        serde_json::from_slice(&fs::read(artifact("observed.json")).context("no observation recorded")?)?;
    Ok(Comparison {
        predicted: read_report(&rehearse()?)?,
        actual: read_observed(&observed)?,
    })
}

fn artifact(name: &str) -> PathBuf {
    repository_root().join("target/prove/traffic").join(name)
}

/// Returns the rehearsal report, regardless of its outcome.
fn rehearse() -> anyhow::Result<Value> {
    let output = build::cargo()
        .args(["run", "--quiet", "--bin", "mainstay", "--", "rehearse"])
        .arg("--snapshot")
        .arg(artifact("before.json"))
        .arg("--readiness")
        .arg(artifact("readiness.json"))
        .args(["--to", "v1.29.1", "-o", "json"])
        .current_dir(repository_root())
        .output()
        .context("starting mainstay rehearse")?;
    let report = serde_json::from_slice(&output.stdout);
    report.with_context(|| {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        format!(
            "mainstay rehearse: {}",
            stderr
                .lines()
                .find(|line| line.starts_with("error"))
                .unwrap_or("no report")
        )
    })
}

fn read_report(report: &Value) -> anyhow::Result<Timeline> {
    let workloads = list(report, "workloads")?.iter().map(|span| {
        let name = format!("{}/{}", text(span, "namespace"), text(span, "name"));
        Ok((name, parse_span(span, text(span, "result") == "failed")?))
    });
    Ok(Timeline {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        moving: report
            .pointer("/totals/moving")
            .and_then(Value::as_u64)
            .context("no duration")?,
    })
}

fn read_observed(observed: &Value) -> anyhow::Result<Timeline> {
    let workloads = list(observed, "workloads")?.iter().map(|span| {
        let failed = span.get("failed").and_then(Value::as_bool).unwrap_or(false);
        Ok((text(span, "name").to_owned(), parse_span(span, failed)?))
    });
    Ok(Timeline {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        moving: number(observed, "moving")?,
    })
}

fn parse_span(span: &Value, failed: bool) -> anyhow::Result<WorkloadSpan> {
    Ok(WorkloadSpan {
        batch: i64::try_from(number(span, "batch")?)?,
        start: number(span, "start")?,
        end: number(span, "end")?,
        failed,
    })
}

fn list<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value
        .get(key)
        .and_then(Value::as_array)
        .with_context(|| format!("no {key}"))
}

fn number(value: &Value, key: &str) -> anyhow::Result<u64> {
    let number = value.get(key).and_then(Value::as_u64);
    match number {
        Some(number) => Ok(number),
        None => bail!("no {key} in {value}"),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

impl Comparison {
    /// Returns the number of workloads with the predicted batch and result, and the number of all workloads.
    fn equal(&self) -> (usize, usize) {
        let key = |span: &WorkloadSpan| (span.batch, span.failed);
        let names = self.names();
        let equal = names.iter().filter(|name| {
            let [predicted, actual] =
                [&self.predicted, &self.actual].map(|timeline| timeline.workloads.get(**name).map(key));
            predicted.is_some() && predicted == actual
        });
        (equal.count(), names.len())
    }

    fn names(&self) -> Vec<&String> {
        let mut names: Vec<&String> = self
            .predicted
            .workloads
            .keys()
            .chain(self.actual.workloads.keys())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the relative deviation from the observed duration.
    fn deviation(&self) -> f64 {
        let actual = self.actual.moving.max(1) as f64;
        (self.predicted.moving as f64 - actual) / actual
    }

    fn side_by_side(&self) -> String {
        let first = |timeline: &Timeline| {
            timeline
                .workloads
                .values()
                .map(|span| span.start)
                .min()
                .unwrap_or_default()
        };
        let cell = |timeline: &Timeline, name: &str| match timeline.workloads.get(name) {
            None => "–".to_owned(),
            Some(span) => format!(
                "batch {}, {:.1} to {:.1} s{}",
                span.batch,
                seconds(span.start.saturating_sub(first(timeline))),
                seconds(span.end.saturating_sub(first(timeline))),
                if span.failed { ", failed" } else { "" }
            ),
        };
        let rows: Vec<Vec<String>> = self
            .names()
            .into_iter()
            .map(|name| {
                vec![
                    name.clone(),
                    cell(&self.predicted, name),
                    cell(&self.actual, name),
                ]
            })
            .collect();
        crate::table::layout(&["workload", "predicted", "observed"], &rows)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn comparison(batch: i64, result: &str, moving: u64) -> Comparison {
        let report = json!({
            "workloads": [{"namespace": "store", "name": "web", "batch": batch, "start": 100, "end": 900, "result": result}],
            "totals": {"moving": moving},
        });
        let observed = json!({
            "workloads": [{"name": "store/web", "batch": 1, "start": 5000, "end": 6000, "failed": false}], "moving": 1000,
        });
        Comparison {
            predicted: read_report(&report).unwrap(),
            actual: read_observed(&observed).unwrap(),
        }
    }

    #[test]
    fn another_batch_or_result_is_a_difference() {
        assert_eq!(comparison(1, "migrated", 1000).equal(), (1, 1));
        assert_eq!(comparison(2, "migrated", 1000).equal(), (0, 1));
        assert_eq!(comparison(1, "failed", 1000).equal(), (0, 1));
    }

    #[test]
    fn the_duration_is_compared_with_the_observed_one() {
        assert!((comparison(1, "migrated", 1080).deviation() - 0.08).abs() < 1e-9);
        let table = comparison(1, "migrated", 1000).side_by_side();
        assert!(table.contains("batch 1, 0.0 to 0.8 s"), "{table}");
        assert!(table.contains("batch 1, 0.0 to 1.0 s"), "{table}");
    }

    #[test]
    fn a_report_without_workloads_is_an_error() {
        assert_eq!(read_report(&json!({})).unwrap_err().to_string(), "no workloads");
    }
}
