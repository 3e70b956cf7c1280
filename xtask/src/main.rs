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
    /// Compare `mainstay template` with the real helm, byte for byte, or manifests with the real istioctl
    Parity(parity::Arguments),
    /// Run a proof and print one row per claim
    Prove(prove::Arguments),
    /// Measure Mainstay and its peers in the same run
    Bench(bench::Arguments),
    /// Run hostile charts, values, manifests and profiles with limits on time and memory
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;
    use mainstay_testkit::repository_root;

    use super::*;

    /// Returns the Markdown files of the repository that describe the current version.
    fn pages() -> Vec<PathBuf> {
        let root = repository_root();
        let entries = [root.clone(), root.join("docs")].map(|path| std::fs::read_dir(path).unwrap());
        let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .filter(|path| !path.ends_with("CHANGELOG.md"))
            .collect()
    }

    #[test]
    fn documented_tasks_and_flags_exist() {
        let command = Arguments::command();
        let mut flags = 0;
        for page in pages() {
            let text = std::fs::read_to_string(&page).unwrap();
            for words in text.split("`cargo xtask ").skip(1) {
                let words = words.split(['`', '&']).next().unwrap();
                let mut words = words.split(|c: char| c.is_whitespace() || "[]=".contains(c));
                let name = words.next().unwrap();
                let task = command.find_subcommand(name);
                let task = task.unwrap_or_else(|| panic!("{}: no task {name}", page.display()));
                for flag in words.filter_map(|word| word.strip_prefix("--")) {
                    let mut known = task.get_arguments().filter_map(clap::Arg::get_long);
                    assert!(
                        known.any(|one| one == flag),
                        "{}: {name} --{flag}",
                        page.display()
                    );
                    flags += 1;
                }
            }
        }
        assert!(flags >= 10, "{flags} flags");
    }
}
