//! `mainstay demo rollout` without a terminal.

use serde_json::Value;

use crate::host::{check, offline};

/// Replaces the wall time and the times of conditions, which depend on the start of the run.
fn stable(text: &str) -> String {
    let word = |word: &str| {
        let is_time = word.starts_with("20") && word.contains('T') && word.contains('Z');
        let rest = word.split_once('Z').map_or("", |(_, rest)| rest);
        if is_time {
            format!("TIME{rest}")
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| match line.split_once("; cluster time") {
        Some((_, rest)) => format!("Wall time: N s; cluster time{rest}\n"),
        None => format!("{}\n", line.split(' ').map(word).collect::<Vec<_>>().join(" ")),
    };
    text.lines().map(line).collect()
}

/// A canary that fails its analysis, and one that succeeds, in lines of at most 80 columns.
#[test]
fn the_rollout_demo_prints_both_canaries() {
    let printed = offline(&["demo", "rollout", "--speed", "1000"]);
    assert!(printed.ends_with("--- exit 0\n"), "{printed}");
    assert!(!printed.contains('\u{1b}'), "plain text without a terminal");
    let widest = printed.lines().max_by_key(|line| line.chars().count()).unwrap();
    assert!(widest.chars().count() <= 80, "{widest}");
    check("demo-rollout", &stable(&printed));
}

#[test]
fn the_rollout_demo_prints_json() {
    let printed = offline(&["demo", "rollout", "--speed", "1000", "-o", "json"]);
    let lines = printed.lines().skip(1).take_while(|line| line.starts_with('{'));
    let events: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = events.last().unwrap();
    assert_eq!(
        (&end["event"], &end["aborted"], &end["completed"]),
        (&"end".into(), &1.into(), &1.into())
    );
    assert_eq!(
        end["lowestAvailable"],
        serde_json::json!({"": 2, "east": 4, "west": 4})
    );
    let phases: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "progress")
        .map(|event| event["data"]["phase"].as_str().unwrap())
        .collect();
    for phase in ["Aborted", "Paused", "Healthy"] {
        assert!(phases.contains(&phase), "{phases:?}");
    }
}
