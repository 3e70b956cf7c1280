//! Charts of the bench: generated from tables in the shape of public charts and written into a directory. The
//! same tables always produce the same bytes.

mod certificates;
mod crds;
mod includes;
mod tpl;
mod umbrella;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A chart that is rendered by both programs.
#[derive(Clone, Debug)]
pub(crate) struct BenchChart {
    /// Name in rows and pages.
    pub(crate) name: &'static str,
    /// Directory of the chart.
    pub(crate) path: PathBuf,
    /// Whether two runs print the same bytes; otherwise base64 content is left out of the comparison.
    pub(crate) repeatable: bool,
}

/// The files of one generated chart.
type Files = Vec<(String, String)>;

/// A generated chart: its name, its files, and whether it renders repeatably.
struct Generated {
    name: &'static str,
    directory: &'static str,
    files: fn() -> Files,
    repeatable: bool,
}

const GENERATED: &[Generated] = &[
    Generated {
        name: "8 MB of CRDs",
        directory: "crds",
        files: crds::files,
        repeatable: true,
    },
    Generated {
        name: "200 templates, deep includes",
        directory: "includes",
        files: includes::files,
        repeatable: true,
    },
    Generated {
        name: "5,000 lines of values, tpl",
        directory: "tpl",
        files: tpl::files,
        repeatable: true,
    },
    Generated {
        name: "30 certificates",
        directory: "certificates",
        files: certificates::files,
        repeatable: false,
    },
];

/// Writes the generated charts below `directory`; returns them after istiod, with the umbrella charts last.
pub(crate) fn write(directory: &Path, catalog: &Path) -> anyhow::Result<Vec<BenchChart>> {
    let mut charts = vec![BenchChart {
        name: "istiod",
        path: catalog.join("istiod"),
        repeatable: true,
    }];
    for generated in GENERATED {
        let path = directory.join(generated.directory);
        for (name, text) in (generated.files)() {
            write_file(&path.join(name), text.as_bytes())?;
        }
        charts.push(BenchChart {
            name: generated.name,
            path,
            repeatable: generated.repeatable,
        });
    }
    charts.extend(umbrella::write(directory, catalog)?);
    Ok(charts)
}

fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let parent = path.parent().context("a file without a directory")?;
    fs::create_dir_all(parent)?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn chart_yaml(name: &str) -> String {
    format!(
        "apiVersion: v2\nname: {name}\ndescription: A chart of the bench\ntype: application\nversion: 1.0.0\nappVersion: 2.3.4\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(files: &Files) -> usize {
        files.iter().map(|(_, text)| text.len()).sum()
    }

    #[test]
    fn charts_have_the_advertised_size() {
        let crds = crds::files();
        assert!((7_500_000..9_000_000).contains(&size(&crds)), "{}", size(&crds));
        let includes = includes::files();
        let manifests = includes
            .iter()
            .filter(|(name, _)| name.starts_with("templates/") && !name.contains(".tpl"));
        assert_eq!(manifests.count(), 200);
        let tpl = tpl::files();
        let values = tpl
            .iter()
            .find(|(name, _)| name == "values.yaml")
            .map(|(_, text)| text.lines().count());
        assert!(
            values.is_some_and(|lines| (5_000..5_200).contains(&lines)),
            "{values:?}"
        );
    }

    #[test]
    fn the_same_tables_produce_the_same_bytes() {
        for generated in GENERATED {
            assert_eq!((generated.files)(), (generated.files)(), "{}", generated.name);
        }
    }
}
