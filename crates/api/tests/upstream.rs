//! Our definitions against the Sail Operator's own: the same schemas but for what is listed here. Needs upstream's files beside the
//! repository (`../shared/data/sail-crds`); without them there is nothing to compare with and the test says so.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "helpers of tests, and files to compare with"
)]

use std::path::Path;

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_yaml::{Budget, to_json};
use serde_json::Value;

/// Every path at which we differ, and how. Versions are the catalogue's matter.
const DIFFERENCES: &[&str] = &[
    "Istio v1 .spec.updateStrategy.revisionTags: only ours",
    "Istio v1 .spec.updateStrategy.workloadMigration: only ours",
    "Istio v1 .status.workloadMigration: only ours",
];

fn ours() -> Vec<Value> {
    definitions(&VersionNames {
        all: &["v"],
        concrete: &["v"],
        ambient: &["v"],
        default: "v",
    })
}

fn theirs(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap();
    let value = mainstay_yaml::parse(&text, &Budget::default()).unwrap();
    serde_json::from_str(&to_json(&value).unwrap()).unwrap()
}

#[test]
fn the_schemas_are_upstreams() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/sail-crds");
    if !folder.is_dir() {
        eprintln!("not compared: {} is not there", folder.display());
        return;
    }
    let mut found = Vec::new();
    for our in ours() {
        let plural = our["spec"]["names"]["plural"].as_str().unwrap();
        let their = theirs(&folder.join(format!("sailoperator.io_{plural}.yaml")));
        compare_definition(&our, &their, &mut found);
    }
    found.sort();
    assert_eq!(found, DIFFERENCES);
}

fn compare_definition(our: &Value, their: &Value, found: &mut Vec<String>) {
    let kind = our["spec"]["names"]["kind"].as_str().unwrap();
    for key in ["names", "scope", "group"] {
        assert_eq!(our["spec"][key], their["spec"][key], "{kind}");
    }
    let list = |definition: &Value| definition["spec"]["versions"].as_array().unwrap().clone();
    assert_eq!(list(our).len(), list(their).len());
    for (our, their) in list(our).iter().zip(&list(their)) {
        for key in ["name", "served", "storage", "deprecated", "subresources"] {
            assert_eq!(our[key], their[key], "{kind} {key}");
        }
        assert_eq!(columns(our), columns(their), "{kind}");
        let at = format!("{kind} {} ", our["name"].as_str().unwrap());
        compare(
            &our["schema"]["openAPIV3Schema"],
            &their["schema"]["openAPIV3Schema"],
            &at,
            found,
        );
    }
}

fn columns(version: &Value) -> Vec<[&Value; 3]> {
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    columns
        .iter()
        .map(|column| [&column["name"], &column["jsonPath"], &column["type"]])
        .collect()
}

fn keys(schema: &Value) -> Vec<String> {
    let keys = schema.as_object().into_iter().flat_map(|map| map.keys().cloned());
    keys.filter(|key| key != "description").collect()
}

/// Two schemas, field by field; descriptions are everybody's own, enumerations are sets.
fn compare(our: &Value, their: &Value, at: &str, found: &mut Vec<String>) {
    let mut all = keys(our);
    all.extend(keys(their));
    all.sort();
    all.dedup();
    for key in all {
        match (key.as_str(), our.get(&key), their.get(&key)) {
            ("properties", Some(our), Some(their)) => properties(our, their, at, found),
            ("items" | "additionalProperties", Some(our), Some(their)) => {
                compare(our, their, &format!("{at}[]"), found);
            }
            // Which versions there are differs; that they are listed is the same.
            ("enum", Some(_), Some(_)) if at.rsplit('.').next() == Some("version") => {}
            ("default", Some(our), Some(their))
                if at
                    .rsplit('.')
                    .next()
                    .is_some_and(|last| last == "version" || last == "spec") =>
            {
                assert_eq!(keys(our), keys(their), "{at}");
            }
            ("enum", Some(our), Some(their)) if sorted(our) == sorted(their) => {}
            (_, our, their) if our == their => {}
            (key, our, their) => found.push(format!("{at} {key}: {our:?} / {their:?}")),
        }
    }
}

fn properties(our: &Value, their: &Value, at: &str, found: &mut Vec<String>) {
    for (name, schema) in our.as_object().unwrap() {
        match their.get(name) {
            Some(theirs) => compare(schema, theirs, &format!("{at}.{name}"), found),
            None => found.push(format!("{at}.{name}: only ours")),
        }
    }
    for name in keys(their).iter().filter(|name| our.get(name.as_str()).is_none()) {
        found.push(format!("{at}.{name}: only theirs"));
    }
}

fn sorted(list: &Value) -> Vec<String> {
    let mut list: Vec<String> = list.as_array().unwrap().iter().map(Value::to_string).collect();
    list.sort();
    list
}
