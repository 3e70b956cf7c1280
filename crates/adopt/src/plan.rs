//! Plans an adoption: resources, ownership of objects, and what differs. Pure.

use std::collections::BTreeMap;

use mainstay_api::Values;
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::compare::Difference;
use mainstay_cluster::desired::{Desired, ObjectId};
use serde_json::{Map, Value};

use crate::derive::{Derivation, without_defaults};
use crate::differences::{FieldDifference, describe, object_name};
use crate::found::{Component, ComponentKind};
use crate::ownership::{Owned, adopt};

/// Live objects by identity; `None` if an object does not exist.
pub type LiveObjects = BTreeMap<ObjectId, Option<Value>>;

/// The adoption of one component.
#[derive(Clone, Debug)]
pub struct ComponentPlan {
    /// The component.
    pub component: Component,
    /// Its resources.
    pub derivation: Derivation,
    /// Its releases with their objects.
    pub releases: Vec<Desired>,
    /// Objects that get an owner.
    pub objects: Vec<Owned>,
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
            self.describe_all(&wanted.id, &differences, (&owned.object, &wanted.body));
            self.objects.push(owned);
        }
    }

    fn describe_all(&mut self, id: &ObjectId, differences: &[Difference], (live, wanted): (&Value, &Value)) {
        let kind = self.component.kind;
        let described = differences
            .iter()
            .map(|one| describe(kind, id, one, (Some(live), wanted)));
        self.differences.extend(described);
    }

    /// Differences with an effect on the mesh.
    pub fn effective(&self) -> impl Iterator<Item = &FieldDifference> {
        self.differences.iter().filter(|one| one.harmless.is_none())
    }

    /// Whether every object is live and equal.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.effective().next().is_none()
    }
}

/// Returns values with the live values of the differing fields, or `None` if no value sets any of them.
#[must_use]
pub(crate) fn with_live_values(values: &Values, differences: &[FieldDifference]) -> Option<Values> {
    let mut values = values.clone();
    let mut is_changed = false;
    for difference in differences {
        let (Some(path), Some(live)) = (&difference.set, settable(difference)) else {
            continue;
        };
        let keys: Vec<&str> = path.split('.').collect();
        put(&mut values, &keys, live);
        is_changed = true;
    }
    is_changed.then_some(values)
}

/// Mesh configuration is text in its object; environment variables are entries of a list.
fn settable(difference: &FieldDifference) -> Option<Value> {
    let live = difference.live.clone()?;
    match (difference.set.as_deref()?, &live) {
        ("meshConfig", Value::String(text)) => crate::text::document(text.as_bytes()).ok(),
        (path, Value::Object(entry)) if path.starts_with("pilot.env.") => entry.get("value").cloned(),
        _ => Some(live),
    }
}

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

/// Removes the chart's defaults from the derived values.
pub(crate) fn minimal(derivation: &Derivation, kind: ComponentKind, defaults: &Values) -> Derivation {
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

/// Defaults of a chart.
pub(crate) fn defaults(catalog: &Catalog, version: &Version, flavour: Flavour, chart: &str) -> Values {
    let files = catalog.chart(version, flavour, chart).ok();
    let values = files.and_then(|files| crate::text::document(files.get("values.yaml")?).ok());
    let defaults = values.and_then(|values| values.get("_internal_defaults_do_not_set").cloned());
    defaults
        .and_then(|defaults| defaults.as_object().cloned())
        .unwrap_or_default()
}
