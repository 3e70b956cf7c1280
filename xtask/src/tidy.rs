//! `cargo xtask tidy`: the house style as a test. Takes the tree git tracks, gives every breach with its place.

mod layers;
mod source;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;

/// A rule that was broken, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    place: String,
    what: String,
}

impl Breach {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

/// Checks and prints; fails on a breach.
pub(crate) fn run() -> anyhow::Result<()> {
    let breaches = check(&repository_root())?;
    for breach in &breaches {
        println!("{}: {}", breach.place, breach.what);
    }
    if !breaches.is_empty() {
        bail!("tidy: {} breaches of the house style", breaches.len());
    }
    println!("tidy: nothing to mend");
    Ok(())
}

fn check(root: &Path) -> anyhow::Result<Vec<Breach>> {
    let mut breaches = layers::check(root)?;
    for path in tracked(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
            continue;
        };
        breaches.extend(source::check(&path.display().to_string(), &text));
    }
    Ok(breaches)
}

/// What git tracks or would: files it ignores are nobody's business.
fn tracked(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
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
    fn the_tree_is_tidy() {
        let breaches = check(&repository_root()).unwrap();
        assert!(breaches.is_empty(), "{breaches:#?}");
    }
}
