//! Charts whose subcharts are charts of the catalog, some of them several times under different aliases.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{BenchChart, write_file};

/// An umbrella chart.
struct Umbrella {
    name: &'static str,
    directory: &'static str,
    /// Subcharts with the number of their instances.
    subcharts: &'static [(&'static str, usize)],
}

/// Umbrella charts. Each renders at least forty documents of subcharts.
const UMBRELLAS: &[Umbrella] = &[
    Umbrella {
        name: "umbrella: a mesh and 8 gateways",
        directory: "mesh",
        subcharts: &[("istiod", 1), ("cni", 1), ("ztunnel", 1), ("gateway", 8)],
    },
    Umbrella {
        name: "umbrella: 4 control planes",
        directory: "planes",
        subcharts: &[("istiod", 4)],
    },
];

pub(super) fn write(directory: &Path, catalog: &Path) -> anyhow::Result<Vec<BenchChart>> {
    let mut charts = Vec::new();
    for umbrella in UMBRELLAS {
        let path = directory.join(umbrella.directory);
        write_file(
            &path.join("Chart.yaml"),
            chart_yaml(umbrella, catalog)?.as_bytes(),
        )?;
        write_file(&path.join("values.yaml"), values(umbrella).as_bytes())?;
        for (name, _) in umbrella.subcharts {
            copy(&catalog.join(name), &path.join("charts").join(name))?;
        }
        charts.push(BenchChart {
            name: umbrella.name,
            path,
            repeatable: true,
        });
    }
    Ok(charts)
}

fn chart_yaml(umbrella: &Umbrella, catalog: &Path) -> anyhow::Result<String> {
    let mut out = super::chart_yaml(umbrella.directory);
    out.push_str("dependencies:\n");
    for (name, count) in umbrella.subcharts {
        let metadata = fs::read_to_string(catalog.join(name).join("Chart.yaml"))?;
        let version = metadata
            .lines()
            .find_map(|line| line.strip_prefix("version: "))
            .unwrap_or("*");
        for number in 0..*count {
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "- name: {name}\n  version: {version}\n  alias: {name}-{number}\n"
            );
        }
    }
    Ok(out)
}

/// Returns values with different names for each instance.
fn values(umbrella: &Umbrella) -> String {
    let mut out = String::new();
    let instances = umbrella
        .subcharts
        .iter()
        .flat_map(|(name, count)| (0..*count).map(move |number| (name, number)));
    for (name, number) in instances {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{name}-{number}:\n  revision: r{number}\n  name: {name}-{number}\n"
        );
    }
    out
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            write_file(&target, &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
