//! Typical mistakes with the messages that they produce, one file each: `NAME.txt` holds the command, what is
//! printed and the exit code. Every message has a hint that names the remedy. `BLESS=1` writes the files.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cases;
mod host;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cases::{CASES, Mistake};
use host::Host;

/// Minimum number of mistakes.
const MIN_CASES: usize = 60;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes")
}

/// Returns the problem with the message of a mistake, if any.
async fn check(host: &Host, case: &Mistake) -> Option<String> {
    let run = host.run(case).await;
    let path = directory().join(format!("{}.txt", case.name));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &run.transcript).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    // A report of several errors has a hint for each and ends with their number.
    let has_line = |start: &str| {
        run.stderr
            .lines()
            .any(|line| line.starts_with(start) && line.len() > start.len() + 10)
    };
    let problem = if run.code == 0 {
        "exits with 0"
    } else if !has_line("Error: ") {
        "has no line that starts with `Error: `"
    } else if !has_line("hint: ") {
        "has no hint"
    } else if run.transcript != expected {
        "differs from the stored message"
    } else {
        return None;
    };
    Some(format!(
        "{}: {problem}\n{}\nstored:\n{expected}",
        case.name, run.transcript
    ))
}

#[tokio::test]
async fn every_mistake_names_its_remedy() {
    let host = Host::start().await;
    let mut problems = Vec::new();
    for case in CASES {
        problems.extend(check(&host, case).await);
    }
    assert!(
        problems.is_empty(),
        "{} mistakes\n{}",
        problems.len(),
        problems.join("\n")
    );
    println!("{} of {} mistakes name their remedy", CASES.len(), CASES.len());
}

#[test]
fn there_is_one_file_per_mistake() {
    let names: BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len(), "names are not unique");
    assert!(names.len() >= MIN_CASES, "{} mistakes", names.len());
    let files = std::fs::read_dir(directory()).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stored: BTreeSet<String> = files
        .filter_map(|name| name.strip_suffix(".txt").map(str::to_owned))
        .collect();
    assert_eq!(stored, names.into_iter().map(str::to_owned).collect());
}
