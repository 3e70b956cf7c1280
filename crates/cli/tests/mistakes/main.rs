//! Typical mistakes with the messages that they produce, one file each: `NAME.txt` holds the command, what is
//! printed and the exit code. Every message has a hint that names the remedy. `BLESS=1` writes the files.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cases;
mod host;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cases::{CASES, Mistake};
use host::Host;

/// Directories of the repository.
const REPOSITORY: &[&str] = &["docs/", "deploy/", "crates/", "xtask"];

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
    } else if run.stderr.lines().any(names_no_remedy) {
        "has a hint that only names --help"
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

/// Whether a line is a hint that contains nothing but a command that prints help.
fn names_no_remedy(line: &str) -> bool {
    let Some(hint) = line.strip_prefix("hint: ") else {
        return false;
    };
    let mut parts = hint.split("; ").flat_map(|part| part.split("? "));
    parts.all(|part| part.starts_with("run `") && part.contains(" --help`"))
}

#[test]
fn a_hint_that_only_names_help_is_no_remedy() {
    assert!(names_no_remedy(
        "hint: run `mainstay status --help` to list the flags"
    ));
    assert!(!names_no_remedy(
        "hint: remove it; run `mainstay status --help` to list the flags"
    ));
    assert!(!names_no_remedy(
        "hint: did you mean --context? run `mainstay --help`"
    ));
    assert!(!names_no_remedy("Error: unknown flag"));
}

/// Checks that messages name the remedy itself: users of the binary do not have the repository.
#[test]
fn no_message_names_a_file_of_the_repository() {
    let mut found = Vec::new();
    for directory in ["tests/mistakes", "tests/status", "tests/rollout/expected"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.lines().filter(|line| line.contains("hint: "));
                let named = lines.filter(|line| REPOSITORY.iter().any(|path| line.contains(path)));
                found.extend(named.map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
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
