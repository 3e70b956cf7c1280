//! Tests for charts that depend on the version of the cluster, for confinement and for reproducibility.

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

/// Returns a release of each chart of every installable version.
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

fn istiod(values: &Value) -> Release {
    Release {
        values: values.as_object().unwrap().clone(),
        ..release("v1.29.1", "istiod")
    }
}

fn render_embedded(release: &Release) -> Result<Vec<Value>, RenderError> {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    Renderer::for_version(catalog, "v1.36.4").render(release)
}

/// Returns a value that ends the document of the chart after the arguments of its container, and starts
/// another object that contains the rest of the template.
fn document_injection(namespace: &str, name: &str) -> String {
    format!(
        "default:info\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {namespace}\n\
         spec:\n  template:\n    spec:\n      hostPID: true\n      containers:\n        - name: evil\n          args:\n\
         \u{20}         - rest"
    )
}

#[test]
fn a_value_cannot_add_an_object() {
    let check = |namespace: &str, name: &str| {
        let level = document_injection(namespace, name);
        let error = render_embedded(&istiod(&json!({"global": {"logging": {"level": level}}}))).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        check("istio-system", "evil"),
        "Deployment istio-system/evil is not part of chart \"istiod\": a value with a line break adds it; remove the line break \
         from spec.values"
    );
    assert_eq!(
        check("kube-system", "evil"),
        "Deployment kube-system/evil is outside the namespace \"istio-system\" of the release of chart \"istiod\""
    );
    // The added object has the identity of an object of the chart.
    assert!(
        check("istio-system", "istiod").starts_with("Deployment istio-system/istiod is not part of chart")
    );
}

#[test]
fn values_with_line_breaks_that_add_no_object_are_accepted() {
    let template = "spec:\n  containers: []\n---\nkind: Deployment\n";
    let values = json!({
        "sidecarInjectorWebhook": {"templates": {"own": template}},
        "meshConfig": {"extensionProviders": [{"name": "a\nb"}]},
        "pilot": {"podAnnotations": {"note": "one\ntwo"}},
    });
    let with = render_embedded(&istiod(&values)).unwrap();
    let without = render_embedded(&istiod(&json!({}))).unwrap();
    assert_eq!(with.len(), without.len());
    assert!(with.iter().any(|object| object.to_string().contains("one\\ntwo")));
}

#[test]
fn the_charts_of_the_catalog_stay_in_their_namespaces() {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let renderer = Renderer::for_version(catalog.clone(), "v1.36.4");
    let sets = [
        json!({}),
        json!({"global": {"platform": "openshift", "istioNamespace": "istio-system"}}),
        json!({"profile": "ambient"}),
        json!({"profile": "remote", "global": {"remotePilotAddress": "192.0.2.1"}}),
        json!({"revision": "canary", "revisionTags": ["prod"], "defaultRevision": "canary"}),
    ];
    let mut count = 0;
    for mut release in releases(&catalog) {
        for values in &sets {
            release.values = values.as_object().unwrap().clone();
            let result = renderer.render(&release);
            assert!(
                !matches!(
                    result,
                    Err(RenderError::Confined(_) | RenderError::NotReproducible { .. })
                ),
                "{} {} {values}: {result:?}",
                release.chart,
                release.version
            );
            count += usize::from(result.is_ok_and(|objects| !objects.is_empty()));
        }
    }
    assert!(count > 50, "{count}");
}

/// Renders a chart with this template in place of the chart of istiod.
fn render_chart(template: &str) -> Result<Vec<Value>, RenderError> {
    let directory = tempfile::tempdir().unwrap();
    let chart = directory.path().join("v1.29.1/charts/istiod");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: istiod\nversion: 1.29.1\n",
    )
    .unwrap();
    std::fs::write(chart.join("templates/a.yaml"), template).unwrap();
    let catalog = Catalog::embedded()
        .unwrap()
        .with_directory(mainstay_catalog::Origin::Directory, directory.path())
        .unwrap();
    Renderer::for_version(Arc::new(catalog), "v1.36.4").render(&istiod(&json!({})))
}

const GENERATED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: generated}\ndata: {key: VALUE}\n";

#[test]
fn a_chart_that_generates_values_is_rejected() {
    for value in [
        "{{ randAlphaNum 20 }}",
        "{{ uuidv4 }}",
        "{{ genPrivateKey \"ecdsa\" | b64enc }}",
        "{{ now | date \"2006-01-02\" | quote }}",
    ] {
        let error = render_chart(&GENERATED.replace("VALUE", value)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "chart \"istiod\": ConfigMap generated differs between two renders, because the chart uses random values or the \
             current time; use a chart without them",
            "{value}"
        );
    }
}

#[test]
fn a_chart_may_use_the_current_time_where_it_changes_nothing() {
    let value = "{{ now | date \"2006\" | int | lt 2020 | quote }}";
    let objects = render_chart(&GENERATED.replace("VALUE", value)).unwrap();
    assert_eq!(
        objects[0]["data"]["key"], "true",
        "the clock is the system's, not 1970"
    );
}
