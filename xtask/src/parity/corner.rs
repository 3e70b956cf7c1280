//! Charts of our own, each for one corner: takes `parity/corners/*.txt`, gives a case per `args:` line.
//!
//! A corner is one text file: comment lines that say what it shows, `args:` lines (each one run; none means one run
//! without arguments), then the chart's files, each after a line `-- path --`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::case::{Case, Kind, split_arguments};
use super::matrix::sorted;

/// Unpacks every corner under `scratch` and gives its runs.
pub(crate) fn cases(folder: &Path, scratch: &Path) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files(folder)? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let corner = parse(&text).with_context(|| path.display().to_string())?;
        unpack(&corner, &scratch.join(&name).join(&name))?;
        cases.extend(corner.runs.iter().map(|run| case(&name, scratch, run)));
    }
    Ok(cases)
}

/// How many corners there are.
pub(crate) fn count(folder: &Path) -> anyhow::Result<usize> {
    Ok(files(folder)?.len())
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    Ok(sorted(folder)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect())
}

fn case(name: &str, scratch: &Path, run: &[String]) -> Case {
    let mut arguments = vec!["release".to_owned(), name.to_owned()];
    arguments.extend(run.iter().cloned());
    Case {
        label: format!("corner {name}"),
        kind: Kind::Corner,
        folder: scratch.join(name),
        arguments,
    }
}

struct Corner<'a> {
    runs: Vec<Vec<String>>,
    files: Vec<(&'a str, &'a str)>,
}

fn parse(text: &str) -> anyhow::Result<Corner<'_>> {
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
        bail!("no `-- path --` line: a corner without files shows nothing");
    }
    Ok(Corner { runs, files })
}

/// Files named `../x` land beside the chart, so that `args:` can name value files.
fn unpack(corner: &Corner<'_>, chart: &Path) -> anyhow::Result<()> {
    for (name, content) in &corner.files {
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
    fn a_corner_is_its_runs_and_its_files() {
        let corner =
            parse("# why\nargs: --set a=1\nargs:\n-- Chart.yaml --\nname: x\n-- empty --\n-- t/a --\nb\n")
                .unwrap();
        assert_eq!(corner.runs, [vec!["--set".to_owned(), "a=1".to_owned()], vec![]]);
        assert_eq!(
            corner.files,
            [("Chart.yaml", "name: x\n"), ("empty", ""), ("t/a", "b\n")]
        );
    }

    #[test]
    fn a_corner_without_files_is_refused() {
        assert!(parse("# nothing\n").is_err());
    }
}
