//! Development tasks; `cargo xtask --help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tasks print to the terminal"
)]

mod bench;
mod build;
mod charts;
mod codegen;
mod deny;
mod dist;
mod docs;
mod fuzz;
mod hostile;
mod measure;
mod parity;
mod peers;
mod picture;
mod programs;
mod prove;
mod run;
mod table;
mod test;
mod tidy;
mod tool;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Tasks around Mainstay",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the pinned charts, build, and run an Istio upgrade on an embedded cluster
    Run,
    /// Run what CI runs: format, lints, licenses, tidy, all tests and the quick share of each proof
    Test,
    /// Download the pinned Istio charts and derive both flavours into `resources/`
    Charts(charts::Arguments),
    /// Generate tables and CRDs from the definitions in the pinned modules
    Codegen(codegen::Arguments),
    /// Build the real peers (helm, the Go oracle, …) into the user's cache directory
    Peers {
        /// Peers to build; all if none are given
        names: Vec<String>,
    },
    /// Check dependencies against the advisory database (needs the network), licenses and sources
    Advisories,
    /// Record `mainstay demo` and a rehearsal for the README
    Picture(picture::Arguments),
    /// Build the files of a release
    Dist(dist::Arguments),
    /// Build the documentation as a book into `target/docs`, with the generated references
    Docs(docs::Arguments),
    /// Compare `mainstay template` with the real helm, byte for byte
    Parity(parity::Arguments),
    /// Run a proof and print one row per claim
    Prove(prove::Arguments),
    /// Measure Mainstay and its peers in the same run
    Bench(bench::Arguments),
    /// Run hostile charts and values with limits on time and memory
    Hostile(hostile::Arguments),
    /// Run all fuzz targets
    Fuzz(fuzz::Arguments),
    /// Execute the fixed inputs of one fuzz target
    #[command(hide = true)]
    FuzzReplay(fuzz::ReplayArguments),
    /// Check the house style: vocabulary, layers, module docs, sizes, forbidden attributes
    Tidy,
    /// Run one command and write its time and peak memory to a file
    #[command(hide = true)]
    Measure(measure::Arguments),
    /// Measure injection against istioctl inside a network namespace with an API server
    #[command(hide = true)]
    BenchInject(bench::inject::istioctl::Arguments),
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Run => run::run(),
        Task::Test => test::run(),
        Task::Charts(arguments) => charts::run(&arguments),
        Task::Codegen(arguments) => codegen::run(&arguments),
        Task::Peers { names } => peers::run(&names),
        Task::Advisories => {
            let date = deny::check_advisories()?;
            println!("advisories: none, database of {date}");
            Ok(())
        }
        Task::Picture(arguments) => picture::run(&arguments),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Docs(arguments) => docs::run(&arguments),
        Task::Parity(arguments) => parity::run(&arguments),
        Task::Prove(arguments) => prove::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::BenchInject(arguments) => bench::inject::istioctl::run(&arguments),
        Task::Hostile(arguments) => hostile::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::FuzzReplay(arguments) => fuzz::replay(arguments),
        Task::Tidy => tidy::run(),
        Task::Measure(arguments) => measure::run(&arguments),
    }
}
