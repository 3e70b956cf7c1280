//! Tests of the catalog with embedded charts and with directories on disk.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test helpers may panic and access files"
)]

use std::fs;
use std::path::{Path, PathBuf};

use mainstay_catalog::{Catalog, CatalogError, Flavour, Origin};

/// A temporary directory that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mainstay-catalog-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn catalog(&self) -> Result<Catalog, CatalogError> {
        Catalog::embedded()?.with_directory(Origin::Directory, &self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PINNED: [&str; 7] = [
    "1.31.0-alpha.eed52ebb",
    "1.29.1",
    "1.28.2",
    "1.27.9",
    "1.26.1",
    "1.25.1",
    "1.24.2",
];
const INSTALLER: [&str; 8] = [
    "base",
    "cni",
    "default",
    "gateway",
    "istio-egress",
    "istio-ingress",
    "istiod",
    "ztunnel",
];
const OPERATOR: [&str; 6] = ["base", "cni", "gateway", "istiod", "revisiontags", "ztunnel"];

/// Returns the embedded catalog. Panics if the build embeds no charts.
fn embedded() -> Catalog {
    let catalog = Catalog::embedded().unwrap();
    assert!(
        !catalog.installable().is_empty(),
        "this build embeds no charts: run `cargo xtask charts`"
    );
    catalog
}

#[test]
fn the_build_embeds_all_pinned_versions() {
    let catalog = embedded();
    let installable = catalog.installable();
    let versions: Vec<_> = installable.iter().map(|one| one.version.to_string()).collect();
    assert_eq!(versions, PINNED);
    for one in &installable {
        for (flavour, charts) in [
            (Flavour::Installer, &INSTALLER[..]),
            (Flavour::Operator, &OPERATOR[..]),
        ] {
            assert_eq!(catalog.charts(&one.version, flavour).unwrap(), charts);
            for chart in charts {
                let files = catalog.chart(&one.version, flavour, chart).unwrap();
                assert!(
                    files.contains_key("Chart.yaml") && files.contains_key("values.yaml"),
                    "{chart}"
                );
            }
            assert!(
                catalog
                    .profiles(&one.version, flavour)
                    .unwrap()
                    .contains(&"ambient".to_owned())
            );
        }
    }
}

#[test]
fn embedded_charts_equal_derived_ones() {
    let resources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resources");
    let embedded = embedded();
    let directory = Catalog::embedded()
        .unwrap()
        .with_directory(Origin::Directory, resources)
        .unwrap();
    for one in embedded.installable() {
        for flavour in Flavour::ALL {
            for chart in embedded.charts(&one.version, flavour).unwrap() {
                let files = |catalog: &Catalog| catalog.chart(&one.version, flavour, &chart).unwrap();
                assert_eq!(
                    files(&embedded),
                    files(&directory),
                    "{} {flavour} {chart}",
                    one.version
                );
            }
        }
    }
}

#[test]
fn a_directory_adds_versions_and_hides_embedded_ones() {
    let scratch = Scratch::new("adds");
    scratch
        .write("1.99.0/installer/charts/c/Chart.yaml", "a")
        .write("1.29.1/operator/charts/istiod/Chart.yaml", "mine");
    scratch
        .write("1.99.1/notes", "no charts")
        .write(".new-1.99.2/installer/charts/c/Chart.yaml", "half");
    let catalog = scratch.catalog().unwrap();
    let found = |name: &str| {
        catalog
            .installable()
            .into_iter()
            .find(|one| one.version.to_string() == name)
            .map(|one| one.origin)
    };
    assert_eq!(found("1.99.0"), Some(Origin::Directory));
    assert_eq!(found("1.29.1"), Some(Origin::Directory));
    assert_eq!((found("1.99.1"), found("1.99.2")), (None, None));
    assert_eq!(catalog.resolve("v1.99-latest").unwrap().to_string(), "1.99.0");
    let version = catalog.resolve("1.29.1").unwrap();
    assert_eq!(
        catalog.chart(&version, Flavour::Operator, "istiod").unwrap()["Chart.yaml"],
        b"mine"
    );
}

#[test]
fn sail_operator_layout_is_read_for_both_flavours() {
    let scratch = Scratch::new("sail");
    scratch
        .write("v1.99.0/charts/istiod/templates/a.yaml", "a")
        .write("v1.99.0/profiles/default.yaml", "p");
    let catalog = scratch.catalog().unwrap();
    let version = catalog.resolve("v1.99.0").unwrap();
    for flavour in Flavour::ALL {
        assert_eq!(
            catalog.chart(&version, flavour, "istiod").unwrap()["templates/a.yaml"],
            b"a"
        );
        assert_eq!(catalog.profile(&version, flavour, "default").unwrap(), b"p");
    }
}

#[test]
fn a_missing_directory_adds_nothing() {
    let scratch = Scratch::new("absent");
    let absent = Catalog::embedded()
        .unwrap()
        .with_directory(Origin::Pulled, scratch.0.join("none"))
        .unwrap();
    assert_eq!(absent.installable(), Catalog::embedded().unwrap().installable());
}

#[cfg(unix)]
#[test]
fn links_are_rejected() {
    let scratch = Scratch::new("links");
    scratch.write("1.99.0/installer/charts/c/Chart.yaml", "a");
    let link = scratch.0.join("1.99.0/installer/charts/c/passwd");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    let catalog = scratch.catalog().unwrap();
    let error = catalog
        .chart(&catalog.resolve("1.99.0").unwrap(), Flavour::Installer, "c")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} is rejected: it is neither a file nor a directory",
            link.display()
        )
    );
}

#[test]
fn a_file_in_place_of_a_directory_is_an_error() {
    let scratch = Scratch::new("file");
    scratch.write("f", "x");
    let error = Catalog::embedded()
        .unwrap()
        .with_directory(Origin::Directory, scratch.0.join("f"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read {}", scratch.0.join("f").display())
    );
}
