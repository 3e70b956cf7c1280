//! Packs `resources/<version>/…` into `resources/charts.pack`, which the build embeds.

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

/// Packs every pinned version and writes the stamp. Returns the size before and after.
pub(crate) fn write(resources: &Path, pins: &[Pin], stamp: &str) -> Result<(usize, usize)> {
    let mut directories: Vec<(Order, (String, Files))> = Vec::new();
    for pin in pins {
        let files = tree::read(
            &resources.join(pin.version.to_string()),
            &Flavour::ALL.map(Flavour::name),
        )?;
        let by_directory = split(&pin.version, files);
        directories.extend(
            by_directory
                .into_iter()
                .map(|(directory, files)| (order(&pin.version, &directory), (directory, files))),
        );
    }
    directories.sort();
    let directories: Vec<(String, Files)> = directories.into_iter().map(|(_, directory)| directory).collect();
    let before = directories
        .iter()
        .flat_map(|(_, files)| files.values())
        .map(Vec::len)
        .sum();
    let packed = pack(&directories);
    put(resources, PACK, &packed)?;
    put(resources, super::STAMP, stamp.as_bytes())?;
    Ok((before, packed.len()))
}

/// Whether the pack matches `stamp`.
pub(crate) fn is_fresh(resources: &Path, stamp: &str) -> bool {
    resources.join(PACK).is_file()
        && fs::read_to_string(resources.join(super::STAMP)).is_ok_and(|found| found == stamp)
}

type Order = (bool, Reverse<Version>, u8);

/// Returns the sort key of a directory. Frequently read files come first: those of the newest releases, and
/// istiod before the small charts, the CRDs and the add-ons.
fn order(version: &Version, directory: &str) -> Order {
    let rank = match directory.rsplit('/').next() {
        Some("istiod") => 0,
        Some("base") => 2,
        Some("addons") => 3,
        _ => 1,
    };
    (!version.is_release(), Reverse(version.clone()), rank)
}

/// `installer/charts/istiod/values.yaml` → directory `<version>/installer/charts/istiod`, file `values.yaml`.
fn split(version: &Version, files: Files) -> BTreeMap<String, Files> {
    let mut directories: BTreeMap<String, Files> = BTreeMap::new();
    for (path, bytes) in files {
        let depth = if path.split('/').nth(1) == Some("charts") {
            3
        } else {
            2
        };
        let parts: Vec<&str> = path.splitn(depth + 1, '/').collect();
        if let Some((file, directory)) = parts.split_last() {
            directories
                .entry(format!("{version}/{}", directory.join("/")))
                .or_default()
                .insert((*file).to_owned(), bytes);
        }
    }
    directories
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
            .map(|(directory, files)| format!("{directory}: {:?}", files.keys()))
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
