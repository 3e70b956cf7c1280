//! `cargo xtask tidy`: checks the house style over all files that git tracks and prints each finding with its
//! location.

mod layers;
mod links;
mod pins;
mod scan;
mod source;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

use words::Vocabulary;

/// A violated rule and its location.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    location: String,
    message: String,
}

impl Finding {
    fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            message: message.into(),
        }
    }
}

/// Prints all findings; fails if there are any.
pub(crate) fn run() -> anyhow::Result<()> {
    let findings = check(&repository_root())?;
    for finding in &findings {
        println!("{}: {}", finding.location, finding.message);
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    println!("tidy: no findings");
    Ok(())
}

fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let vocabulary = Vocabulary::load()?;
    let mut findings = layers::check(root)?;
    findings.extend(pins::check(root)?);
    for path in tracked_files(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            continue;
        };
        let path = path.display().to_string();
        findings.extend(source::check(&path, &text));
        findings.extend(vocabulary.check(&path, &text));
        findings.extend(links::check(root, &path, &text));
    }
    Ok(findings)
}

/// Returns the dead links of the Markdown files below `directory`, as text.
pub(crate) fn check_links(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let name = path.strip_prefix(directory)?.display().to_string();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            findings.extend(links::check(directory, &name, &text));
        }
    }
    let texts = findings
        .iter()
        .map(|it| format!("{}: {}", it.location, it.message));
    Ok(texts.collect())
}

/// Returns the files that git tracks, and new files that it does not ignore.
fn tracked_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("starting git")?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(PathBuf::from)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_has_no_findings() {
        let findings = check(&repository_root()).unwrap();
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
