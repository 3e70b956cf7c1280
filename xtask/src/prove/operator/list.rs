//! Parses scenario lists: lines of a contract and the tests that cover them.

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

/// The lists of one file.
pub(in crate::prove) struct Scenarios {
    pub(in crate::prove) unit: List,
    pub(in crate::prove) integration: List,
}

/// One list.
#[derive(Default)]
pub(in crate::prove) struct List {
    pub(in crate::prove) lines: Vec<Line>,
}

/// One line of the contract.
pub(in crate::prove) struct Line {
    pub(in crate::prove) text: String,
    pub(in crate::prove) tests: Vec<Test>,
}

/// A test.
pub(in crate::prove) struct Test {
    pub(in crate::prove) name: String,
}

impl List {
    /// Returns the number of distinct tests.
    pub(in crate::prove) fn tests(&self) -> usize {
        let names = self.lines.iter().flat_map(|line| &line.tests);
        names
            .map(|test| &test.name)
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    }
}

impl Scenarios {
    pub(in crate::prove) fn read(name: &str) -> anyhow::Result<Self> {
        let path = repository_root().join("crates/operator/tests").join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let [mut unit, mut integration, mut e2e, mut ours, mut scale] =
            std::array::from_fn(|_| List::default());
        let mut list = None;
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            match line {
                "[unit]" => list = Some(&mut unit),
                "[integration]" => list = Some(&mut integration),
                "[e2e]" => list = Some(&mut e2e),
                "[ours]" => list = Some(&mut ours),
                // Covered by rows with figures.
                "[scale]" => list = Some(&mut scale),
                line => list
                    .as_mut()
                    .context("a line before any list")?
                    .lines
                    .push(Line::parse(line)?),
            }
        }
        integration.lines.append(&mut e2e.lines);
        integration.lines.append(&mut ours.lines);
        Ok(Self { unit, integration })
    }
}

impl Line {
    fn parse(line: &str) -> anyhow::Result<Self> {
        let (text, tests) = line
            .split_once(" | ")
            .with_context(|| format!("no tests: {line}"))?;
        let tests: Vec<Test> = tests.split_whitespace().map(Test::parse).collect();
        if tests.is_empty() {
            bail!("no tests: {line}");
        }
        Ok(Self {
            text: text.trim().to_owned(),
            tests,
        })
    }
}

impl Test {
    /// Parses `package:name` or `name`; names are unique, the package is informative.
    fn parse(text: &str) -> Self {
        let plain = |(package, name): (&str, &str)| {
            (!name.starts_with(':') && !package.contains("::")).then(|| name.to_owned())
        };
        Self {
            name: text
                .split_once(':')
                .and_then(plain)
                .unwrap_or_else(|| text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_tests() {
        let lists = Scenarios::parse("# c\n[unit]\na: b | mesh:x y::z\n[ours]\nc | d\n").unwrap();
        let names: Vec<&str> = lists
            .unit
            .lines
            .iter()
            .flat_map(|line| &line.tests)
            .map(|test| test.name.as_str())
            .collect();
        assert_eq!(names, ["x", "y::z"]);
        assert_eq!(lists.integration.lines.len(), 1);
        assert_eq!(lists.unit.tests(), 2);
    }

    #[test]
    fn a_line_without_a_test_is_an_error() {
        assert!(Scenarios::parse("[unit]\na\n").is_err());
        assert!(Scenarios::parse("a | b\n").is_err());
    }

    #[test]
    fn the_list_of_this_repository_is_read() {
        let lists = Scenarios::read("scenarios.txt").unwrap();
        assert!(lists.unit.lines.len() > 40 && lists.integration.lines.len() > 50);
        let lists = Scenarios::read("migration.txt").unwrap();
        assert!(lists.unit.lines.len() > 20 && lists.integration.lines.len() > 50);
    }
}
