//! `mainstay demo` as a process: output, exit codes, and operation without a kubeconfig or a cluster.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Prepares `mainstay demo` in an empty directory, without a home directory, kubeconfig or terminal.
fn command(directory: &tempfile::TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .arg("demo")
        .args(arguments)
        .env_clear()
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let output = command(&directory, arguments).output().unwrap();
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "files left behind: {left:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The new revision, before the batch in the table of results.
const NEW: &str = "default-v1-29-1";

/// Width of the recorded terminal.
const COLUMNS: usize = 100;

const PICTURE: &str = include_str!("../../../docs/images/demo.svg");

/// Returns the lines of the picture, without markup.
fn picture_lines() -> Vec<String> {
    let lines = PICTURE.lines().filter(|line| line.starts_with("<text "));
    let plain = |line: &str| {
        let pieces = line.split('<').skip(1).filter_map(|piece| piece.split_once('>'));
        let text: String = pieces.map(|(_, text)| text).collect();
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    };
    lines.map(plain).collect()
}

/// Splits a line at the width of the recorded terminal.
fn wrapped(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    match characters.len() {
        0 => vec![String::new()],
        _ => characters
            .chunks(COLUMNS)
            .map(|row| row.iter().collect())
            .collect(),
    }
}

/// Whether a row is the start of a line with the cluster's time.
fn is_stamped(row: &str) -> bool {
    let stamp = row.split(' ').next().unwrap_or_default();
    stamp.len() == 7 && stamp.starts_with('[') && stamp.ends_with(']') && stamp.contains(':')
}

/// Masks a word that differs between runs: times, ages, the speed, hashes of pods.
fn masked(word: &str) -> &str {
    let is_duration = |word: &str| {
        let digits = word.trim_matches(|c: char| c.is_ascii_digit() || c == 'm' || c == 's');
        digits.is_empty() && word.ends_with('s') && word.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_time = word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let is_speed = word
        .strip_suffix('x')
        .is_some_and(|number| number.parse::<u32>().is_ok());
    if is_stamped(word) || is_time || is_duration(word) || is_speed {
        return "N";
    }
    match word.strip_prefix("billing-") {
        Some(rest) if rest.contains('-') => "billing-HASH",
        _ => word,
    }
}

/// Returns the lines that every run prints. How many lines report progress, and which batch a workload is
/// in, depends on the speed. Pods are listed in the order of their hashes.
fn comparable(rows: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut in_progress = false;
    for row in rows {
        in_progress = row.contains("] default InProgress: ") || (in_progress && !is_stamped(row));
        if in_progress {
            continue;
        }
        let words: Vec<&str> = row.split_whitespace().collect();
        let is_batch = |at: usize| at > 0 && words[at - 1] == NEW && words[at].len() == 1;
        let words: Vec<&str> = (0..words.len())
            .map(|at| if is_batch(at) { "N" } else { masked(words[at]) })
            .collect();
        match words.first() {
            Some(&"Wall") => lines.push("Wall time".to_owned()),
            _ => lines.push(words.join(" ")),
        }
    }
    for pods in lines.chunk_by_mut(|a, b| a.starts_with("billing-HASH") && b.starts_with("billing-HASH")) {
        pods.sort();
    }
    lines
}

/// Checks that the picture in the README shows this demo. `cargo xtask picture` records it.
#[test]
fn the_picture_in_the_readme_is_current() {
    let directory = tempfile::tempdir().unwrap();
    let output = command(&directory, &["--speed", "1000"])
        .env("COLUMNS", COLUMNS.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed: Vec<String> = text(&output.stdout).lines().flat_map(wrapped).collect();
    let (shown, printed) = (comparable(&picture_lines()), comparable(&printed));
    assert!(shown.len() > 100, "{} lines", shown.len());
    for (index, (shown, printed)) in shown.iter().zip(&printed).enumerate() {
        assert_eq!(shown, printed, "line {}: run `cargo xtask picture`", index + 1);
    }
    assert_eq!(shown.len(), printed.len(), "run `cargo xtask picture`");
}

/// Checks the whole demo by its JSON output.
#[test]
fn every_workload_is_migrated_and_the_old_revision_is_pruned() {
    let output = run(&["-o", "json", "--speed", "200"]);
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let events: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["event"] == kind).collect() };
    let end = of("end")[0];
    for (field, value) in [
        ("workloads", 12),
        ("moved", 9),
        ("movedAfterRepair", 1),
        ("restartedByOwner", 1),
        ("notInTheMesh", 1),
    ] {
        assert_eq!(end[field], value, "{field}: {end}");
    }
    assert_eq!(end["pruned"], true);
    assert!(end["wallSeconds"].as_f64().unwrap() > 0.0);
    assert_eq!(events.last(), Some(end));

    let statuses: Vec<&Value> = of("migration").into_iter().map(|event| &event["data"]).collect();
    let states: Vec<&str> = statuses
        .iter()
        .map(|status| status["state"].as_str().unwrap())
        .collect();
    assert_eq!(states.last(), Some(&"Completed"));
    assert!(
        states.contains(&"InProgress") && states.contains(&"Failed"),
        "{states:?}"
    );
    let failed = statuses
        .iter()
        .find(|status| status["state"] == "Failed")
        .unwrap();
    assert_eq!(failed["failures"][0]["name"], "billing");
    assert_eq!(failed["migratedWorkloads"], 9);
    assert_eq!(failed["skippedWorkloads"], 1);
    assert_eq!(failed["batched"]["totalBatches"], 4);

    let pages = of("status");
    let revisions = |page: &Value| page["data"]["revisions"].as_array().unwrap().len();
    assert_eq!(
        (revisions(pages[0]), revisions(pages[1])),
        (2, 1),
        "the old revision is kept while a workload has failed"
    );
    assert_eq!(
        pages[1]["data"]["revisions"][0]["inUseBy"]["pods"], 25,
        "each pod is counted once"
    );
    assert_eq!(pages[1]["data"]["problems"], serde_json::json!([]));
    let rows = of("outcome")[0]["data"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    for row in rows {
        let expected = if row["what"] == "notInTheMesh" {
            ("", "")
        } else {
            ("default-v1-28-2", "default-v1-29-1")
        };
        assert_eq!(
            (row["before"].as_str().unwrap(), row["after"].as_str().unwrap()),
            expected,
            "{row}"
        );
    }
}

/// Checks the text output without a terminal.
#[test]
fn commands_and_times_are_printed() {
    let output = run(&["--speed", "1000"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    let mut rest = stdout.as_str();
    for next in [
        "Its clock runs at 1000x",
        "$ helm install mainstay mainstay-0.1.0.tgz",
        "$ kubectl apply -f istio.yaml",
        "version: v1.28.2",
        "$ kubectl apply -f workloads.yaml",
        "$ mainstay migration plan --to v1.29.1",
        "10 workloads to default-v1-29-1 in 4 batches, 1 skipped, 0 failed",
        "Deployment/platform/audit  SkippedByAnnotation",
        "$ kubectl patch istio default",
        "$ mainstay migration watch",
        "default InProgress: ",
        "failed Deployment/payments/billing: ",
        "default Failed: 9 of 11 migrated",
        "ImagePullBackOff",
        "$ mainstay status",
        "$ kubectl set image -n payments deployment/billing",
        "$ mainstay migration status",
        "Istio default  Completed  to default-v1-29-1",
        "$ kubectl rollout restart -n platform deployment/audit",
        "default-v1-28-2 and its istiod are pruned",
        "$ mainstay status",
        "No problems found.",
        "12 workloads: 9 migrated, 1 after a fix, 1 restarted manually, 1 not in the mesh. default-v1-28-2 is pruned.",
        "Wall time: ",
    ] {
        let Some(at) = rest.find(next) else {
            panic!("{next:?} is missing or out of order:\n{stdout}");
        };
        rest = &rest[at..];
    }
    assert!(!stdout.contains('\x1b'), "plain lines without a terminal");
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = command(&directory, &["--speed", "1"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut output = String::new();
        while !output.contains("kubectl apply") {
            assert!(stdout.read_line(&mut output).unwrap() > 0, "{output}");
        }
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        stdout.read_to_string(&mut output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{output}");
        assert!(output.ends_with("Stopped.\n"), "{output}");
    }
}

#[test]
fn an_invalid_speed_is_rejected() {
    for (speed, why) in [
        ("0", "must be between 1 and 1000"),
        ("-1", "must be between 1 and 1000"),
        ("1001", "must be between 1 and 1000"),
        ("NaN", "must be between 1 and 1000"),
        ("inf", "must be between 1 and 1000"),
        ("fast", "not a number"),
        ("", "flag needs an argument: --speed"),
    ] {
        let output = run(&[&format!("--speed={speed}")]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{speed}: {said}");
        assert!(said.contains(why), "{speed}: {said}");
    }
}

#[test]
fn manifests_of_the_demo_can_be_exported() {
    let output = run(&["--manifests"]);
    let all = text(&output.stdout);
    assert_eq!(all.matches("\nkind: Namespace\n").count(), 6);
    assert_eq!(all.matches("\nkind: Deployment\n").count(), 11);
    assert_eq!(all.matches("\nkind: StatefulSet\n").count(), 1);
    assert_eq!(all.matches("\nkind: Istio\n").count(), 1);
}
