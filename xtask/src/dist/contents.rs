//! Manual pages, completions and documentation of a package, and their paths.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use mainstay_testkit::repository_root;

use super::package::{Entry, gzip, tar};
use super::{Packages, Target};

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
        for text in ["LICENSE", "README.md", "CHANGELOG.md"] {
            entries.push(Entry::file(text, fs::read(root.join(text))?));
        }
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
