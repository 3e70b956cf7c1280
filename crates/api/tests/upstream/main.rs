//! Compares our definitions with the Sail Operator's. They must be equal except for the differences listed
//! here.
//!
//! `definitions.txt` contains the facts about upstream's definitions. `cargo xtask codegen --upstream DIR`
//! writes it.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use mainstay_api::crd::table::{Facts, facts, read_table};
use mainstay_api::crd::{VersionNames, definitions};
use serde_json::Value;

const UPSTREAM: &str = include_str!("definitions.txt");

/// All paths at which our definitions differ. Names of versions are not compared, because they are defined
/// by the catalog.
const DIFFERENCES: &[&str] = &[
    "Istio.v1.schema.spec.updateStrategy.revisionTags: only ours",
    "Istio.v1.schema.spec.updateStrategy.workloadMigration: only ours",
    "Istio.v1.schema.status.workloadMigration: only ours",
];

fn ours() -> Facts {
    facts(&definitions(&VersionNames {
        all: &["v"],
        concrete: &["v"],
        ambient: &["v"],
        default: "v",
    }))
}

#[test]
fn definitions_equal_upstreams_except_for_the_listed_differences() {
    let theirs = read_table(UPSTREAM).unwrap();
    assert!(theirs.len() > 4000, "{} facts", theirs.len());
    assert_eq!(differences(&ours(), &theirs), DIFFERENCES);
}

#[test]
fn each_kind_of_difference_is_found() {
    let ours = ours();
    let check = |path: &str, fact: Option<&str>, expected: &str| {
        let mut theirs = ours.clone();
        match fact {
            Some(fact) => drop(theirs.insert(path.to_owned(), serde_json::from_str(fact).unwrap())),
            None => drop(theirs.remove(path)),
        }
        assert_eq!(differences(&ours, &theirs), [expected]);
    };
    let namespace = "Istio.v1.schema.spec.namespace";
    check(namespace, None, "Istio.v1.schema.spec.namespace: only ours");
    check("Istio.v2", Some("{}"), "Istio.v2: only theirs");
    let ours_is = format!("ours {}", ours.get(namespace).unwrap());
    check(
        namespace,
        Some("{}"),
        &format!("{namespace}: {ours_is}, theirs {{}}"),
    );
}

fn differences(ours: &Facts, theirs: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        match (ours.get(path), theirs.get(path)) {
            (Some(our), Some(their)) => found.extend(difference(path, our, their)),
            (Some(_), None) if has_parent(theirs, path) => found.push(format!("{path}: only ours")),
            (None, Some(_)) if has_parent(ours, path) => found.push(format!("{path}: only theirs")),
            // An ancestor of the path was already reported.
            _ => {}
        }
    }
    found
}

fn has_parent(facts: &Facts, path: &str) -> bool {
    path.rsplit_once('.')
        .is_none_or(|(parent, _)| facts.contains_key(parent))
}

fn difference(path: &str, our: &Value, their: &Value) -> Option<String> {
    let is_equal = comparable(path, our) == comparable(path, their);
    (!is_equal).then(|| format!("{path}: ours {our}, theirs {their}"))
}

/// Returns a fact without names of versions, and with enumerations as sets.
fn comparable(path: &str, fact: &Value) -> Value {
    let mut fact = fact.clone();
    let name = path.rsplit('.').next().unwrap_or_default();
    if let Some(list) = fact.get_mut("enum").and_then(Value::as_array_mut) {
        list.sort_by_key(ToString::to_string);
        if name == "version" {
            list.clear();
        }
    }
    if let Some(default) = fact.get_mut("default").filter(|_| name == "version") {
        *default = Value::Null;
    }
    if let Some(version) = fact.pointer_mut("/default/version").filter(|_| name == "spec") {
        *version = Value::Null;
    }
    fact
}
