//! Reads charts of Helm: values files, Secrets of releases, umbrella charts, a cluster.

use std::path::{Path, PathBuf};

use mainstay_adopt::helm::{HelmRelease, newest_versions};
use mainstay_adopt::{HelmChart, HelmSource, SourceFile};
use mainstay_api::Values;
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::adopt::read_installed_mesh;
use mainstay_manifest::InputFile;
use serde_json::Value;

use crate::commands::manifest::inputs::read_file;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Flags that select charts of Helm.
#[derive(clap::Args)]
pub(super) struct HelmFlags {
    /// Values that Helm installs a chart with: base, istiod, cni, ztunnel or gateway (repeatable)
    #[arg(long, value_name = "CHART=FILE", conflicts_with_all = ["helm_release", "from_cluster"])]
    helm_values: Vec<String>,
    /// Secrets of Helm releases in a file or directory (`-` for stdin), a directory with CHART.yaml files of
    /// values, or a chart that depends on charts of Istio
    #[arg(long, value_name = "PATH", conflicts_with = "from_cluster")]
    helm_release: Option<PathBuf>,
    /// Read the Helm releases of the cluster
    #[arg(long)]
    from_cluster: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

impl HelmFlags {
    /// Whether no charts are selected.
    pub(super) fn is_empty(&self) -> bool {
        self.helm_values.is_empty() && self.helm_release.is_none() && !self.from_cluster
    }

    /// Reads the charts; `version` is that of values files.
    pub(super) fn sources(&self, catalog: &Catalog, version: &Version) -> Result<Vec<HelmSource>, CliError> {
        let sources = if self.from_cluster {
            from_releases(&self.cluster_secrets()?, catalog)?
        } else if let Some(path) = &self.helm_release {
            from_path(path, catalog, version)?
        } else {
            let files = self.helm_values.iter().map(|text| parse_pair(text));
            let files: Vec<(HelmChart, PathBuf)> = files.collect::<Result<_, _>>()?;
            from_values(&files, version)?
        };
        if sources.is_empty() {
            let message = "no charts of Istio found";
            return Err(CliError::new(Kind::Usage, message)
                .hint("name Secrets of Helm releases, or files of values such as istiod.yaml"));
        }
        Ok(sources)
    }

    fn cluster_secrets(&self) -> Result<Vec<Value>, CliError> {
        block_on(async {
            let client = self.cluster.client().await?;
            let found = read_installed_mesh(&client).await;
            let found = found.map_err(|error| {
                CliError::new(Kind::Cluster, format!("cannot read the mesh: {}", error.message))
            })?;
            match found.secrets_error {
                Some(error) => Err(CliError::new(
                    Kind::Cluster,
                    format!("cannot read the Secrets of Helm: {error}"),
                )),
                None => Ok(found.secrets),
            }
        })
    }
}

fn parse_pair(text: &str) -> Result<(HelmChart, PathBuf), CliError> {
    let found = text.split_once('=');
    let found = found.and_then(|(chart, file)| Some((HelmChart::from_name(chart)?, PathBuf::from(file))));
    found.ok_or_else(|| {
        let names: Vec<&str> = HelmChart::ALL.iter().map(|chart| chart.name()).collect();
        let message = format!("--helm-values {text}: expected CHART=FILE");
        CliError::new(Kind::Usage, message).hint(format!("the charts are {}", names.join(", ")))
    })
}

/// Reads files of values. Adds the chart `base` without values if no file is for it, because every mesh
/// requires that chart.
fn from_values(files: &[(HelmChart, PathBuf)], version: &Version) -> Result<Vec<HelmSource>, CliError> {
    let mut sources = Vec::new();
    if !files.iter().any(|(chart, _)| *chart == HelmChart::Base) {
        sources.push(HelmSource::with_values(HelmChart::Base, version, Values::new()));
    }
    for (chart, path) in files {
        let name = path.display().to_string();
        let file = read_file(&name)?;
        sources.push(HelmSource::from_values(*chart, version, source_file(&file))?);
    }
    Ok(sources)
}

fn from_path(path: &Path, catalog: &Catalog, version: &Version) -> Result<Vec<HelmSource>, CliError> {
    if !path.is_dir() {
        let name = path.display().to_string();
        return from_releases(&secrets(&read_file(&name)?.text, &name)?, catalog);
    }
    let chart = path.join("Chart.yaml");
    if chart.is_file() {
        return from_umbrella(path, version);
    }
    let files = yaml_files(path)?;
    let named: Vec<(HelmChart, PathBuf)> = files
        .iter()
        .filter_map(|file| Some((chart_of(file, path)?, file.clone())))
        .collect();
    if !named.is_empty() {
        return from_values(&named, version);
    }
    let mut found = Vec::new();
    for file in &files {
        let name = file.display().to_string();
        found.extend(secrets(&read_file(&name)?.text, &name)?);
    }
    from_releases(&found, catalog)
}

fn from_umbrella(path: &Path, version: &Version) -> Result<Vec<HelmSource>, CliError> {
    let chart = read_file(&path.join("Chart.yaml").display().to_string())?;
    let values = path.join("values.yaml");
    let values = if values.is_file() {
        read_file(&values.display().to_string())?
    } else {
        InputFile {
            name: values.display().to_string(),
            text: Vec::new(),
        }
    };
    let (chart, values) = (source_file(&chart), source_file(&values));
    Ok(HelmSource::from_umbrella(chart, values, version)?)
}

fn source_file(file: &InputFile) -> SourceFile<'_> {
    SourceFile {
        name: &file.name,
        text: &file.text,
    }
}

/// Returns the chart that a file name refers to: `istiod.yaml`, `istiod-values.yaml` or `istiod/values.yaml`.
fn chart_of(file: &Path, top: &Path) -> Option<HelmChart> {
    let stem = file.file_stem()?.to_str()?;
    let name = match stem {
        "values" => file
            .parent()
            .filter(|parent| *parent != top)?
            .file_name()?
            .to_str()?,
        stem => stem.strip_suffix("-values").unwrap_or(stem),
    };
    HelmChart::from_name(name)
}

/// Returns the YAML and JSON files below a directory, sorted.
fn yaml_files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed =
        |error: std::io::Error| CliError::new(Kind::Io, format!("cannot read {}: {error}", path.display()));
    let mut files = Vec::new();
    let mut open = vec![(path.to_owned(), true)];
    while let Some((directory, is_top)) = open.pop() {
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().map_err(failed)?.is_dir();
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if is_directory && is_top {
                open.push((path, false));
            } else if matches!(extension, Some("yaml" | "yml" | "json")) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the Secrets of a file, including those in Lists.
fn secrets(text: &[u8], name: &str) -> Result<Vec<Value>, CliError> {
    mainstay_adopt::parse_objects(&String::from_utf8_lossy(text))
        .map_err(|error| CliError::new(Kind::Config, format!("{name}: {}", crate::error::chain(&error))))
}

fn from_releases(secrets: &[Value], catalog: &Catalog) -> Result<Vec<HelmSource>, CliError> {
    let mut releases = Vec::new();
    for secret in secrets {
        releases.extend(HelmRelease::from_secret(secret)?);
    }
    let mut sources = Vec::new();
    for release in newest_versions(releases) {
        sources.extend(HelmSource::from_release(&release, catalog)?);
    }
    sources.sort_by(|a, b| (a.chart, &a.namespace, &a.release).cmp(&(b.chart, &b.namespace, &b.release)));
    Ok(sources)
}
