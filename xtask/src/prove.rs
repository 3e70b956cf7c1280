//! `cargo xtask prove NAME`: takes the name of a body of work, runs everything it must show, gives one row per claim.
//!
//! Correctness rows decide the exit code; performance rows are reported with the peer's figure from the same run.

mod clusters;
mod fuzzed;
mod inject;
mod migration;
mod operator;
mod render;
mod row;
mod traffic;

use std::fs;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

pub(crate) use row::{Outcome, Rank, Row};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to prove: render, clusters, inject, operator, migration, traffic
    name: String,
    /// The share CI runs: minutes instead of the whole
    #[arg(long)]
    quick: bool,
}

/// Gathers the rows, prints them, writes `target/prove/NAME.json`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let rows = match arguments.name.as_str() {
        "render" => render::rows(arguments.quick),
        "clusters" => clusters::rows(arguments.quick),
        "inject" => inject::rows(arguments.quick),
        "operator" => operator::rows(arguments.quick),
        "migration" => migration::rows(arguments.quick),
        "traffic" => traffic::rows(arguments.quick),
        unknown => {
            bail!(
                "nothing is called {unknown:?}; there are render, clusters, inject, operator, migration and traffic"
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
    let folder = repository_root().join("target/prove");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, serde_json::to_vec_pretty(rows)?).with_context(|| path.display().to_string())
}

/// The closing line counts correctness rows only: a missed performance goal is a figure to report, not a failure.
fn conclude(rows: &[Row]) -> anyhow::Result<()> {
    let judged = || rows.iter().filter(|row| row.rank == Rank::Correctness);
    let passed = judged().filter(|row| row.outcome == Outcome::Met).count();
    let failed = judged().count() - passed;
    for row in rows
        .iter()
        .filter(|row| row.rank == Rank::Performance && row.outcome != Outcome::Met)
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
