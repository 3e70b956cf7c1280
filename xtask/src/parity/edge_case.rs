//! Charts of our own, one per edge case: parses `parity/edge-cases/*.txt` into one case per `args:` line.
//!
//! An edge case is one text file: comment lines that describe it, `args:` lines (one run each; none means one
//! run without arguments), then the chart's files, each after a line `-- path --`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::case::{Case, Kind, split_arguments};
use super::matrix::sorted;

/// Unpacks every edge case below `scratch` and returns its runs.
pub(crate) fn cases(directory: &Path, scratch: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files(directory)? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let edge_case = parse(&text).with_context(|| path.display().to_string())?;
        unpack(&edge_case, &scratch.join(&name).join(&name))?;
        cases.extend(edge_case.runs.iter().map(|run| case(&name, scratch, run)));
    }
    Ok(cases)
}

/// Returns the number of edge cases.
pub(crate) fn count(directory: &Path) -> anyhow::Result<usize> {
    Ok(files(directory)?.len())
}

fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    Ok(sorted(directory)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect())
}

fn case(name: &str, scratch: &Path, run: &[String]) -> Case {
    let mut arguments = vec!["release".to_owned(), name.to_owned()];
    arguments.extend(run.iter().cloned());
    Case {
        label: format!("edge case {name}"),
        kind: Kind::EdgeCase,
        directory: scratch.join(name),
        arguments,
    }
}

struct EdgeCase<'a> {
    runs: Vec<Vec<String>>,
    files: Vec<(&'a str, &'a str)>,
}

fn parse(text: &str) -> anyhow::Result<EdgeCase<'_>> {
    let (head, mut rest) = text.split_at(text.find("\n-- ").map_or(text.len(), |at| at + 1));
    let mut runs: Vec<_> = head
        .lines()
        .filter_map(|line| line.strip_prefix("args:"))
        .map(split_arguments)
        .collect();
    if runs.is_empty() {
        runs.push(Vec::new());
    }
    let mut files = Vec::new();
    while let Some(tail) = rest.strip_prefix("-- ") {
        let (name, body) = tail
            .split_once(" --\n")
            .context("a file's line must read `-- path --`")?;
        let end = body.find("\n-- ").map_or(body.len(), |at| at + 1);
        let (content, next) = if body.starts_with("-- ") {
            ("", body)
        } else {
            body.split_at(end)
        };
        files.push((name, content));
        rest = next;
    }
    if files.is_empty() {
        bail!("no `-- path --` line: an edge case needs files");
    }
    Ok(EdgeCase { runs, files })
}

/// Files named `../x` are written next to the chart, so that `args:` can refer to value files.
fn unpack(edge_case: &EdgeCase<'_>, chart: &Path) -> anyhow::Result<()> {
    for (name, content) in &edge_case.files {
        let path = match name.strip_prefix("../") {
            Some(outside) => chart.parent().unwrap_or(chart).join(outside),
            None => chart.join(name),
        };
        fs::create_dir_all(path.parent().unwrap_or(chart))?;
        fs::write(&path, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_case_has_runs_and_files() {
        let edge_case =
            parse("# why\nargs: --set a=1\nargs:\n-- Chart.yaml --\nname: x\n-- empty --\n-- t/a --\nb\n")
                .unwrap();
        assert_eq!(
            edge_case.runs,
            [vec!["--set".to_owned(), "a=1".to_owned()], vec![]]
        );
        assert_eq!(
            edge_case.files,
            [("Chart.yaml", "name: x\n"), ("empty", ""), ("t/a", "b\n")]
        );
    }

    #[test]
    fn an_edge_case_without_files_is_rejected() {
        assert!(parse("# nothing\n").is_err());
    }
}
