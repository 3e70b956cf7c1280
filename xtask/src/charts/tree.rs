//! Reads chart directories into [`Files`] and removes versions that are no longer pinned.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mainstay_catalog::derive::Files;
use mainstay_catalog::{Pin, Version};

/// Reads every file below the `directories` of `top`, keyed by its path relative to `top`.
pub(crate) fn read(top: &Path, directories: &[&str]) -> Result<Files> {
    let mut files = Files::new();
    let mut open: Vec<String> = directories.iter().map(ToString::to_string).collect();
    while let Some(directory) = open.pop() {
        let path = top.join(&directory);
        for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
            let entry = entry?;
            let name = entry
                .file_name()
                .into_string()
                .ok()
                .context("a file name is not UTF-8")?;
            let kind = entry.file_type()?;
            ensure!(!kind.is_symlink(), "{} is a link", entry.path().display());
            if kind.is_dir() {
                open.push(format!("{directory}/{name}"));
            } else {
                files.insert(format!("{directory}/{name}"), fs::read(entry.path())?);
            }
        }
    }
    Ok(files)
}

fn remove(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Removes versions that are no longer pinned and leaves everything else in the directory.
pub(crate) fn remove_unpinned(resources: &Path, pins: &[Pin]) -> Result<()> {
    let Ok(entries) = fs::read_dir(resources) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        let version = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<Version>().ok());
        let pinned = version.is_none_or(|version| pins.iter().any(|pin| pin.version == version));
        if !pinned && entry.path().join(super::STAMP).exists() {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(version: &str) -> Pin {
        Pin {
            version: version.parse().unwrap(),
            module: "m".into(),
            module_version: "v0".into(),
            sum: "h1:x".into(),
        }
    }

    fn directory(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("xtask-charts-{name}-{}", std::process::id()));
        remove(&path).unwrap();
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn only_unpinned_versions_are_removed() {
        let top = directory("unpinned");
        for version in ["1.0.0", "1.1.0"] {
            fs::create_dir(top.join(version)).unwrap();
            fs::write(top.join(version).join(super::super::STAMP), "1").unwrap();
        }
        fs::create_dir(top.join("2.0.0")).unwrap();
        fs::create_dir(top.join("mine")).unwrap();
        remove_unpinned(&top, &[pin("1.1.0")]).unwrap();
        let mut left: Vec<_> = fs::read_dir(&top)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["1.1.0", "2.0.0", "mine"]);
        remove(&top).unwrap();
    }
}
