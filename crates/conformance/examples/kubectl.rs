//! Plays the session of kubectl on a cluster: takes the program, a kubeconfig and an empty folder, prints the transcript.

#![allow(clippy::print_stdout, reason = "an example")]

use mainstay_conformance::kubectl::{SESSION, Stage, play};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(std::path::PathBuf::from);
    let (Some(kubectl), Some(kubeconfig), Some(folder)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: kubectl PROGRAM KUBECONFIG EMPTY-FOLDER [SESSION]".into());
    };
    let script = match arguments.next() {
        Some(path) => std::fs::read_to_string(path)?,
        None => SESSION.to_owned(),
    };
    let stage = Stage {
        kubectl,
        kubeconfig,
        folder,
    };
    print!("{}", play(&stage, &script)?);
    Ok(())
}
