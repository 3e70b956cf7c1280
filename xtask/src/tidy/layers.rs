//! Checks the crate layers: reports every dependency that does not point to a lower layer, and every crate or
//! layer that is missing on either side.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::Finding;

/// One layer of the crate table in ARCHITECTURE.md.
struct Layer {
    name: &'static str,
    /// Lowest first: a crate may depend on lower layers and on the crates before it in its own layer.
    crates: &'static [&'static str],
}

/// The layers, lowest first.
const LAYERS: &[Layer] = &[
    Layer {
        name: "base",
        crates: &["mainstay-gostd", "mainstay-listen", "mainstay-yaml"],
    },
    Layer {
        name: "text",
        crates: &["mainstay-template", "mainstay-sprig", "mainstay-chart"],
    },
    Layer {
        name: "data",
        crates: &["mainstay-api", "mainstay-catalog"],
    },
    Layer {
        name: "domain",
        crates: &[
            "mainstay-inject",
            "mainstay-manifest",
            "mainstay-mesh",
            "mainstay-rollout",
        ],
    },
    Layer {
        name: "I/O",
        crates: &["mainstay-cluster"],
    },
    Layer {
        name: "application",
        crates: &[
            "mainstay-sim",
            "mainstay-operator",
            "mainstay-adopt",
            "mainstay-harness",
            "mainstay-rehearsal",
        ],
    },
    Layer {
        name: "binary",
        crates: &["mainstay"],
    },
    Layer {
        name: "test",
        crates: &[
            "mainstay-check",
            "mainstay-conformance",
            "mainstay-fuzz",
            "mainstay-testkit",
        ],
    },
    Layer {
        name: "tool",
        crates: &["xtask"],
    },
];

/// The layer that never ships: only dev-dependencies and `xtask` refer to it.
const TEST: &str = "test";

/// Shipping crates that tests of lower layers may use.
const TEST_HARNESSES: &[&str] = &["mainstay-harness", "mainstay-sim"];

/// The position of a crate in [`LAYERS`]; lower positions sort first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    layer: usize,
    within: usize,
}

/// Returns every forbidden dependency, every crate without a layer and every row without a crate.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let output = crate::build::cargo()
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root)
        .output()
        .context("starting cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("parsing cargo metadata")?;
    let packages = array(&metadata, "packages");
    let mut findings: Vec<Finding> = packages.iter().flat_map(check_package).collect();
    findings.extend(missing_crates(packages));
    Ok(findings)
}

fn missing_crates(packages: &[Value]) -> impl Iterator<Item = Finding> {
    let exists = |name: &str| packages.iter().any(|package| text(package, "name") == name);
    LAYERS
        .iter()
        .flat_map(|layer| layer.crates)
        .filter(move |name| !exists(name))
        .map(|name| Finding::new(*name, "is listed in xtask/src/tidy/layers.rs but does not exist"))
}

fn check_package(package: &Value) -> Vec<Finding> {
    let name = text(package, "name");
    let Some(position) = position(name) else {
        return vec![Finding::new(name, "has no layer in xtask/src/tidy/layers.rs")];
    };
    array(package, "dependencies")
        .iter()
        .filter_map(|dependency| check_dependency(name, position, dependency))
        .collect()
}

fn check_dependency(name: &str, own: Position, dependency: &Value) -> Option<Finding> {
    let target = text(dependency, "name");
    let theirs = position(target)?;
    let is_test = text(dependency, "kind") == "dev";
    let may_test = target == name || TEST_HARNESSES.contains(&target) || layer_name(theirs) == TEST;
    let is_allowed = match (layer_name(own), layer_name(theirs)) {
        _ if is_test && may_test => true,
        ("test" | "tool", _) => theirs < own,
        (_, TEST) => false,
        _ => theirs < own,
    };
    (!is_allowed).then(|| {
        Finding::new(
            name,
            format!("must not depend on {target}: dependencies point to lower layers only"),
        )
    })
}

fn position(name: &str) -> Option<Position> {
    LAYERS.iter().enumerate().find_map(|(layer, row)| {
        let within = row.crates.iter().position(|known| *known == name)?;
        Some(Position { layer, within })
    })
}

fn layer_name(position: Position) -> &'static str {
    LAYERS.get(position.layer).map_or("", |layer| layer.name)
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(name: &str, dependency: &str, kind: Option<&str>) -> usize {
        check_package(&json!({"name": name, "dependencies": [{"name": dependency, "kind": kind}]})).len()
    }

    #[test]
    fn dependencies_point_to_lower_layers() {
        assert_eq!(check("mainstay-chart", "mainstay-yaml", None), 0);
        assert_eq!(check("mainstay-yaml", "mainstay-chart", None), 1);
        assert_eq!(check("mainstay-chart", "mainstay-chart", None), 1);
        assert_eq!(check("mainstay-chart", "mainstay-chart", Some("dev")), 0);
        assert_eq!(check("mainstay-chart", "serde", None), 0);
        assert_eq!(check("mainstay-rehearsal", "mainstay-sim", None), 0);
        assert_eq!(check("mainstay-sim", "mainstay-operator", None), 1);
    }

    #[test]
    fn test_crates_never_ship() {
        assert_eq!(check("mainstay-chart", "mainstay-testkit", Some("dev")), 0);
        assert_eq!(check("mainstay", "mainstay-testkit", None), 1);
        assert_eq!(check("mainstay-mesh", "mainstay-check", None), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        assert_eq!(check("mainstay-new", "serde", None), 1);
    }

    #[test]
    fn a_row_without_a_crate_is_found() {
        assert!(missing_crates(&[json!({"name": "mainstay-yaml"})]).count() > 10);
    }
}
