//! `cargo xtask prove NAME`: runs everything that a feature must show and prints one row per claim.
//!
//! Correctness rows decide the exit code; performance rows are reported with the peer's figure from the same
//! run.

mod clusters;
mod first_hour;
mod fuzzed;
mod harden;
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
    /// What to prove: render, clusters, inject, operator, migration, traffic, manifest, harden,
    /// rollout, first-hour, speed
    name: String,
    /// Run the share that CI runs: minutes instead of hours
    #[arg(long)]
    quick: bool,
}

/// Returns the test programs of `cargo test --workspace` that the quick proofs of CI run.
pub(crate) fn quick_programs() -> BTreeSet<ProgramName> {
    let render = render::DIFFERENTIAL.iter().copied();
    let inject = inject::quick_programs();
    render.chain(inject).chain(manifest::quick_programs()).collect()
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

/// Prints the totals over correctness rows; a missed performance goal is reported, but is no failure.
fn conclude(rows: &[Row]) -> anyhow::Result<()> {
    let correctness = || rows.iter().filter(|row| row.kind == RowKind::Correctness);
    let passed = correctness().filter(|row| row.outcome == Outcome::Met).count();
    let failed = correctness().count() - passed;
    for row in rows
        .iter()
        .filter(|row| row.kind == RowKind::Performance && row.outcome != Outcome::Met)
    {
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
