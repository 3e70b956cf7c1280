//! Folders of charts on disk: takes a folder, gives [`Files`]; removes what is no longer pinned.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mainstay_catalog::derive::Files;
use mainstay_catalog::{Pin, Version};

/// Every file below the `folders` of `top`, by its path relative to `top`.
pub(crate) fn read(top: &Path, folders: &[&str]) -> Result<Files> {
    let mut files = Files::new();
    let mut open: Vec<String> = folders.iter().map(ToString::to_string).collect();
    while let Some(folder) = open.pop() {
        let path = top.join(&folder);
        for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
            let entry = entry?;
            let name = entry
                .file_name()
                .into_string()
                .ok()
                .context("a file name is no text")?;
            let kind = entry.file_type()?;
            ensure!(!kind.is_symlink(), "{} is a link", entry.path().display());
            if kind.is_dir() {
                open.push(format!("{folder}/{name}"));
            } else {
                files.insert(format!("{folder}/{name}"), fs::read(entry.path())?);
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

/// Versions that were pinned once and are no longer; whatever else lies in the folder is left alone.
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

    fn folder(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("xtask-charts-{name}-{}", std::process::id()));
        remove(&path).unwrap();
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn only_versions_that_are_no_longer_pinned_go() {
        let top = folder("unpinned");
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
