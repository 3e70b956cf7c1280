//! Tests the round trip of `IstioOperator` files: the written resources are installed as the operator
//! does, the values of gateways as Helm does, and the objects differ from those of the file in exactly
//! the fields that the migration reports.
//!
//! The files are the inputs that are compared with istioctl, and the samples in the pinned Istio module.

#[path = "../../../manifest/tests/support/mod.rs"]
mod cases;
#[path = "round_trip/fields.rs"]
mod fields;
#[path = "round_trip/operator.rs"]
mod operator;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use mainstay_adopt::{GatewayValues, Migration, parse_objects, to_resources};
use mainstay_catalog::{Catalog, Flavour};
use mainstay_cluster::definitions::istio_definitions;
use mainstay_manifest::{CatalogPackage, ComponentName, Rendered, generate};
use mainstay_testkit::{CaseCounts, peer};
use serde_json::Value;

use cases::{Case, VERSION};
use fields::{Changes, changes, describe, fields_of};
use operator::Operator;

/// Samples in the Istio module that contain an `IstioOperator`.
const SAMPLES: [&str; 3] = [
    "istio-operator-sample-bookinfo",
    "istio-operator-sample-loki",
    "istio-operator-sample-spire",
];

/// The definitions that `mainstay crds install` installs.
static DEFINITIONS: OnceLock<Vec<Value>> = OnceLock::new();

/// Minimum number of files.
const LEAST: usize = 70;

fn files() -> Vec<Case> {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifest/tests/inputs");
    let inputs = std::fs::read_dir(inputs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_yaml = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "yaml");
    let samples = SAMPLES.iter().map(|name| peer(name).unwrap());
    let mut paths: Vec<_> = inputs.filter(is_yaml).chain(samples).collect();
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

fn check(case: &Case, catalog: &Arc<Catalog>) -> Result<(), String> {
    let version = VERSION.parse().unwrap();
    let package = CatalogPackage::new(catalog, VERSION.parse().unwrap());
    let rendered = generate(&case.request(&package)).map_err(|error| error.to_string())?;
    let texts = [case.text.clone()];
    let migration = to_resources(&rendered, catalog, &version, &texts).map_err(|error| error.to_string())?;
    check_report(&rendered, &migration, catalog)
}

/// Checks that the objects before and after a migration differ in exactly the reported fields.
pub(super) fn check_report(
    rendered: &Rendered,
    migration: &Migration,
    catalog: &Arc<Catalog>,
) -> Result<(), String> {
    let before = objects(rendered);
    let mut after = Operator::new(catalog).install(migration);
    let gateways = migration.gateways.iter();
    after.extend(gateways.flat_map(|gateway| gateway_objects(gateway, catalog)));
    if before
        .iter()
        .any(|object| object["kind"] == "CustomResourceDefinition")
    {
        let definitions = || istio_definitions(catalog, &VERSION.parse().unwrap()).unwrap();
        after.extend(DEFINITIONS.get_or_init(definitions).iter().cloned());
    }
    let found = changes(&fields_of(&before), &fields_of(&after));
    let reported = reported_changes(migration);
    if found == reported {
        return Ok(());
    }
    Err(format!(
        "not reported:\n{}reported, but equal:\n{}",
        describe(&fields::without(&found, &reported)),
        describe(&fields::without(&reported, &found)),
    ))
}

/// Returns the objects of all components except add-ons, which a migration only names.
fn objects(rendered: &Rendered) -> Vec<Value> {
    let components = rendered.components.iter();
    let compared = components.filter(|one| one.component != ComponentName::Addons);
    let objects = compared.flat_map(|one| &one.objects);
    objects.map(|object| Value::from(object.0.clone())).collect()
}

/// Returns the objects that Helm renders for a gateway.
fn gateway_objects(gateway: &GatewayValues, catalog: &Catalog) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let files = catalog.chart(&VERSION.parse().unwrap(), Flavour::Installer, "gateway");
    for (name, data) in files.unwrap() {
        let file = directory.path().join("gateway").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, data).unwrap();
    }
    let values = mainstay_cluster::deploy::document(&Value::Object(gateway.values.clone())).unwrap();
    std::fs::write(directory.path().join("values.yaml"), values).unwrap();
    let mut helm = Command::new(peer("helm4").unwrap());
    helm.current_dir(directory.path());
    helm.args(["template", &gateway.release, "gateway", "-f", "values.yaml"]);
    helm.args(["--namespace", &gateway.namespace]);
    let output = helm.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", gateway.release);
    parse_objects(&String::from_utf8_lossy(&output.stdout)).unwrap()
}

fn reported_changes(migration: &Migration) -> Changes {
    let reported = migration.differences.iter();
    reported
        .flat_map(|one| {
            let side = |value: Option<&Value>| fields::below(&one.object, &one.field, value);
            changes(&side(one.live.as_ref()), &side(one.desired.as_ref()))
        })
        .collect()
}

#[test]
fn files_render_the_same_objects_as_resources_except_for_reported_differences() {
    let catalog = Arc::new(Catalog::embedded().unwrap());
    let (queue, counts) = (Mutex::new(files()), Mutex::new(CaseCounts::default()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some(case) = next else { break };
                    let outcome = check(&case, &catalog);
                    let mut counts = counts.lock().unwrap();
                    counts.count(outcome.is_ok(), || {
                        format!("{}: {}", case.name, outcome.unwrap_err())
                    });
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    println!("round trip of IstioOperator files: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
    assert!(counts.run >= LEAST, "only {} files", counts.run);
}
