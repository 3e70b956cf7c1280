//! `cargo xtask prove NAME`: verifies the claims of a feature and prints one row per claim.
//!
//! Correctness rows decide the exit code; performance rows are reported with the peer's figure from the same
//! run.

mod clusters;
mod first_hour;
mod fuzzed;
mod harden;
mod hostile;
mod inject;
mod manifest;
mod migration;
mod operator;
mod render;
mod rollout;
pub(crate) mod row;
mod speed;
mod traffic;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use crate::programs::ProgramName;

pub(crate) use row::{Outcome, Row, RowKind};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Proof to run: render, clusters, inject, operator, migration, traffic, manifest, harden, rollout,
    /// first-hour, speed
    name: String,
    /// Run the share that CI runs: minutes instead of hours
    #[arg(long)]
    quick: bool,
}

/// Returns the test programs of `cargo test --workspace` that the quick proofs of CI run.
pub(crate) fn quick_programs() -> BTreeSet<ProgramName> {
    let render = render::DIFFERENTIAL.iter().copied();
    let inject = inject::quick_programs();
    let engines = manifest::quick_programs().chain(rollout::quick_programs());
    render.chain(inject).chain(engines).collect()
}

/// Collects and prints the rows and writes `target/prove/NAME.json`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let rows = match arguments.name.as_str() {
        "render" => render::rows(arguments.quick),
        "clusters" => clusters::rows(arguments.quick),
        "inject" => inject::rows(arguments.quick),
        "operator" => operator::rows(arguments.quick),
        "migration" => migration::rows(arguments.quick),
        "traffic" => traffic::rows(arguments.quick),
        "manifest" => manifest::rows(arguments.quick),
        "harden" => harden::rows(arguments.quick),
        "rollout" => rollout::rows(arguments.quick),
        "first-hour" => first_hour::rows(arguments.quick),
        "speed" => speed::rows(),
        unknown => {
            bail!(
                "unknown proof {unknown:?}; known proofs: render, clusters, inject, operator, migration, traffic, manifest, harden, rollout, first-hour, speed"
            )
        }
    };
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    println!(
        "\n{}\n",
        crate::table::layout(&["claim", "figure", "goal", "outcome"], &cells)
    );
    write(&arguments.name, &rows)?;
    conclude(&rows)
}

fn write(name: &str, rows: &[Row]) -> anyhow::Result<()> {
    let directory = repository_root().join("target/prove");
    fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{name}.json"));
    fs::write(&path, serde_json::to_vec_pretty(rows)?).with_context(|| path.display().to_string())
}

/// Prints the totals over correctness rows; a missed performance goal is reported, but is not a failure.
fn conclude(rows: &[Row]) -> anyhow::Result<()> {
    let correctness = || rows.iter().filter(|row| row.kind == RowKind::Correctness);
    let passed = correctness().filter(|row| row.outcome == Outcome::Met).count();
    let failed = correctness().count() - passed;
    let is_missed = |row: &&Row| {
        row.kind == RowKind::Performance && !matches!(row.outcome, Outcome::Met | Outcome::Reported)
    };
    for row in rows.iter().filter(is_missed) {
        println!(
            "performance, {}: {} is {} (goal {})",
            row.outcome, row.claim, row.figure, row.goal
        );
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 || passed == 0 {
        bail!("{failed} claims do not hold");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Adds the words of the code below a directory, without comments: test cases are functions, arguments of
    /// macros or strings.
    fn add_words(directory: &Path, words: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("src/prove") {
                // The names themselves.
            } else if path.is_dir() {
                add_words(&path, words);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let is_separator = |it: char| !it.is_alphanumeric() && it != '_';
                words.extend(code.flat_map(|line| line.split(is_separator)).map(str::to_owned));
            }
        }
    }

    /// Reports whether a test case has this name, which may be a part or have a module path. Suites add the
    /// kind of server to the names of their cases.
    fn is_defined(name: &str, words: &BTreeSet<String>) -> bool {
        let last = name.rsplit("::").find(|part| !part.is_empty()).unwrap_or(name);
        let case = last
            .strip_suffix("_simulated")
            .or_else(|| last.strip_suffix("_real"));
        words
            .iter()
            .any(|word| word.contains(last) || case.is_some_and(|case| word.contains(case)))
    }

    /// Returns the names of tests in the lists of the operator's scenarios: `TEXT | [CRATE:]NAME …` per line.
    fn listed_names() -> Vec<String> {
        let directory = repository_root().join("crates/operator/tests");
        let texts =
            ["scenarios.txt", "migration.txt"].map(|file| fs::read_to_string(directory.join(file)).unwrap());
        let lines = texts.iter().flat_map(|text| text.lines());
        let names = lines
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(" | "))
            .flat_map(|(_, names)| names.split_whitespace());
        let last_part = |name: &str| name.rsplit(':').next().unwrap_or(name).to_owned();
        names.map(last_part).collect()
    }

    #[test]
    fn tests_that_proofs_name_exist() {
        let root = repository_root();
        let mut words = BTreeSet::new();
        for directory in ["crates", "xtask/src"] {
            add_words(&root.join(directory), &mut words);
        }
        assert!(!is_defined(
            "a_test_that_does_not_exist",
            &BTreeSet::from(["a_test".to_owned()])
        ));
        let named = harden::test_names()
            .chain(rollout::test_names())
            .chain(manifest::test_names());
        let listed = listed_names();
        assert!(!listed.is_empty());
        let all = named.map(str::to_owned).chain(listed);
        let missing: Vec<String> = all.filter(|name| !is_defined(name, &words)).collect();
        assert!(missing.is_empty(), "no test has these names: {missing:#?}");
    }
}
