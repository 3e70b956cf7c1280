//! Findings about values that are deprecated, removed or unknown in the new chart.

use mainstay_api::crd::{VersionNames, definitions};
use mainstay_api::names;
use mainstay_catalog::{Flavour, Version};
use serde_json::{Map, Value};

use super::{Class, finding};
use crate::compose::Rehearsal;
use crate::report::{Finding, FindingKind};

/// Maximum depth at which values are compared.
const MAX_DEPTH: usize = 32;
/// Key of the defaults in the values of a chart.
const DEFAULTS: &str = "_internal_defaults_do_not_set";

const WARNING: Class = Class::warning(FindingKind::Values);
const ERROR: Class = Class::error(FindingKind::Values);

pub(super) fn add_findings(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let Some(values) = &rehearsal.planned.target.spec.values else {
        return;
    };
    let mut paths = Vec::new();
    collect_paths(values, &mut Vec::new(), MAX_DEPTH, &mut paths);
    let subject = format!("Istio {}", rehearsal.planned.istio.name());
    let mut report = |class, what: String, remedy: String| {
        found.push(finding(class, subject.clone(), what, remedy));
    };
    let to = rehearsal.version.name();
    for (path, replacement) in pairs_in_notes(rehearsal, "$deps") {
        if is_set(values, &path) {
            let remedy = format!("use {replacement}");
            report(
                WARNING,
                format!("spec.values.{path} is deprecated in {to}"),
                remedy,
            );
        }
    }
    for (path, _) in pairs_in_notes(rehearsal, "$failDeps") {
        if is_set(values, &path) {
            report(
                ERROR,
                format!("spec.values.{path} is removed in {to}"),
                "remove it".into(),
            );
        }
    }
    let schema = values_schema(rehearsal);
    let old = rehearsal
        .catalog
        .resolve(&rehearsal.planned.istio.spec.version)
        .ok();
    let old = old.map(|old| chart_defaults(rehearsal, &old)).unwrap_or_default();
    let new = chart_defaults(rehearsal, rehearsal.version);
    for path in paths {
        let shown = path.join(".");
        if schema
            .as_ref()
            .is_some_and(|schema| !schema_contains(schema, &path))
        {
            let what = format!("unknown field spec.values.{shown}: the API server drops it");
            report(WARNING, what, "remove it or correct its name".into());
        } else if has_default(&old, &path) && !has_default(&new, &path) {
            let what = format!("spec.values.{shown} no longer exists in the chart of {to}");
            report(WARNING, what, "check the release notes".into());
        }
    }
}

/// Collects the paths of all values that are not maps. Values below `depth` are not visited.
fn collect_paths<'a>(
    map: &'a Map<String, Value>,
    path: &mut Vec<&'a str>,
    depth: usize,
    found: &mut Vec<Vec<&'a str>>,
) {
    for (key, value) in map {
        path.push(key);
        match value {
            Value::Object(inner) if !inner.is_empty() && depth > 0 => {
                collect_paths(inner, path, depth - 1, found);
            }
            _ => found.push(path.clone()),
        }
        path.pop();
    }
}

fn is_set(values: &Map<String, Value>, path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    let found = mainstay_api::values::at(values, &parts);
    found.is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}

/// Returns the pairs in a variable of a chart's notes. The notes list deprecations for users of Helm.
fn pairs_in_notes(rehearsal: &Rehearsal<'_>, list: &str) -> Vec<(String, String)> {
    let files = rehearsal
        .catalog
        .chart(rehearsal.version, Flavour::Operator, names::ISTIOD_CHART);
    let notes = files
        .ok()
        .and_then(|files| files.get("templates/NOTES.txt").cloned());
    let notes = notes
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    parse_pairs(&notes, list)
}

fn parse_pairs(notes: &str, list: &str) -> Vec<(String, String)> {
    let head = format!("{list} := dict");
    let lines = notes.lines().skip_while(|line| !line.contains(&head)).skip(1);
    let lines = lines.take_while(|line| !line.contains("}}"));
    let pair = |line: &str| {
        let mut quoted = line.split('"').skip(1).step_by(2);
        Some((
            quoted.next()?.to_owned(),
            quoted.next().unwrap_or_default().to_owned(),
        ))
    };
    lines.filter_map(pair).collect()
}

