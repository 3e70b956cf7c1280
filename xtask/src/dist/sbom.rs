//! The packages of a binary, and a software bill of materials in the `CycloneDX` format.
//!
//! The packages are those of `cargo tree`, which applies the features of one package; `cargo metadata`
//! resolves the whole workspace.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use super::Target;
use crate::build::cargo;

/// The packages that a build of `mainstay` consists of, without those of tests and build scripts.
#[derive(Debug)]
pub(crate) struct Packages {
    /// License expression by package.
    licenses: BTreeMap<Package, String>,
    /// Direct dependencies by package.
    dependencies: BTreeMap<Package, BTreeSet<Package>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
}

impl Package {
    /// Returns the package URL.
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The package of the binary.
const ROOT: &str = "mainstay";

impl Packages {
    /// Resolves the packages with these features.
    pub(crate) fn resolve(target: Target, features: &[&str]) -> anyhow::Result<Self> {
        let output = cargo()
            .args(["tree", "--package", ROOT, "--target", target.triple()])
            .args(["--edges", "normal", "--prefix", "depth", "--format", "\t{p}\t{l}"])
            .args(features)
            .current_dir(repository_root())
            .output()
            .context("starting cargo tree")?;
        ensure!(
            output.status.success(),
            "cargo tree failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Parses lines of depth, package and license.
    fn parse(tree: &str) -> anyhow::Result<Self> {
        let mut packages = Self {
            licenses: BTreeMap::new(),
            dependencies: BTreeMap::new(),
        };
        let mut path: Vec<Package> = Vec::new();
        for line in tree.lines().filter(|line| !line.is_empty()) {
            let (depth, package, license) =
                parse_line(line).with_context(|| format!("cargo tree printed {line:?}"))?;
            path.truncate(depth);
            if let Some(parent) = path.last() {
                let dependencies = packages.dependencies.entry(parent.clone()).or_default();
                dependencies.insert(package.clone());
            }
            if !license.is_empty() {
                packages.licenses.insert(package.clone(), license);
            }
            packages.dependencies.entry(package.clone()).or_default();
            path.push(package);
        }
        Ok(packages)
    }

    /// Returns the number of packages, including the binary's own.
    pub(crate) fn count(&self) -> usize {
        self.dependencies.len()
    }

    /// Whether a package is part of the build.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.dependencies.keys().any(|package| package.name == name)
    }

    /// Returns the bill of materials.
    pub(crate) fn bill(&self) -> anyhow::Result<Value> {
        let root = self.dependencies.keys().find(|package| package.name == ROOT);
        let root = root.context("cargo tree does not list `mainstay`")?;
        let libraries = self.dependencies.keys().filter(|package| *package != root);
        let libraries = libraries.map(|package| self.component(package, "library"));
        let edges = |(package, dependencies): (&Package, &BTreeSet<Package>)| {
            let on: Vec<String> = dependencies.iter().map(Package::url).collect();
            json!({"ref": package.url(), "dependsOn": on})
        };
        Ok(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {"component": self.component(root, "application")},
            "components": libraries.chain(charts()?).collect::<Vec<_>>(),
            "dependencies": self.dependencies.iter().map(edges).collect::<Vec<_>>(),
        }))
    }

    fn component(&self, package: &Package, kind: &str) -> Value {
        let license = self.licenses.get(package).map_or("NOASSERTION", String::as_str);
        json!({
            "type": kind,
            "bom-ref": package.url(),
            "name": package.name,
            "version": package.version,
            "licenses": [{"expression": license.replace('/', " OR ")}],
            "purl": package.url(),
        })
    }
}

/// Parses `2<tab>serde v1.0.0 (proc-macro) (*)<tab>MIT`.
fn parse_line(line: &str) -> Option<(usize, Package, String)> {
    let mut fields = line.split('\t');
    let depth = fields.next()?.parse().ok()?;
    let mut words = fields.next()?.split(' ');
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    let license = fields.next()?.trim_end_matches(" (*)").trim().to_owned();
    Some((depth, Package { name, version }, license))
}

/// Returns the embedded charts, which `charts.lock` pins.
fn charts() -> anyhow::Result<Vec<Value>> {
    let lock = std::fs::read_to_string(repository_root().join("charts.lock"))?;
    let lines = lock.lines().filter(|line| !line.starts_with('#'));
    let chart = |line: &str| {
        let mut fields = line.split_whitespace();
        let (version, module, pin) = (fields.next()?, fields.next()?, fields.next()?);
        let url = format!("pkg:golang/{module}@{pin}");
        Some(json!({
            "type": "data",
            "bom-ref": url,
            "name": "Istio charts",
            "version": version,
            "licenses": [{"expression": "Apache-2.0"}],
            "purl": url,
        }))
    };
    Ok(lines.filter_map(chart).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0\tmainstay v0.1.0 (/src/crates/cli)\tApache-2.0\n\
        1\tused v1.0.0\tMIT/Apache-2.0\n\
        2\tderive v2.0.0 (proc-macro)\tMIT\n\
        1\tderive v2.0.0 (proc-macro) (*)\tMIT (*)\n";

    #[test]
    fn packages_have_dependencies_and_licenses() {
        let packages = Packages::parse(TREE).unwrap();
        assert_eq!(packages.count(), 3);
        assert!(packages.contains("derive") && !packages.contains("mainstay-sim"));
        let bill = packages.bill().unwrap();
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        let used = &bill["components"][1];
        assert_eq!(used["purl"], "pkg:cargo/used@1.0.0");
        assert_eq!(used["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let edges = &bill["dependencies"][1];
        assert_eq!(edges["ref"], "pkg:cargo/mainstay@0.1.0");
        assert_eq!(
            edges["dependsOn"],
            json!(["pkg:cargo/derive@2.0.0", "pkg:cargo/used@1.0.0"])
        );
    }

    #[test]
    fn another_line_is_an_error() {
        assert!(Packages::parse("mainstay v0.1.0\n").is_err());
    }

    #[test]
    fn the_pinned_charts_are_listed() {
        let charts = charts().unwrap();
        assert!(charts.len() >= 6, "{charts:?}");
        assert_eq!(charts[0]["version"], "1.24.2");
    }
}
