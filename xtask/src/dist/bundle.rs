//! The bundle for the Operator Lifecycle Manager: definitions, a `ClusterServiceVersion` and metadata.
//!
//! The operator's deployment and permissions are those of the Helm chart, which `mainstay template` renders.
//! The chart's admission policy is left out: bundles cannot contain that kind.

#![allow(clippy::indexing_slicing, reason = "a missing key of a JSON value is null")]

mod descriptors;
mod document;
mod version;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use self::document::{documents, print};
use super::package::{Entry, gzip, tar};
use super::{VERSION, chart};

/// The package's name in a catalog.
const PACKAGE: &str = "mainstay";

/// The namespace that the rendered objects name; the Lifecycle Manager replaces it.
const NAMESPACE: &str = "placeholder";

/// Returns the bundle's directory as an archive.
pub(super) fn archive(mainstay: &Path) -> anyhow::Result<Vec<u8>> {
    let files = files(mainstay)?.into_iter();
    let entries: Vec<Entry> = files.map(|file| file.below("bundle/")).collect();
    gzip(&tar(&entries)?)
}

/// Returns the files of the bundle.
fn files(mainstay: &Path) -> anyhow::Result<Vec<Entry>> {
    let objects = chart_objects(mainstay)?;
    let own = own_definitions()?;
    let istio = documents(&output(mainstay, &["crds", "--only", "istio"])?)?;
    let installable = installable(mainstay)?;
    let service_version = version::service_version(&version::Sources {
        objects: &objects,
        own: &own,
        istio: &istio,
        installable: &installable,
    })?;
    let mut files = vec![
        manifest("mainstay.clusterserviceversion.yaml", &service_version)?,
        Entry::file("metadata/annotations.yaml", print(&annotations())?),
    ];
    for definition in own.iter().chain(&istio) {
        files.push(manifest(&format!("{}.yaml", name(definition)), definition)?);
    }
    for object in objects.iter().filter(|object| is_separate(object)) {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        files.push(manifest(&format!("{}_{kind}.yaml", name(&object)), &object)?);
    }
    Ok(files)
}

fn manifest(file: &str, object: &Value) -> anyhow::Result<Entry> {
    Ok(Entry::file(format!("manifests/{file}"), print(object)?))
}

/// Whether an object of the chart is a file of the bundle and not part of the `ClusterServiceVersion`.
fn is_separate(object: &Value) -> bool {
    object["kind"] == "Service" || name(object).ends_with("-metrics-reader")
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Channels as the Sail Operator names them: one for all releases, and one per minor version.
fn channels() -> String {
    let minor: Vec<&str> = VERSION.split('.').take(2).collect();
    format!("stable,stable-{}", minor.join("."))
}

fn annotations() -> Value {
    json!({"annotations": {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": PACKAGE,
        "operators.operatorframework.io.bundle.channels.v1": channels(),
        "operators.operatorframework.io.bundle.channel.default.v1": "stable",
    }})
}

fn own_definitions() -> anyhow::Result<Vec<Value>> {
    let directory = repository_root().join(chart::SOURCE).join("crds");
    let mut paths: Vec<_> = fs::read_dir(&directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut definitions = Vec::new();
    for path in paths {
        definitions.extend(documents(&fs::read_to_string(path)?)?);
    }
    Ok(definitions)
}

/// Returns the objects of the operator's chart.
fn chart_objects(mainstay: &Path) -> anyhow::Result<Vec<Value>> {
    let chart = repository_root().join(chart::SOURCE).display().to_string();
    let settings = "crds.install=false,rbac.confine=false";
    let text = output(
        mainstay,
        &[
            "template",
            "mainstay",
            &chart,
            "--namespace",
            NAMESPACE,
            "--set",
            settings,
        ],
    )?;
    documents(&text)
}

/// Returns the versions and aliases that the operator can install.
fn installable(mainstay: &Path) -> anyhow::Result<Vec<String>> {
    let list: Value = serde_json::from_str(&output(mainstay, &["charts", "list", "-o", "json"])?)?;
    let rows = list.as_array().context("`charts list` printed no list")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = |row: &Value| {
        let aliases = row["aliases"].as_array().cloned().unwrap_or_default();
        let version = format!("v{}", text(&row["version"]));
        aliases.iter().map(text).chain([version]).collect::<Vec<_>>()
    };
    Ok(rows.iter().flat_map(names).collect())
}

fn output(mainstay: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    // The user's own catalog is no part of a release.
    let scratch = tempfile::tempdir()?;
    let output = Command::new(mainstay)
        .args(arguments)
        .env("XDG_DATA_HOME", scratch.path())
        .output()
        .with_context(|| mainstay.display().to_string())?;
    ensure!(
        output.status.success(),
        "mainstay {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_follow_the_version() {
        assert!(channels().starts_with("stable,stable-0."), "{}", channels());
    }
}
