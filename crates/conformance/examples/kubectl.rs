//! Runs the kubectl session on a cluster and prints the transcript.

#![allow(clippy::print_stdout, reason = "an example")]

use mainstay_conformance::kubectl::{SESSION, SessionConfig, run_session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(std::path::PathBuf::from);
    let (Some(kubectl), Some(kubeconfig), Some(directory)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: kubectl PROGRAM KUBECONFIG EMPTY-DIRECTORY [SESSION]".into());
    };
    let script = match arguments.next() {
        Some(path) => std::fs::read_to_string(path)?,
        None => SESSION.to_owned(),
    };
    let config = SessionConfig {
        kubectl,
        kubeconfig,
        directory,
    };
    print!("{}", run_session(&config, &script)?);
    Ok(())
}
