//! One case per pair of an Istio chart in `resources/` and a value set in `parity/values/`.
//!
//! A value set is a YAML file whose head may contain `# charts: istiod cni` (default: all) and `# args: …`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::case::{Case, Kind, split_arguments};

struct ValueSet {
    name: String,
    path: PathBuf,
    /// Empty means every chart.
    charts: Vec<String>,
    arguments: Vec<String>,
}

/// A chart directory below `resources/`.
struct ChartDirectory {
    /// `1.29.1/operator/istiod`.
    label: String,
    /// Chart name: `istiod`.
    name: String,
    path: PathBuf,
}

/// Returns a case for every chart, version, flavour and value set that applies.
pub(crate) fn cases(root: &Path) -> anyhow::Result<Vec<Case>> {
    let sets = value_sets(&root.join("parity/values"))?;
    let charts = chart_directories(&root.join("resources"))?;
    if charts.is_empty() {
        bail!("no charts in resources/: run `cargo xtask charts` first");
    }
    let pairs = charts
        .iter()
        .flat_map(|chart| sets.iter().map(move |set| (chart, set)));
    Ok(pairs
        .filter(|(chart, set)| set.charts.is_empty() || set.charts.contains(&chart.name))
        .map(case)
        .collect())
}

fn case((chart, set): (&ChartDirectory, &ValueSet)) -> Case {
    let path = |path: &Path| path.display().to_string();
    let mut arguments = vec![
        chart.name.clone(),
        path(&chart.path),
        "-f".into(),
        path(&set.path),
    ];
    arguments.extend(set.arguments.iter().cloned());
    Case {
        label: format!("{} {}", chart.label, set.name),
        kind: Kind::Output,
        directory: set.path.parent().map(Path::to_path_buf).unwrap_or_default(),
        arguments,
    }
}

/// Returns the number of distinct charts.
pub(crate) fn charts(cases: &[Case]) -> usize {
    cases
        .iter()
        .filter_map(|case| case.arguments.get(1))
        .collect::<BTreeSet<_>>()
        .len()
}

/// Returns the smallest number of value sets of a chart.
pub(crate) fn fewest_sets(cases: &[Case]) -> usize {
    let mut sets = BTreeMap::<&str, usize>::new();
    for case in cases {
        *sets
            .entry(case.arguments.get(1).map_or("", String::as_str))
            .or_default() += 1;
    }
    sets.into_values().min().unwrap_or(0)
}

fn value_sets(directory: &Path) -> anyhow::Result<Vec<ValueSet>> {
    let mut sets = Vec::new();
    for path in sorted(directory)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
    {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let head = |key: &'static str| {
            text.lines()
                .filter_map(move |line| line.strip_prefix(key))
                .map(str::trim)
        };
        sets.push(ValueSet {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            charts: head("# charts:")
                .flat_map(str::split_whitespace)
                .map(str::to_owned)
                .collect(),
            arguments: head("# args:").flat_map(split_arguments).collect(),
            path,
        });
    }
    Ok(sets)
}

fn chart_directories(resources: &Path) -> anyhow::Result<Vec<ChartDirectory>> {
    let mut found = Vec::new();
    if resources.is_dir() {
        collect(resources, resources, &mut found)?;
    }
    Ok(found)
}

fn collect(resources: &Path, directory: &Path, found: &mut Vec<ChartDirectory>) -> anyhow::Result<()> {
    if directory.join("Chart.yaml").is_file() {
        let inner = directory
            .strip_prefix(resources)?
            .display()
            .to_string()
            .replace("/charts/", "/");
        let name = directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        found.push(ChartDirectory {
            label: inner,
            name,
            path: directory.into(),
        });
        return Ok(());
    }
    for path in sorted(directory)?.into_iter().filter(|path| path.is_dir()) {
        collect(resources, &path, found)?;
    }
    Ok(())
}

/// Returns the entries of a directory sorted by name, so that every run has the same cases in the same order.
pub(super) fn sorted(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
