//! The rehearsal against reality: takes the snapshot taken before an upgrade and what then happened, gives what `mainstay rehearse` foretold beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;
use serde_json::Value;

use crate::build;
use crate::prove::row::{Rank, Row};

/// How far the foretold duration may be off.
const TOLERANCE: f64 = 0.10;

/// One row for what must be equal, one for the time.
pub(super) fn rows() -> Vec<Row> {
    let (what, same) = (
        "rehearsal: batches, order and failures as they then were",
        "the same",
    );
    let (time, near) = ("rehearsal: the foretold duration", "within 10 %");
    match compare() {
        Ok(comparison) => {
            println!("{}", comparison.side_by_side());
            let (equal, all) = comparison.equal();
            let off = comparison.off();
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
                        "{:.1} s foretold, {:.1} s seen: {:+.1} %",
                        seconds(comparison.foretold.moving),
                        seconds(comparison.seen.moving),
                        off * 100.0
                    ),
                    near,
                    off.abs() <= TOLERANCE,
                ),
            ]
        }
        Err(error) => vec![
            Row::broken(what, same, Rank::Correctness, &error),
            Row::broken(time, near, Rank::Performance, &error),
        ],
    }
}

/// What happens to workloads, foretold or seen.
#[derive(Debug, Default, PartialEq)]
struct Course {
    /// `namespace/name` and its way.
    workloads: BTreeMap<String, Way>,
    /// From the first restart to the last end, in milliseconds.
    moving: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    batch: i64,
    start: u64,
    end: u64,
    failed: bool,
}

struct Comparison {
    foretold: Course,
    seen: Course,
}

fn compare() -> anyhow::Result<Comparison> {
    let observed: Value =
        serde_json::from_slice(&fs::read(kept("observed.json")).context("nothing was observed")?)?;
    Ok(Comparison {
        foretold: read_report(&rehearse()?)?,
        seen: read_observed(&observed)?,
    })
}

fn kept(name: &str) -> PathBuf {
    repository_root().join("target/prove/traffic").join(name)
}

/// The report of the rehearsal, whatever it foretells.
fn rehearse() -> anyhow::Result<Value> {
    let output = build::cargo()
        .args(["run", "--quiet", "--bin", "mainstay", "--", "rehearse"])
        .arg("--snapshot")
        .arg(kept("before.json"))
        .arg("--readiness")
        .arg(kept("readiness.json"))
        .args(["--to", "v1.29.1", "-o", "json"])
        .current_dir(repository_root())
        .output()
        .context("starting mainstay rehearse")?;
    let report = serde_json::from_slice(&output.stdout);
    report.with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        format!(
            "mainstay rehearse: {}",
            said.lines()
                .find(|line| line.starts_with("error"))
                .unwrap_or("no report")
        )
    })
}

fn read_report(report: &Value) -> anyhow::Result<Course> {
    let workloads = list(report, "workloads")?.iter().map(|span| {
        let name = format!("{}/{}", text(span, "namespace"), text(span, "name"));
        Ok((name, way(span, text(span, "result") == "failed")?))
    });
    Ok(Course {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        moving: report
            .pointer("/totals/moving")
            .and_then(Value::as_u64)
            .context("no duration")?,
    })
}

fn read_observed(observed: &Value) -> anyhow::Result<Course> {
    let workloads = list(observed, "workloads")?.iter().map(|span| {
        let failed = span.get("failed").and_then(Value::as_bool).unwrap_or(false);
        Ok((text(span, "name").to_owned(), way(span, failed)?))
    });
    Ok(Course {
        workloads: workloads.collect::<anyhow::Result<_>>()?,
        moving: number(observed, "moving")?,
    })
}

fn way(span: &Value, failed: bool) -> anyhow::Result<Way> {
    Ok(Way {
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
    /// How many workloads were in the foretold batch and ended as foretold, of all that either knows.
    fn equal(&self) -> (usize, usize) {
        let key = |way: &Way| (way.batch, way.failed);
        let names = self.names();
        let equal = names.iter().filter(|name| {
            let [foretold, seen] =
                [&self.foretold, &self.seen].map(|course| course.workloads.get(**name).map(key));
            foretold.is_some() && foretold == seen
        });
        (equal.count(), names.len())
    }

    fn names(&self) -> Vec<&String> {
        let mut names: Vec<&String> = self
            .foretold
            .workloads
            .keys()
            .chain(self.seen.workloads.keys())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The difference of the durations, as a share of what was seen.
    fn off(&self) -> f64 {
        let seen = self.seen.moving.max(1) as f64;
        (self.foretold.moving as f64 - seen) / seen
    }

    fn side_by_side(&self) -> String {
        let first = |course: &Course| {
            course
                .workloads
                .values()
                .map(|way| way.start)
                .min()
                .unwrap_or_default()
        };
        let cell = |course: &Course, name: &str| match course.workloads.get(name) {
            None => "–".to_owned(),
            Some(way) => format!(
                "batch {}, {:.1} to {:.1} s{}",
                way.batch,
                seconds(way.start.saturating_sub(first(course))),
                seconds(way.end.saturating_sub(first(course))),
                if way.failed { ", failed" } else { "" }
            ),
        };
        let rows: Vec<Vec<String>> = self
            .names()
            .into_iter()
            .map(|name| vec![name.clone(), cell(&self.foretold, name), cell(&self.seen, name)])
            .collect();
        crate::table::layout(&["workload", "foretold", "seen"], &rows)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn comparison(batch: i64, result: &str, moving: u64) -> Comparison {
        let report = json!({
            "workloads": [{"namespace": "shop", "name": "web", "batch": batch, "start": 100, "end": 900, "result": result}],
            "totals": {"moving": moving},
        });
        let observed = json!({
            "workloads": [{"name": "shop/web", "batch": 1, "start": 5000, "end": 6000, "failed": false}], "moving": 1000,
        });
        Comparison {
            foretold: read_report(&report).unwrap(),
            seen: read_observed(&observed).unwrap(),
        }
    }

    #[test]
    fn another_batch_or_end_is_a_difference() {
        assert_eq!(comparison(1, "migrated", 1000).equal(), (1, 1));
        assert_eq!(comparison(2, "migrated", 1000).equal(), (0, 1));
        assert_eq!(comparison(1, "failed", 1000).equal(), (0, 1));
    }

    #[test]
    fn the_duration_is_compared_with_what_was_seen() {
        assert!((comparison(1, "migrated", 1080).off() - 0.08).abs() < 1e-9);
        let table = comparison(1, "migrated", 1000).side_by_side();
        assert!(table.contains("batch 1, 0.0 to 0.8 s"), "{table}");
        assert!(table.contains("batch 1, 0.0 to 1.0 s"), "{table}");
    }

    #[test]
    fn a_report_without_workloads_is_an_error() {
        assert_eq!(read_report(&json!({})).unwrap_err().to_string(), "no workloads");
    }
}
