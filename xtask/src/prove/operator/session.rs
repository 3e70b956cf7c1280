//! Runs test programs and collects their results and output.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build;

/// Results and output of test programs.
pub(in crate::prove) struct Session {
    output: String,
    passed: BTreeSet<String>,
}

/// Returns the environment that selects the share of the fault matrix.
pub(in crate::prove) fn share(quick: bool) -> &'static [(&'static str, &'static str)] {
    if quick {
        &[]
    } else {
        &[("MAINSTAY_MATRIX", "whole")]
    }
}

impl Session {
    /// Runs the tests of the pure crates.
    pub(in crate::prove) fn for_libraries() -> anyhow::Result<Self> {
        let packages = [
            "mainstay-mesh",
            "mainstay-api",
            "mainstay-catalog",
            "mainstay-check",
        ];
        let packages: Vec<&str> = packages.iter().flat_map(|name| ["--package", name]).collect();
        Self::run(
            &[
                &["test", "--quiet", "--no-fail-fast"],
                packages.as_slice(),
                &["--", "--format=pretty"],
            ]
            .concat(),
            &[],
        )
    }

    /// Runs scenarios, no-op checks, bad input and the fault matrix on the simulator, without migrations. The
    /// full proof uses the release profile.
    pub(in crate::prove) fn simulated(quick: bool) -> anyhow::Result<Self> {
        let base = ["test", "--workspace", "--test", "simulated"];
        let profile: &[&str] = if quick { &[] } else { &["--release"] };
        let rest = ["--", "--show-output", "--skip", "moves_"];
        let whole = [("MAINSTAY_MATRIX", "whole"), ("MAINSTAY_INPUT", "whole")];
        Self::run(
            &[&base, profile, &rest].concat(),
            if quick { &[] } else { &whole },
        )
    }

    /// Runs the same tests on a real API server. Migrations have their own proof.
    pub(in crate::prove) fn real(quick: bool) -> anyhow::Result<Self> {
        let base = ["test", "--workspace", "--test", "real", "--"];
        let others = ["migration::", "kill::", "faults::moves"].map(|module| ["--skip", module]);
        Self::run(&[base.as_slice(), others.as_flattened()].concat(), share(quick))
    }

    /// Runs `cargo` with `arguments`. Test targets have unique names in the workspace: selected by name with
    /// `--workspace`, they reuse what `cargo test --workspace` has built.
    pub(in crate::prove) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        println!("$ cargo {}", arguments.join(" "));
        let mut child = build::cargo()
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(repository_root())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting cargo test")?;
        let stdout = child.stdout.take().context("no output of cargo test")?;
        // A run may take an hour, so lines are printed as they arrive.
        let mut output = String::new();
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("reading the output of cargo test")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
        child.wait().context("waiting for cargo test")?;
        Self::parse(output)
    }

    /// Parses the output of finished test programs.
    pub(in crate::prove) fn parse(output: String) -> anyhow::Result<Self> {
        if !output.contains("\ntest result: ") {
            bail!("the test program did not finish");
        }
        let passed = output.lines().filter_map(passed).map(str::to_owned).collect();
        Ok(Self { output, passed })
    }

    /// Returns whether the test passed; the module path may be omitted.
    pub(in crate::prove) fn passed(&self, name: &str) -> bool {
        let within = format!("::{name}");
        self.passed.contains(name) || self.passed.iter().any(|test| test.ends_with(&within))
    }

    /// Whether a test of this name failed, in any of the test programs.
    pub(in crate::prove) fn failed(&self, name: &str) -> bool {
        let within = format!("::{name}");
        self.failures()
            .any(|test| test == name || test.ends_with(&within))
    }

    /// Returns the numbers of passed and failed tests.
    pub(in crate::prove) fn counts(&self) -> (usize, usize) {
        (self.passed.len(), self.failures().count())
    }

    fn failures(&self) -> impl Iterator<Item = &str> {
        let outcomes = self.output.lines().filter_map(|line| {
            let line = line.strip_prefix("test ")?;
            line.split_once(" ... ")
        });
        outcomes
            .filter(|(_, outcome)| outcome.starts_with("FAILED"))
            .map(|(name, _)| name)
    }

    /// Returns the rest of the first line that starts with `prefix`.
    pub(in crate::prove) fn after(&self, prefix: &str) -> Option<&str> {
        self.output.lines().find_map(|line| line.strip_prefix(prefix))
    }
}

/// Returns the name in `test NAME ... ok`.
fn passed(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    outcome.starts_with("ok").then_some(name)
}