fn chart_defaults(rehearsal: &Rehearsal<'_>, version: &Version) -> Value {
    let files = rehearsal
        .catalog
        .chart(version, Flavour::Operator, names::ISTIOD_CHART);
    let text = files.ok().and_then(|files| files.get("values.yaml").cloned());
    let parsed = text.and_then(|text| {
        let text = String::from_utf8_lossy(&text).into_owned();
        mainstay_sim::snapshot::parse(&text).ok()?.into_iter().next()
    });
    let parsed = parsed.unwrap_or_default();
    parsed.get(DEFAULTS).cloned().unwrap_or(parsed)
}

/// Whether a chart has a default at a path. Empty maps and the mesh configuration may contain any key.
fn has_default(defaults: &Value, path: &[&str]) -> bool {
    let own = path.strip_prefix(&["pilot"]).unwrap_or(path);
    [path, own].iter().any(|path| {
        let mut at = defaults;
        for key in *path {
            match at {
                Value::Object(map) if map.is_empty() || *key == "meshConfig" => return true,
                Value::Object(map) => match map.get(*key) {
                    Some(inner) => at = inner,
                    None => return false,
                },
                _ => return true,
            }
        }
        true
    })
}

fn values_schema(rehearsal: &Rehearsal<'_>) -> Option<Value> {
    let name = rehearsal.version.name();
    let one = [name.as_str()];
    let all = definitions(&VersionNames {
        all: &one,
        concrete: &one,
        ambient: &one,
        default: &name,
    });
    let istio = all
        .into_iter()
        .find(|definition| definition.pointer("/spec/names/kind") == Some(&Value::from("Istio")))?;
    let schema = istio.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/values");
    schema.cloned()
}

/// Whether a schema contains a path. Open objects contain every path.
fn schema_contains(schema: &Value, path: &[&str]) -> bool {
    let mut at = schema;
    for key in path {
        let open = at.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
            || at.get("additionalProperties").is_some();
        match at.get("properties").and_then(|properties| properties.get(*key)) {
            Some(inner) => at = inner,
            None => return open || at.get("properties").is_none(),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_are_parsed_from_chart_notes() {
        let notes = "x\n{{-\n  $deps := dict\n    \"a.b\" \"c\"\n    \"d\"\n}}\n  $failDeps := dict\n    \"e\" \"f\"\n}}\n";
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect()
        };
        assert_eq!(parse_pairs(notes, "$deps"), own(&[("a.b", "c"), ("d", "")]));
        assert_eq!(parse_pairs(notes, "$failDeps"), own(&[("e", "f")]));
        assert_eq!(parse_pairs(notes, "$other"), own(&[]));
    }

    #[test]
    fn charts_have_their_defaults_and_anything_below_empty_maps() {
        let defaults = json!({"env": {}, "cni": {"enabled": false}, "global": {"proxy": {"image": "x"}}});
        for (path, expected) in [
            (&["pilot", "env", "X"][..], true),
            (&["pilot", "cni", "enabled"], true),
            (&["pilot", "cni", "gone"], false),
            (&["global", "proxy", "image"], true),
            (&["global", "proxy", "gone"], false),
            (&["meshConfig", "anything"], true),
        ] {
            assert_eq!(has_default(&defaults, path), expected, "{path:?}");
        }
    }

    #[test]
    fn a_schema_contains_its_properties_and_open_objects() {
        let schema = json!({"properties": {"global": {"properties": {"hub": {"type": "string"}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true}}});
        for (path, expected) in [
            (&["global", "hub"][..], true),
            (&["global", "hup"], false),
            (&["free", "anything", "at", "all"], true),
            (&["other"], false),
        ] {
            assert_eq!(schema_contains(&schema, path), expected, "{path:?}");
        }
    }
}
