//! Plans the adoption of a component: resources, ownership changes and differences. Pure.

use std::collections::BTreeMap;

use mainstay_api::Values;
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::desired::{Desired, ObjectId};
use serde_json::{Map, Value};

use crate::derive::{Derivation, without_defaults};
use crate::differences::{FieldDifference, ObjectPair, describe, object_name};
use crate::found::{Component, ComponentKind};
use crate::ownership::{OwnershipChange, adopt};

/// Live objects by identity; `None` if an object does not exist.
pub type LiveObjects = BTreeMap<ObjectId, Option<Value>>;

/// Plan of the adoption of one component.
#[derive(Clone, Debug)]
pub struct ComponentPlan {
    /// Component to adopt.
    pub component: Component,
    /// Custom resources of the component.
    pub derivation: Derivation,
    /// Releases of the resources, with their objects.
    pub releases: Vec<Desired>,
    /// Live objects that get an owner.
    pub objects: Vec<OwnershipChange>,
    /// Objects that the operator will create.
    pub missing: Vec<String>,
    /// Fields that the operator will change.
    pub differences: Vec<FieldDifference>,
}

impl ComponentPlan {
    /// Compares the objects of a component with the live ones.
    #[must_use]
    pub fn new(
        component: Component,
        derivation: Derivation,
        releases: Vec<Desired>,
        live: &LiveObjects,
    ) -> Self {
        let mut plan = Self {
            component,
            derivation,
            objects: Vec::new(),
            missing: Vec::new(),
            differences: Vec::new(),
            releases: Vec::new(),
        };
        for desired in &releases {
            plan.compare(desired, live);
        }
        plan.releases = releases;
        plan
    }

    fn compare(&mut self, desired: &Desired, live: &LiveObjects) {
        for wanted in &desired.objects {
            let Some(Some(live)) = live.get(&wanted.id) else {
                self.missing.push(object_name(&wanted.id));
                continue;
            };
            let owned = adopt(&wanted.id, live, &wanted.body);
            let differences = desired.differences(&wanted.id, &owned.object);
            let pair = ObjectPair {
                live: &owned.object,
                desired: &wanted.body,
            };
            let kind = self.component.kind;
            let described = differences
                .iter()
                .map(|one| describe(kind, &wanted.id, one, pair));
            self.differences.extend(described);
            self.objects.push(owned);
        }
    }

    /// Returns the differences that have an effect on the mesh.
    pub fn effective(&self) -> impl Iterator<Item = &FieldDifference> {
        self.differences.iter().filter(|one| one.harmless.is_none())
    }

    /// Whether no difference has an effect on the mesh.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.effective().next().is_none()
    }
}

/// Returns the values extended by the live values of fields that differ, or `None` if no value sets any
/// of these fields.
#[must_use]
pub(crate) fn with_live_values(values: &Values, differences: &[FieldDifference]) -> Option<Values> {
    let mut values = values.clone();
    let mut is_changed = false;
    for difference in differences {
        let (Some(path), Some(live)) = (&difference.set, live_chart_value(difference)) else {
            continue;
        };
        put(&mut values, &value_keys(path), live);
        is_changed = true;
    }
    is_changed.then_some(values)
}

/// Values whose keys may contain dots, such as names of annotations.
const MAPS_OF_NAMES: [&str; 5] = [
    "podAnnotations",
    "podLabels",
    "nodeSelector",
    "serviceAnnotations",
    "annotations",
];

/// Returns the keys of the path of a value.
fn value_keys(path: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut rest = path;
    while let Some((key, after)) = rest.split_once('.') {
        keys.push(key);
        rest = after;
        if MAPS_OF_NAMES.contains(&key) {
            break;
        }
    }
    keys.push(rest);
    keys
}

/// Returns the live value of a difference in the form of its chart value: mesh configuration is text in
/// its object, and environment variables are entries of a list.
fn live_chart_value(difference: &FieldDifference) -> Option<Value> {
    let live = difference.live.clone()?;
    match (difference.set.as_deref()?, &live) {
        ("meshConfig", Value::String(text)) => crate::text::parse_document(text.as_bytes()).ok(),
        (path, Value::Object(entry)) if path.starts_with("pilot.env.") => entry.get("value").cloned(),
        _ => Some(live),
    }
}

/// Sets the value at a path of keys.
pub(crate) fn put(values: &mut Map<String, Value>, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [last] => {
            values.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = values.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Returns the derivation without values that equal the chart's defaults.
pub(crate) fn without_chart_defaults(
    derivation: &Derivation,
    kind: ComponentKind,
    defaults: &Values,
) -> Derivation {
    let mut minimal = derivation.clone();
    let root = match kind {
        ComponentKind::Istiod => "pilot",
        ComponentKind::Cni => "cni",
        ComponentKind::Ztunnel | ComponentKind::Gateway => "ztunnel",
    };
    let values = minimal.derived.values_mut();
    let mut shaped = defaults.clone();
    let own = shaped.remove(root).and_then(|own| own.as_object().cloned());
    let mut top = defaults.clone();
    if let Some(own) = own {
        crate::derive::merge(&mut top, own);
    }
    shaped.insert(root.to_owned(), Value::Object(top));
    without_defaults(values, &shaped);
    minimal
}

/// Returns the default values of a chart.
pub(crate) fn defaults(catalog: &Catalog, version: &Version, flavour: Flavour, chart: &str) -> Values {
    let files = catalog.chart(version, flavour, chart).ok();
    let values = files.and_then(|files| crate::text::parse_document(files.get("values.yaml")?).ok());
    let defaults = values.and_then(|values| values.get("_internal_defaults_do_not_set").cloned());
    defaults
        .and_then(|defaults| defaults.as_object().cloned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::value_keys;

    #[test]
    fn names_in_paths_of_values_may_contain_dots() {
        let check = |path: &str, expected: &[&str]| assert_eq!(value_keys(path), expected);
        check("pilot.resources.limits", &["pilot", "resources", "limits"]);
        check(
            "ztunnel.podAnnotations.example.com/note",
            &["ztunnel", "podAnnotations", "example.com/note"],
        );
        check("ztunnel.podAnnotations", &["ztunnel", "podAnnotations"]);
        check("meshConfig", &["meshConfig"]);
    }
}
