//! A software bill of materials in the `CycloneDX` format, from cargo's metadata.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use crate::build::cargo;

/// Returns the components of the `mainstay` binary on `target` and their dependencies.
pub(super) fn bill(target: &str, features: &[&str]) -> anyhow::Result<Value> {
    let output = cargo()
        .args([
            "metadata",
            "--locked",
            "--format-version=1",
            "--filter-platform",
            target,
        ])
        .args(features)
        .arg("--manifest-path")
        .arg(repository_root().join("crates/cli/Cargo.toml"))
        .output()
        .context("starting cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("parsing cargo metadata")?;
    from_metadata(&metadata)
}

fn from_metadata(metadata: &Value) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Value> = list(metadata, "/packages")
        .map(|it| (text(it, "id"), it))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(metadata, "/resolve/nodes")
        .map(|it| (text(it, "id"), it))
        .collect();
    let root = packages
        .iter()
        .find(|(_, package)| text(package, "name") == "mainstay")
        .map(|(id, _)| *id)
        .context("the workspace has no package `mainstay`")?;
    let used = reachable(root, &nodes);
    let components: Vec<Value> = used
        .iter()
        .filter(|id| **id != root)
        .filter_map(|id| packages.get(id).map(|package| component(package)))
        .collect();
    let dependencies: Vec<Value> = used
        .iter()
        .map(|id| {
            let on: Vec<String> = normal_dependencies(id, &nodes)
                .filter_map(|id| packages.get(id).map(|package| purl(package)))
                .collect();
            json!({"ref": packages.get(id).map(|package| purl(package)), "dependsOn": on})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": packages.get(root).map(|package| application(package))},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns the packages that `root` is built from, without those of tests and build scripts.
fn reachable<'a>(root: &'a str, nodes: &BTreeMap<&'a str, &'a Value>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::from([root]);
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        let new: Vec<&str> = normal_dependencies(id, nodes)
            .filter(|id| found.insert(id))
            .collect();
        pending.extend(new);
    }
    found
}

fn normal_dependencies<'a>(id: &str, nodes: &BTreeMap<&'a str, &'a Value>) -> impl Iterator<Item = &'a str> {
    let dependencies = nodes
        .get(id)
        .copied()
        .into_iter()
        .flat_map(|node| list(node, "/deps"));
    let is_normal = |dependency: &&Value| list(dependency, "/dep_kinds").any(|kind| kind["kind"].is_null());
    dependencies
        .filter(is_normal)
        .map(|dependency| text(dependency, "pkg"))
}

fn component(package: &Value) -> Value {
    json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": text(package, "name"),
        "version": text(package, "version"),
        "licenses": [{"expression": text(package, "license").replace('/', " OR ")}],
        "purl": purl(package),
    })
}

fn application(package: &Value) -> Value {
    let mut value = component(package);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("type".into(), "application".into());
    }
    value
}

fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dependencies_of_the_binary_are_listed() {
        let dependency = |name: &str, kind: Option<&str>| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let metadata = json!({
            "packages": [package("mainstay"), package("used"), package("tested"), package("built")],
            "resolve": {"nodes": [
                {"id": "mainstay", "deps": [dependency("used", None), dependency("tested", Some("dev"))]},
                {"id": "used", "deps": [dependency("built", Some("build"))]},
            ]},
        });
        let bill = from_metadata(&metadata).unwrap();
        let names: Vec<_> = list(&bill, "/components").map(|it| text(it, "name")).collect();
        assert_eq!(names, ["used"]);
        assert_eq!(
            bill["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(bill["metadata"]["component"]["type"], "application");
    }
}
