//! The result of a bench: stored as JSON, printed as a table, and written as a page of the documentation.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mainstay_testkit::repository_root;
use serde::{Deserialize, Serialize};

use super::figure::Figure;
use super::machine::Machine;
use crate::prove::Outcome;

/// Headings of the table.
pub(crate) const HEADINGS: &[&str] = &[
    "input", "quantity", "mainstay", "peer", "ratio", "goal", "outcome",
];

/// Result of one bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Number of runs of each program.
    pub(crate) runs: usize,
    pub(crate) figures: Vec<Figure>,
    /// Inputs for which both programs printed the same bytes.
    pub(crate) identical: Vec<String>,
    /// Inputs for which the programs printed different bytes.
    pub(crate) different: Vec<String>,
    /// Inputs and areas that could not be measured.
    pub(crate) failures: Vec<Failure>,
}

/// An input or area that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Name of the input or area.
    pub(crate) subject: String,
    /// Error with its causes.
    pub(crate) error: String,
}

impl Report {
    /// Creates a report without figures.
    pub(crate) fn new(machine: Machine, runs: usize) -> Self {
        Self {
            machine,
            runs,
            figures: Vec::new(),
            identical: Vec::new(),
            different: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Writes `target/bench.json`.
    pub(crate) fn store(&self) -> anyhow::Result<PathBuf> {
        let path = repository_root().join("target/bench.json");
        write(&path, &serde_json::to_string_pretty(self)?)?;
        Ok(path)
    }

    /// Writes the page of the documentation.
    pub(crate) fn store_page(&self) -> anyhow::Result<PathBuf> {
        let path = page_path();
        write(&path, &self.page())?;
        Ok(path)
    }

    /// Returns one row of cells per figure, then one per input that could not be measured.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |figure: &Figure| {
            vec![
                figure.subject.clone(),
                figure.quantity.clone(),
                figure.ours(),
                figure.theirs(),
                figure.shown_ratio(),
                figure.goal.to_string(),
                figure.outcome().to_string(),
            ]
        };
        let failures = self.failures.iter().map(Failure::row);
        self.figures.iter().map(row).chain(failures).collect()
    }

    /// Returns the page: a fixed text around the measured table.
    pub(crate) fn page(&self) -> String {
        let mut out = String::from(INTRODUCTION);
        out.push_str("\n## Machine\n\n");
        let (machine, method) = match self.figures.as_slice() {
            [] => (NOT_MEASURED.to_owned(), String::new()),
            _ => (self.machine.text(), format!("{}\n\n", self.method())),
        };
        // Writing to a string cannot fail.
        let _ = write!(out, "{machine}\n\n{method}## Figures\n\n");
        out.push_str(&markdown_row(HEADINGS.iter().map(ToString::to_string)));
        out.push_str(&markdown_row(HEADINGS.iter().map(|_| "---".to_owned())));
        for row in self.rows() {
            out.push_str(&markdown_row(row.into_iter()));
        }
        out
    }

    fn method(&self) -> String {
        format!(
            "A figure with a range in parentheses is a median of {} runs with the tenth and the ninetieth percentile; one without was \
             measured once. Runs of both programs alternate, except those of watch events, which each operator receives in one series. \
             The output of {} of {} compared inputs is byte-identical.",
            self.runs,
            self.identical.len(),
            self.identical.len() + self.different.len()
        )
    }
}

impl Failure {
    /// Returns a row without figures. The error is printed below the table: it may name files of the machine.
    fn row(&self) -> Vec<String> {
        let last = HEADINGS.len() - 1;
        let cell = |column| match column {
            0 => self.subject.clone(),
            column if column == last => Outcome::NotMeasured.to_string(),
            _ => String::new(),
        };
        (0..=last).map(cell).collect()
    }
}

/// Returns the path of the generated page.
pub(crate) fn page_path() -> PathBuf {
    repository_root().join("docs/performance.md")
}

fn markdown_row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<_> = cells.map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Text that replaces the description of the machine if no figures are stored.
const NOT_MEASURED: &str = "No figures are stored. `cargo xtask bench` on an idle machine writes them.";

/// The part of the page that does not depend on the figures.
const INTRODUCTION: &str = "# Performance

This page is written by `cargo xtask bench`, which measures Mainstay and the peer in one run and stores the figures in
`target/bench.json`. `cargo xtask prove speed` compares them with their goals. `mainstay` is the static binary of a release
([packages.md](packages.md)), except in process, where the engine is part of the program that measures it.

- Rendering: `mainstay template` beside `helm template` (Helm 4), output discarded. *In process* is the engine alone: dependencies resolved,
  values coalesced and all templates parsed and rendered in memory, beside Helm's engine in a Go program. The charts are generated, except istiod
  and the parts of the umbrella charts, which are embedded charts: they have the shapes of public charts with content of our own. Charts with
  certificates have random content; their output is compared without it.
- Injection: `mainstay generate` beside `istioctl kube-inject` on the same manifests, and the throughput and memory of streams of several kinds. The
  memory for one large document is the peak minus that of an empty input, which is subtracted in every run.
- Rehearsal: `mainstay rehearse` from a snapshot's file to the report as JSON and as a page.
- Operator: `mainstay operator run` on a real API server, beside the Sail Operator if `MAINSTAY_SAIL_OPERATOR` names its binary and, unless
  the binary contains them, `MAINSTAY_SAIL_OPERATOR_CHARTS` the directory of its charts. Both install Istio 1.29.1. Each operator runs alone; watch
  events are changes of a pod's label that no revision depends on.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Headings and headers of tables: the structure of a page.
    fn structure(page: &str) -> Vec<&str> {
        let is_structure = |line: &&str| line.starts_with('#') || line.starts_with("| input");
        page.lines().filter(is_structure).collect()
    }

    #[test]
    fn the_stored_page_has_the_structure_that_the_bench_writes() {
        let empty = Report::new(Machine::default(), 20);
        let stored = fs::read_to_string(page_path()).unwrap_or_default();
        let written = empty.page();
        assert_eq!(structure(&stored), structure(&written), "run `cargo xtask bench`");
        assert!(stored.starts_with(INTRODUCTION), "run `cargo xtask bench`");
    }

    #[test]
    fn a_failure_has_a_row_without_its_error() {
        let mut report = Report::new(Machine::default(), 20);
        report.failures.push(Failure {
            subject: "operator".into(),
            error: "/tmp/etcd is not built".into(),
        });
        let cells = ["operator", "", "", "", "", "", "not measured"];
        assert_eq!(report.rows(), [cells.map(str::to_owned).to_vec()]);
    }
}
