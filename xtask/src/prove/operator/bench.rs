//! Cost of the operator in a large cluster, parsed from the output of the example `bench`.
//!
//! The Sail Operator's figures were measured once under the same load; they are not measured again.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::super::row::{Row, RowKind};
use crate::build::{self, Profile};

/// A figure, its bound and the figure of the Sail Operator.
struct Bound {
    name: &'static str,
    text: &'static str,
    unit: &'static str,
    most: f64,
    peer: &'static str,
}

const BOUNDS: &[Bound] = &[
    Bound {
        name: "settled",
        text: "memory, settled",
        unit: "MiB",
        most: 62.0,
        peer: "493",
    },
    Bound {
        name: "peak",
        text: "memory, peak",
        unit: "MiB",
        most: 80.0,
        peer: "1070",
    },
    Bound {
        name: "install_writes_per_object",
        text: "writes per object of an install",
        unit: "",
        most: 1.0,
        peer: "-",
    },
    Bound {
        name: "install_writes",
        text: "writes of an install",
        unit: "",
        most: f64::INFINITY,
        peer: "55",
    },
    Bound {
        name: "install_reads",
        text: "reads of an install",
        unit: "",
        most: f64::INFINITY,
        peer: "197",
    },
    Bound {
        name: "noop_writes",
        text: "writes of a reconcile with nothing to do",
        unit: "",
        most: 0.0,
        peer: "7",
    },
    Bound {
        name: "noop_reads",
        text: "reads of a reconcile with nothing to do",
        unit: "",
        most: 0.0,
        peer: "58",
    },
    Bound {
        name: "restart_writes",
        text: "writes of a restart with nothing to do",
        unit: "",
        most: 0.0,
        peer: "8",
    },
    Bound {
        name: "restart_reads",
        text: "reads of a restart besides its watches (--platform set)",
        unit: "",
        most: 0.0,
        peer: "-",
    },
    Bound {
        name: "restart_detecting_reads",
        text: "the same with platform detection",
        unit: "",
        most: 1.0,
        peer: "-",
    },
    Bound {
        name: "events_cpu",
        text: "CPU for 1,000 label changes on injected pods",
        unit: "s",
        most: 0.05,
        peer: "1.6",
    },
    Bound {
        name: "events_writes",
        text: "writes for them",
        unit: "",
        most: 0.0,
        peer: "about 30",
    },
    Bound {
        name: "events_reads",
        text: "reads for them",
        unit: "",
        most: 0.0,
        peer: "-",
    },
    Bound {
        name: "in_use_after",
        text: "until InUse is true",
        unit: "ms",
        most: 50.0,
        peer: "390",
    },
    Bound {
        name: "unused_after",
        text: "until InUse is false",
        unit: "ms",
        most: 50.0,
        peer: "760",
    },
];

/// Returns one row per figure.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    match figures(quick) {
        Ok(figures) => BOUNDS.iter().map(|bound| bound.row(&figures, quick)).collect(),
        Err(error) => vec![Row::not_measured(
            "the operator in a large cluster",
            "measured",
            RowKind::Performance,
            &error,
        )],
    }
}

impl Bound {
    fn row(&self, figures: &BTreeMap<String, f64>, quick: bool) -> Row {
        let bound = if self.most.is_finite() {
            format!("≤ {} {}", self.most, self.unit)
        } else {
            "reported".into()
        };
        let goal = format!("{} (Sail Operator, given: {})", bound.trim(), self.peer);
        let Some(value) = figures.get(self.name) else {
            return Row::fast(self.text, "not measured".into(), &goal, false);
        };
        let share = if quick { " (a tenth of the size)" } else { "" };
        let figure = format!("{value:.3} {}{share}", self.unit);
        Row::fast(self.text, figure.replace(".000", ""), &goal, *value <= self.most)
    }
}

/// Parses the lines `figure name value unit` of the example; the quick share divides all counts by ten.
fn figures(quick: bool) -> anyhow::Result<BTreeMap<String, f64>> {
    let output = Command::new(build::example("bench")?)
        .arg(build::mainstay_binary(Profile::Dist)?)
        .arg(if quick { "10" } else { "1" })
        .stderr(Stdio::inherit())
        .output()
        .context("starting the example bench")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    if !output.status.success() {
        bail!("the example bench failed");
    }
    Ok(text.lines().filter_map(figure).collect())
}

fn figure(line: &str) -> Option<(String, f64)> {
    let (name, rest) = line.strip_prefix("figure ")?.split_once(' ')?;
    let value = rest.split(' ').next()?.parse().ok()?;
    Some((name.to_owned(), value))
}
