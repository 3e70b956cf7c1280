//! The pack the build embeds: takes `resources/<version>/…`, gives `resources/charts.pack`, whole or not at all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use mainstay_catalog::derive::Files;
use mainstay_catalog::pack::pack;
use mainstay_catalog::{Flavour, Pin, Version};

use super::tree;

const PACK: &str = "charts.pack";

/// Packs every pinned version, and notes what was packed. Gives the size before and after.
pub(crate) fn write(resources: &Path, pins: &[Pin], stamp: &str) -> Result<(usize, usize)> {
    let mut folders: Vec<(Order, (String, Files))> = Vec::new();
    for pin in pins {
        let files = tree::read(
            &resources.join(pin.version.to_string()),
            &Flavour::ALL.map(Flavour::name),
        )?;
        let by_folder = split(&pin.version, files);
        folders.extend(
            by_folder
                .into_iter()
                .map(|(folder, files)| (order(&pin.version, &folder), (folder, files))),
        );
    }
    folders.sort();
    let folders: Vec<(String, Files)> = folders.into_iter().map(|(_, folder)| folder).collect();
    let before = folders
        .iter()
        .flat_map(|(_, files)| files.values())
        .map(Vec::len)
        .sum();
    let packed = pack(&folders);
    put(resources, PACK, &packed)?;
    put(resources, super::STAMP, stamp.as_bytes())?;
    Ok((before, packed.len()))
}

/// Is what `stamp` names packed already?
pub(crate) fn is_fresh(resources: &Path, stamp: &str) -> bool {
    resources.join(PACK).is_file()
        && fs::read_to_string(resources.join(super::STAMP)).is_ok_and(|found| found == stamp)
}

type Order = (bool, Reverse<Version>, u8);

/// What is packed first is read fastest: newest releases, and of each istiod, then the small charts, then the one with all the
/// CRDs.
fn order(version: &Version, folder: &str) -> Order {
    let rank = match folder.rsplit('/').next() {
        Some("istiod") => 0,
        Some("base") => 2,
        _ => 1,
    };
    (!version.is_release(), Reverse(version.clone()), rank)
}

/// `installer/charts/istiod/values.yaml` → folder `<version>/installer/charts/istiod`, file `values.yaml`.
fn split(version: &Version, files: Files) -> BTreeMap<String, Files> {
    let mut folders: BTreeMap<String, Files> = BTreeMap::new();
    for (path, bytes) in files {
        let depth = if path.split('/').nth(1) == Some("charts") {
            3
        } else {
            2
        };
        let parts: Vec<&str> = path.splitn(depth + 1, '/').collect();
        if let Some((file, folder)) = parts.split_last() {
            folders
                .entry(format!("{version}/{}", folder.join("/")))
                .or_default()
                .insert((*file).to_owned(), bytes);
        }
    }
    folders
}

fn put(resources: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let fresh = resources.join(format!(".new-{name}-{}", std::process::id()));
    fs::write(&fresh, bytes).with_context(|| format!("cannot write {}", fresh.display()))?;
    fs::rename(&fresh, resources.join(name)).with_context(|| format!("cannot put {name} in place"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_into_charts_and_profiles() {
        let paths = [
            "installer/charts/a/templates/x.yaml",
            "installer/charts/a/Chart.yaml",
            "operator/profiles/p.yaml",
        ];
        let files = paths.map(|path| (path.to_owned(), Vec::new()));
        let found = split(&"1.2.3".parse().unwrap(), files.into());
        let shown: Vec<_> = found
            .iter()
            .map(|(folder, files)| format!("{folder}: {:?}", files.keys()))
            .collect();
        assert_eq!(
            shown,
            [
                "1.2.3/installer/charts/a: [\"Chart.yaml\", \"templates/x.yaml\"]",
                "1.2.3/operator/profiles: [\"p.yaml\"]",
            ]
        );
    }
}
