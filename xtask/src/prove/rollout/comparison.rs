//! The comparison table of docs/rollout.md: every row names a test that must have passed in this proof.

use std::path::Path;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use super::super::row::{Row, RowKind};
use super::{Program, Sessions};

const PAGE: &str = "docs/rollout.md";

/// Smallest number of rows.
const MIN_ROWS: usize = 20;

/// Test programs by the directory or file of their source.
const PROGRAMS: [(&str, Program); 5] = [
    ("crates/rollout/tests/", Program::Planner),
    ("crates/operator/tests/rollout/", Program::Fleet),
    ("crates/cluster/tests/delivery", Program::Rules),
    ("crates/cluster/tests/", Program::Gate),
    ("crates/cli/tests/", Program::Commands),
];

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Compared<'a> {
    capability: &'a str,
    test: &'a str,
    file: &'a str,
}

pub(super) fn row(sessions: &Sessions) -> Row {
    let text = "the comparison with Argo Rollouts, Flagger, Karmada and KubeVela";
    let goal = "every row's test exists and passed in this proof";
    match check(sessions) {
        Err(error) => Row::not_measured(text, goal, RowKind::Correctness, &error),
        Ok((rows, failed)) => {
            let first = failed
                .first()
                .map(|name| format!("; not passed: {name}"))
                .unwrap_or_default();
            let figure = format!("{} of {rows} rows{first}", rows - failed.len());
            Row::correct(text, figure, goal, failed.is_empty() && rows >= MIN_ROWS)
        }
    }
}

/// Returns the number of rows and the tests that did not pass.
fn check(sessions: &Sessions) -> anyhow::Result<(usize, Vec<String>)> {
    let root = repository_root();
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let rows = parse(&page)?;
    let mut failed = Vec::new();
    for row in &rows {
        if !exists(&root, row)? || !has_passed(sessions, row) {
            failed.push(row.test.to_owned());
        }
    }
    Ok((rows.len(), failed))
}

fn parse(page: &str) -> anyhow::Result<Vec<Compared<'_>>> {
    let table = page
        .split_once("| capability |")
        .context("no comparison table")?
        .1;
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Compared<'_>> = lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let (Some(capability), Some(cell)) = (cells.first(), cells.last()) else {
                bail!("an empty row");
            };
            let named = cell.strip_prefix('`').and_then(|cell| cell.split_once("` in "));
            let (test, file) = named.with_context(|| format!("{capability:?} names no test"))?;
            Ok(Compared {
                capability,
                test,
                file,
            })
        })
        .collect::<anyhow::Result<_>>()?;
    if rows.is_empty() {
        bail!("an empty comparison table");
    }
    Ok(rows)
}

fn exists(root: &Path, row: &Compared<'_>) -> anyhow::Result<bool> {
    let source = std::fs::read_to_string(root.join(row.file)).with_context(|| row.file.to_owned())?;
    Ok(source.contains(&format!("fn {}()", row.test)))
}

fn has_passed(sessions: &Sessions, row: &Compared<'_>) -> bool {
    let program = PROGRAMS.iter().find(|(path, _)| row.file.starts_with(path));
    let session = program.map(|(_, program)| sessions.get(*program));
    session.is_some_and(|session| session.as_ref().is_ok_and(|session| session.passed(row.test)))
}

#[cfg(test)]
mod tests {
    use super::super::super::operator::session::Session;
    use super::*;

    fn session(output: &str) -> Session {
        Session::parse(format!("{output}\ntest result: ok\n")).unwrap()
    }

    const TABLE: &str = "| capability | Mainstay | test |\n|---|---|---|\n\
        | a | yes | `one` in crates/rollout/tests/golden.rs |\n\
        | b | yes | `two` in crates/operator/tests/rollout/scenarios.rs |\n";

    #[test]
    fn a_row_counts_only_if_its_test_ran_and_passed() {
        let sessions = Sessions {
            planner: Ok(session("test one ... ok\ntest two ... ok")),
            fleet: Ok(session("test scenarios::two ... FAILED")),
            memory: Err(anyhow::anyhow!("not run")),
            gate: Err(anyhow::anyhow!("not run")),
            rules: Err(anyhow::anyhow!("not run")),
            commands: Err(anyhow::anyhow!("not run")),
        };
        let rows = parse(TABLE).unwrap();
        let passed: Vec<bool> = rows.iter().map(|row| has_passed(&sessions, row)).collect();
        assert_eq!(passed, [true, false], "a test of another program does not count");
        let gate = Compared {
            capability: "c",
            test: "three",
            file: "crates/cluster/tests/kubeconfigs.rs",
        };
        assert!(!has_passed(&sessions, &gate), "a program that did not run");
    }

    #[test]
    fn a_row_without_a_test_is_an_error() {
        let page = "| capability | Mainstay | test |\n|---|---|---|\n| a | yes | soon |\n";
        assert_eq!(parse(page).unwrap_err().to_string(), "\"a\" names no test");
        assert!(parse("nothing").is_err());
    }
}
