//! Arrows point down only: takes the workspace's dependency graph, gives every arrow that points up or sideways.

use std::path::Path;

use anyhow::Context;

use super::Breach;

/// The crates by layer, lowest first. A crate may depend on what stands in a lower row, and on nothing else of ours.
const LAYERS: &[(&str, u8)] = &[
    ("mainstay-yaml", 0),
    ("mainstay-template", 1),
    ("mainstay-sprig", 2),
    ("mainstay-chart", 3),
    ("mainstay-api", 3),
    ("mainstay-catalog", 4),
    ("mainstay-manifest", 5),
    ("mainstay-inject", 6),
    ("mainstay-mesh", 6),
    ("mainstay-rollout", 6),
    ("mainstay-check", 7),
    ("mainstay-sim", 7),
    ("mainstay-conformance", 8),
    ("mainstay-testkit", 8),
    ("mainstay-cluster", 8),
    ("mainstay-operator", 9),
    ("mainstay-rehearsal", 10),
    ("mainstay", 11),
    ("xtask", 12),
];

/// What only tests may use.
const PROOF: &[&str] = &["mainstay-conformance", "mainstay-testkit"];

/// Every forbidden arrow, and every crate without a layer.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Breach>> {
    let output = crate::build::cargo()
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root)
        .output()
        .context("starting cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let packages = metadata
        .get("packages")
        .and_then(serde_json::Value::as_array)
        .cloned()
        .unwrap_or_default();
    Ok(packages.iter().flat_map(breaches).collect())
}

fn breaches(package: &serde_json::Value) -> Vec<Breach> {
    let name = text(package, "name");
    let Some(own) = layer(name) else {
        return vec![Breach::new(name, "has no layer in xtask/src/tidy/layers.rs")];
    };
    let dependencies = package
        .get("dependencies")
        .and_then(serde_json::Value::as_array)
        .cloned()
        .unwrap_or_default();
    dependencies
        .iter()
        .filter_map(|dependency| arrow(name, own, dependency))
        .collect()
}

fn arrow(name: &str, own: u8, dependency: &serde_json::Value) -> Option<Breach> {
    let target = text(dependency, "name");
    let in_tests = text(dependency, "kind") == "dev";
    let allowed = match layer(target) {
        None => true,
        // Its own tests with one of its features.
        Some(_) if target == name => in_tests,
        Some(_) if PROOF.contains(&target) => in_tests || name == "xtask",
        Some(theirs) => theirs < own,
    };
    (!allowed).then(|| {
        Breach::new(
            name,
            format!("must not depend on {target}: arrows point down only"),
        )
    })
}

fn layer(name: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, layer)| *layer)
}

fn text<'a>(value: &'a serde_json::Value, key: &str) -> &'a str {
    value
        .get(key)
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, dependency: &str, kind: Option<&str>) -> usize {
        breaches(&serde_json::json!({"name": name, "dependencies": [{"name": dependency, "kind": kind}]}))
            .len()
    }

    #[test]
    fn arrows_point_down_only() {
        assert_eq!(check("mainstay-chart", "mainstay-yaml", None), 0);
        assert_eq!(check("mainstay-yaml", "mainstay-chart", None), 1);
        assert_eq!(check("mainstay-chart", "mainstay-chart", None), 1);
        assert_eq!(check("mainstay-chart", "mainstay-chart", Some("dev")), 0);
        assert_eq!(check("mainstay-chart", "serde", None), 0);
    }

    #[test]
    fn the_testkit_never_ships() {
        assert_eq!(check("mainstay-chart", "mainstay-testkit", Some("dev")), 0);
        assert_eq!(check("mainstay", "mainstay-testkit", None), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        assert_eq!(check("mainstay-new", "serde", None), 1);
    }
}
