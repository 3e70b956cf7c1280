//! Runs a command with access to a real API server in an isolated namespace.

#![allow(clippy::print_stderr, reason = "the example prints its results")]

use std::process::{Command, ExitCode};

use mainstay_testkit::cluster::{Cluster, Options};
use mainstay_testkit::isolation;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, rest)) = arguments.split_first() else {
        eprintln!("usage: in_cluster COMMAND [ARGUMENT...]");
        return ExitCode::FAILURE;
    };
    match run(program, rest) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let causes = std::iter::successors(Some(&*error), |error| error.source());
            let text: Vec<_> = causes.map(ToString::to_string).collect();
            eprintln!("{}", text.join(": "));
            ExitCode::FAILURE
        }
    }
}

fn run(program: &str, arguments: &[String]) -> Result<u8, Box<dyn std::error::Error>> {
    isolation::enter()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // No controllers: the command needs only the API server.
    let options = Options {
        controllers: Vec::new(),
        ..Options::default()
    };
    let cluster = runtime.block_on(Cluster::start(options))?;
    let status = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig("admin"))
        .status()?;
    Ok(u8::try_from(status.code().unwrap_or(255)).unwrap_or(255))
}
