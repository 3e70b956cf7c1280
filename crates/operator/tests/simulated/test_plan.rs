//! Checks the mapping of the proposal's test plan: every line has tests, and every named test exists.

use std::fs;
use std::path::Path;

use mainstay_testkit::repository_root;

use super::scenarios;

/// Lists the names of scenarios.
macro_rules! names {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {
        &[$($(concat!("migration::", stringify!($module), "::", stringify!($name))),+),+]
    };
}

const SCENARIOS: &[&str] = scenarios::migration::each_migration!(names);

/// Sections of the test plan with their number of lines in the proposal.
const SECTIONS: [(&str, usize); 4] = [
    ("[unit]", 27),
    ("[integration]", 32),
    ("[e2e]", 18),
    ("[scale]", 5),
];

struct Line {
    list: String,
    text: String,
    tests: Vec<String>,
}

fn parse_lines() -> Vec<Line> {
    let path = repository_root().join("crates/operator/tests/migration.txt");
    let text = fs::read_to_string(path).unwrap();
    let (mut list, mut lines) = (String::new(), Vec::new());
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if line.starts_with('[') {
            line.clone_into(&mut list);
            continue;
        }
        let (text, tests) = line
            .split_once(" | ")
            .unwrap_or_else(|| panic!("line without tests: {line}"));
        lines.push(Line {
            list: list.clone(),
            text: text.to_owned(),
            tests: tests.split_whitespace().map(str::to_owned).collect(),
        });
    }
    lines
}

/// Appends all sources of a directory to a text.
fn append_sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            append_sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Whether a package has a test of this name. The program `real` has its own test harness.
fn has_test(package: &str, name: &str) -> bool {
    let crates = repository_root().join("crates");
    let (directories, has_own_harness) = match package {
        "simulated" => (vec![crates.join("operator/tests/simulated")], false),
        "real" => (vec![crates.join("operator/tests/real")], true),
        _ => (
            vec![
                crates.join(package).join("src"),
                crates.join(package).join("tests"),
            ],
            false,
        ),
    };
    let mut text = String::new();
    for directory in directories.iter().filter(|directory| directory.exists()) {
        append_sources(directory, &mut text);
    }
    let at = text.find(&format!("fn {name}()"));
    at.is_some_and(|at| has_own_harness || text[..at].trim_end().ends_with("#[test]"))
}

#[test]
fn the_test_plan_has_every_line_of_the_proposal() {
    let lines = parse_lines();
    for (list, count) in SECTIONS {
        assert_eq!(
            lines.iter().filter(|line| line.list == list).count(),
            count,
            "{list}"
        );
    }
}

#[test]
fn every_named_test_exists() {
    for line in parse_lines() {
        assert!(!line.tests.is_empty(), "{}", line.text);
        for test in &line.tests {
            let exists = match test.split_once(':') {
                Some((package, name)) if !name.starts_with(':') => has_test(package, name),
                _ => SCENARIOS.contains(&test.as_str()),
            };
            assert!(exists, "{}: no test {test}", line.text);
        }
    }
}

#[test]
fn every_migration_scenario_is_in_the_test_plan() {
    let lines = parse_lines();
    for scenario in SCENARIOS {
        let named = lines
            .iter()
            .any(|line| line.tests.iter().any(|test| test == scenario));
        assert!(named, "{scenario} is not in the test plan");
    }
}
