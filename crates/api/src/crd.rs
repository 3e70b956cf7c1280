//! Generates the `CustomResourceDefinition`s of our kinds.
//!
//! The schemas are written as facts (`crd/*.txt`): ours by hand, those of chart values by `cargo xtask
//! codegen` from the definitions in the pinned modules.

mod delivery;
mod facts;
mod istio_operator;
mod kinds;
pub mod table;

use serde_json::{Value, json};

use facts::Facts;
use kinds::{Column, Group, KINDS, Kind, MESH, Served};

/// Our types, and those of chart values.
const TEXTS: [&str; 2] = [include_str!("crd/sail.txt"), include_str!("crd/upstream.txt")];

/// Names of versions that the API accepts, in the order of the enumerations.
#[derive(Clone, Copy, Debug)]
pub struct VersionNames<'a> {
    /// Versions and aliases, including those at end of life.
    pub all: &'a [&'a str],
    /// Versions without aliases.
    pub concrete: &'a [&'a str],
    /// Versions and aliases that support ambient mode.
    pub ambient: &'a [&'a str],
    /// Default version.
    pub default: &'a str,
}

/// Returns the definitions of the mesh's kinds, sorted by name.
#[must_use]
pub fn definitions(versions: &VersionNames<'_>) -> Vec<Value> {
    let lists = [
        format!("VERSION = {}\n", versions.all.join("|")),
        format!("CONCRETE = {}\n", versions.concrete.join("|")),
        format!("AMBIENT_VERSION = {}\n", versions.ambient.join("|")),
    ];
    let own = TEXTS[0].replace("DEFAULT_VERSION", &format!("{:?}", versions.default));
    let texts: Vec<&str> = lists
        .iter()
        .map(String::as_str)
        .chain([own.as_str(), TEXTS[1]])
        .collect();
    let facts = Facts::parse(&texts);
    KINDS.iter().map(|kind| definition(&MESH, kind, &facts)).collect()
}

/// Returns the definitions of the kinds of `delivery.mainstay.dev`, sorted by name.
#[must_use]
pub fn delivery_definitions() -> Vec<Value> {
    let facts = Facts::parse(&[delivery::TEXT]);
    delivery::KINDS
        .iter()
        .map(|kind| definition(&delivery::GROUP, kind, &facts))
        .collect()
}

/// Returns the definition of `IstioOperator`.
#[must_use]
pub fn istio_operator_definition() -> Value {
    let facts = Facts::parse(&[istio_operator::TEXT]);
    let mut definition = definition(&istio_operator::GROUP, &istio_operator::KIND, &facts);
    if let Some(names) = definition.pointer_mut("/spec/names") {
        set(names, "shortNames", json!(istio_operator::SHORT_NAMES));
    }
    definition
}

fn definition(group: &Group, kind: &Kind, facts: &Facts<'_>) -> Value {
    let plural = kind.plural();
    let mut names = json!({
        "categories": [group.category],
        "kind": kind.name,
        "listKind": format!("{}List", kind.name),
        "plural": plural,
        "singular": kind.singular(),
    });
    if let Some(short) = kind.short {
        set(&mut names, "shortNames", json!([short]));
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", group.name)},
        "spec": {
            "group": group.name,
            "names": names,
            "scope": group.scope,
            "versions": kind.versions.iter().map(|version| served(group, version, kind, facts)).collect::<Vec<_>>(),
        },
    })
}

fn served(group: &Group, version: &Served, kind: &Kind, facts: &Facts<'_>) -> Value {
    let columns: Vec<Value> = version.columns.iter().map(Column::to_json).collect();
    let mut out = json!({
        "name": version.name,
        "served": true,
        "storage": version.is_stored,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": object(version, kind, facts)},
    });
    if group.requires_spec {
        require_spec(&mut out);
    }
    if !version.is_stored {
        set(&mut out, "deprecated", json!(true));
    }
    out
}

fn object(version: &Served, kind: &Kind, facts: &Facts<'_>) -> Value {
    let mut spec = facts.schema(version.spec);
    set(&mut spec, "description", json!("Desired state."));
    if version.has_default {
        let default = default_of(&spec);
        set(&mut spec, "default", default);
    }
    let mut status = facts.schema(version.status);
    set(&mut status, "description", json!("Observed state."));
    let mut out = json!({
        "description": kind.description,
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    });
    if let Some((message, rule)) = kind.rule {
        set(
            &mut out,
            "x-kubernetes-validations",
            json!([{"message": message, "rule": rule}]),
        );
    }
    out
}

fn require_spec(version: &mut Value) {
    if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
        set(schema, "required", json!(["spec"]));
    }
}

/// Sets one key of an object.
fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

/// Returns the default of a spec: an object with the defaults of its fields.
fn default_of(spec: &Value) -> Value {
    let properties = spec.get("properties").and_then(Value::as_object);
    let defaults = properties.into_iter().flatten().filter_map(|(name, field)| {
        let default = field.get("default")?;
        Some((name.clone(), default.clone()))
    });
    Value::Object(defaults.collect())
}

#[cfg(test)]
mod tests;
