//! Renders the charts that the tests install.

use mainstay_catalog::{Catalog, Flavour};
use mainstay_chart::{
    Dialect, File, Loaded, Release, RenderEnvironment, RenderOptions, Request, load_files, load_path,
    load_values, template,
};
use mainstay_template::NoHost;
use mainstay_testkit::repository_root;
use mainstay_yaml::{Budget, Map, parse, to_json};
use serde_json::Value;

/// Objects that one chart of one version installs.
pub(crate) struct RenderedChart {
    pub(crate) label: String,
    pub(crate) objects: Vec<Value>,
}

/// Renders our own chart with the release name `mainstay`.
pub(crate) fn operator_chart(namespace: &str, values: &str) -> Vec<Value> {
    let loaded = load_path(&repository_root().join("deploy/chart"), Dialect::Helm4).unwrap();
    let values = load_values(values.as_bytes(), Dialect::Helm4).unwrap();
    render(&loaded, "mainstay", namespace, values)
}

/// Renders every chart that the operator installs, in every version, with values that produce as many
/// roles as possible.
pub(crate) fn releases() -> Vec<RenderedChart> {
    let catalog = Catalog::embedded().unwrap();
    let mut out = Vec::new();
    for version in catalog.installable() {
        for (chart, namespace) in [
            ("base", "istio-system"),
            ("istiod", "istio-system"),
            ("revisiontags", "istio-system"),
            ("cni", "istio-cni"),
            ("ztunnel", "ztunnel"),
        ] {
            let files = catalog.chart(&version.version, Flavour::Operator, chart).unwrap();
            let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
            let loaded = load_files(files, Dialect::Helm4).unwrap();
            for set in value_sets() {
                let mut objects = render(&loaded, chart, namespace, set);
                // The test clusters do not serve this kind.
                objects.retain(|object| object["kind"] != "NetworkAttachmentDefinition");
                out.push(RenderedChart {
                    label: format!("{chart} {}", version.version),
                    objects,
                });
            }
        }
    }
    out
}

/// Returns empty values, and the value sets with which the generator of RBAC rules covers every branch of
/// the charts.
fn value_sets() -> Vec<Map> {
    let directory = repository_root().join("xtask/src/codegen/values");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path| load_values(&std::fs::read(path).unwrap(), Dialect::Helm4).unwrap();
    [Map::new()].into_iter().chain(files.iter().map(read)).collect()
}

fn render(loaded: &Loaded, name: &str, namespace: &str, values: Map) -> Vec<Value> {
    let mut request = Request::new(Dialect::Helm4);
    request.values = values;
    request.render = RenderOptions {
        release: Release {
            name: name.into(),
            namespace: namespace.into(),
            revision: 1,
            is_upgrade: false,
        },
        ..RenderOptions::new(Dialect::Helm4)
    };
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    let text = template(loaded, &request, environment).unwrap().text;
    documents(&String::from_utf8(text).unwrap())
}

/// Parses the objects of a multi-document YAML text.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let parsed = text.split("\n---").map(|document| {
        let value = parse(document.trim_start_matches("---").as_bytes(), &Budget::default()).unwrap();
        serde_json::from_str::<Value>(&to_json(&value).unwrap()).unwrap()
    });
    parsed.filter(|object| object.get("kind").is_some()).collect()
}
