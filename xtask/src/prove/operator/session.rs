//! A run of test programs: takes their arguments, gives what passed and what was printed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::build;

/// What test programs said.
pub(in crate::prove) struct Session {
    output: String,
    passed: BTreeSet<String>,
}

/// How much of a matrix.
pub(in crate::prove) fn share(quick: bool) -> &'static [(&'static str, &'static str)] {
    if quick {
        &[]
    } else {
        &[("MAINSTAY_MATRIX", "whole")]
    }
}

impl Session {
    /// The tests of the pure libraries.
    pub(in crate::prove) fn of_libraries() -> anyhow::Result<Self> {
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

    /// Scenarios, quiet, bad input and the matrix on the simulator, migrations left out; the whole is run with optimisation.
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

    /// The same on a real API server; workloads that move are a proof of their own.
    pub(in crate::prove) fn real(quick: bool) -> anyhow::Result<Self> {
        let base = ["test", "--workspace", "--test", "real", "--"];
        let others = ["migration::", "kill::", "faults::moves"].map(|room| ["--skip", room]);
        Self::run(&[base.as_slice(), others.as_flattened()].concat(), share(quick))
    }

    /// The test programs have names of their own in the workspace: asked for by those alone, they are built from what
    /// `cargo test --workspace` has already built.
    pub(in crate::prove) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        println!("$ cargo {}", arguments.join(" "));
        let mut child = build::cargo()
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(repository_root())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting cargo test")?;
        let said = child.stdout.take().context("no output of cargo test")?;
        // It may take an hour: what is said is shown as it comes.
        let mut output = String::new();
        for line in BufReader::new(said).split(b'\n') {
            let line = line.context("reading what cargo test says")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
        child.wait().context("waiting for cargo test")?;
        if !output.contains("\ntest result: ") {
            bail!("the test program did not come to its end");
        }
        let passed = output.lines().filter_map(passed).map(str::to_owned).collect();
        Ok(Self { output, passed })
    }

    /// Whether a test of this name passed; a name without its rooms suffices.
    pub(in crate::prove) fn passed(&self, name: &str) -> bool {
        let within = format!("::{name}");
        self.passed.contains(name) || self.passed.iter().any(|test| test.ends_with(&within))
    }

    /// How many tests passed and failed.
    pub(in crate::prove) fn counts(&self) -> (usize, usize) {
        let failed = self.output.lines().filter(|line| {
            line.strip_prefix("test ")
                .and_then(|line| line.split_once(" ... "))
                .is_some_and(|(_, outcome)| outcome.starts_with("FAILED"))
        });
        (self.passed.len(), failed.count())
    }

    /// The rest of the first line that begins so.
    pub(in crate::prove) fn after(&self, beginning: &str) -> Option<&str> {
        self.output.lines().find_map(|line| line.strip_prefix(beginning))
    }
}

/// `test NAME ... ok`.
fn passed(line: &str) -> Option<&str> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    outcome.starts_with("ok").then_some(name)
}
