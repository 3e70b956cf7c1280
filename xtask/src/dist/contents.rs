//! Manual pages, completions and documentation of a package, and their paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use mainstay_testkit::repository_root;

use super::package::{Entry, gzip, tar};
use super::{Packages, Target};
use crate::docs::{repository_url, rewrite_links};

/// Files that are installed in addition to the binary.
pub(super) struct Contents {
    manual: Vec<Entry>,
    completions: Vec<Entry>,
}

/// Shells with a completion script and the script's file name.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "mainstay.bash"),
    ("zsh", "_mainstay"),
    ("fish", "mainstay.fish"),
];

/// Directories of the repository in the archive, which the pages refer to.
const DIRECTORIES: &[&str] = &[
    "docs",
    "deploy/chart",
    "deploy/samples",
    "deploy/monitoring",
    "deploy/delivery",
];

/// Files at the top of the repository in the archive.
const TOP_FILES: &[&str] = &[
    "LICENSE",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "COMPATIBILITY.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

/// Returns the bill of materials of a build.
pub(super) fn bill(target: Target, features: &[&str]) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(
        &Packages::resolve(target, features)?.bill()?,
    )?)
}

impl Contents {
    /// Generates the pages and scripts by running `mainstay`.
    pub(super) fn generate(mainstay: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            manual: manual_pages(mainstay)?,
            completions: completions(mainstay)?,
        })
    }

    /// Returns the archive for a manual installation.
    pub(super) fn archive(&self, target: Target, binary: &[u8]) -> anyhow::Result<Vec<u8>> {
        let root = repository_root();
        let mut entries = vec![
            Entry::executable("mainstay", binary),
            Entry::file("mainstay.cdx.json", bill(target, &[])?),
        ];
        entries.extend(documentation(&root)?);
        entries.extend(self.manual.iter().cloned().map(|page| page.below("man/man1/")));
        let scripts = self.completions.iter().cloned();
        entries.extend(scripts.map(|script| script.below("completions/")));
        gzip(&tar(&entries)?)
    }

    /// Returns the files of a system package at their places in the file system.
    pub(super) fn system_files(&self, binary: &[u8]) -> anyhow::Result<Vec<Entry>> {
        let mut entries = vec![Entry::executable("usr/bin/mainstay", binary)];
        for page in &self.manual {
            let path = format!("usr/share/man/man1/{}.gz", page.path);
            entries.push(Entry::file(path, gzip(&page.content)?));
        }
        for script in &self.completions {
            let path = match script.path.as_str() {
                "mainstay.bash" => "usr/share/bash-completion/completions/mainstay",
                "_mainstay" => "usr/share/zsh/vendor-completions/_mainstay",
                _ => "usr/share/fish/vendor_completions.d/mainstay.fish",
            };
            entries.push(Entry::file(path, script.content.clone()));
        }
        Ok(entries)
    }
}

/// Returns the pages and the files that they refer to.
fn documentation(root: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut paths: Vec<PathBuf> = TOP_FILES.iter().map(PathBuf::from).collect();
    for directory in DIRECTORIES {
        add_files(root, Path::new(directory), &mut paths)?;
    }
    paths.sort();
    let entry = |path: &PathBuf| -> anyhow::Result<Entry> {
        let content = fs::read(root.join(path)).with_context(|| path.display().to_string())?;
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        let content = match String::from_utf8(content) {
            Ok(text) if is_page => relink(&text, path, &paths).into_bytes(),
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        Ok(Entry::file(path.display().to_string(), content))
    };
    paths.iter().map(entry).collect()
}

/// Adds the files below a directory, as paths in the repository.
fn add_files(root: &Path, directory: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            add_files(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// Replaces links of `page` to files that the archive does not contain by URLs in the repository.
fn relink(text: &str, page: &Path, paths: &[PathBuf]) -> String {
    let directory = page.parent().unwrap_or(Path::new(""));
    rewrite_links(text, |target| {
        let file = target.split('#').next().unwrap_or_default();
        if file.is_empty() || target.contains("://") {
            return target.to_owned();
        }
        let path = match file.strip_prefix("../") {
            Some(path) => PathBuf::from(path),
            None => directory.join(file),
        };
        if paths.iter().any(|known| known.starts_with(&path)) {
            return target.to_owned();
        }
        repository_url(&target.replacen(file, &path.display().to_string(), 1))
    })
}

fn manual_pages(mainstay: &Path) -> anyhow::Result<Vec<Entry>> {
    let scratch = tempfile::tempdir()?;
    let status = Command::new(mainstay).arg("man").arg(scratch.path()).status()?;
    ensure!(status.success(), "mainstay man failed");
    let mut pages = Vec::new();
    for entry in fs::read_dir(scratch.path())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.push(Entry::file(name, fs::read(entry.path())?));
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(!pages.is_empty(), "mainstay man wrote nothing");
    Ok(pages)
}

fn completions(mainstay: &Path) -> anyhow::Result<Vec<Entry>> {
    let script = |(shell, name): (&str, &str)| {
        let output = Command::new(mainstay).args(["completion", shell]).output()?;
        ensure!(output.status.success(), "mainstay completion {shell} failed");
        Ok(Entry::file(name, output.stdout))
    };
    SHELLS.into_iter().map(script).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_leave_the_archive_as_urls() {
        let paths = ["README.md", "docs/demo.md", "deploy/chart/Chart.yaml"].map(PathBuf::from);
        let check = |page: &str, link: &str, expected: &str| {
            let text = relink(&format!("a [b]({link}) c"), Path::new(page), &paths);
            assert_eq!(text, format!("a [b]({expected}) c"));
        };
        check("docs/a.md", "demo.md#x", "demo.md#x");
        check("docs/a.md", "../deploy/chart", "../deploy/chart");
        check("README.md", "docs/demo.md", "docs/demo.md");
        check("README.md", "https://a.example/b", "https://a.example/b");
        let url = repository_url("crates/sim/README.md#compatibility");
        check("docs/a.md", "../crates/sim/README.md#compatibility", &url);
        check("README.md", "crates/sim/README.md#compatibility", &url);
    }
}
