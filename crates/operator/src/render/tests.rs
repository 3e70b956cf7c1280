//! Tests of charts that depend on the version of the cluster.

use mainstay_mesh::plan::ReleaseKey;
use serde_json::json;

use super::*;

fn release(version: &str, chart: &'static str) -> Release {
    Release {
        key: ReleaseKey {
            owner: "uid".into(),
            namespace: "istio-system".into(),
            name: format!("default-{chart}"),
        },
        chart,
        version: version.into(),
        values: mainstay_api::Values::default(),
        owner: serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "Thing", "name": "it", "uid": "uid"}),
        )
        .unwrap(),
    }
}

/// Returns the releases of every installable version.
fn releases(catalog: &Catalog) -> Vec<Release> {
    let all = |version: &str| {
        ["base", "istiod", "cni", "ztunnel", "revisiontags"].map(|chart| release(version, chart))
    };
    let versions = catalog.installable();
    versions
        .iter()
        .flat_map(|one| all(&format!("v{}", one.version)))
        .collect()
}

#[test]
fn only_the_cni_chart_uses_the_version_of_the_cluster() {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    for release in releases(&catalog) {
        let rendered = Renderer::new(catalog.clone()).render(&release);
        let uses_version = matches!(rendered, Err(RenderError::NoVersion));
        assert_eq!(
            uses_version,
            release.chart == "cni",
            "{} {}",
            release.chart,
            release.version
        );
    }
}

#[test]
fn other_charts_render_equally_on_every_version() {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let render = |version: &str, release: &Release| {
        let rendered = Renderer::for_version(catalog.clone(), version).render(release);
        rendered.map_err(|error| error.to_string())
    };
    let mut differ = releases(&catalog);
    differ.retain(|release| render("v1.29.0", release) != render("v1.36.4-gke.1", release));
    assert!(differ.iter().all(|release| release.chart == "cni"), "{differ:#?}");
    assert!(
        !differ.is_empty(),
        "older CNI charts detect GKE by the version of the cluster"
    );
}

#[test]
fn the_first_version_is_kept() {
    let renderer = Renderer::for_version(Arc::new(Catalog::embedded().unwrap()), "v1.30.1");
    renderer.set_version("v1.36.4");
    assert_eq!(renderer.version.get().unwrap().version, "v1.30.1");
}
