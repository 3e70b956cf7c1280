//! Disables the components of disabled features, and reports those that the user enables.

use mainstay_yaml::{Map, Value};

use super::{ADDONS, FEATURES, Feature, GATEWAYS, REMOVED, bool_at, spec_path};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::{put, value_at};
use crate::path::Path;

/// The features that a configuration disables.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisabledFeatures(Vec<&'static Feature>);

/// A field that contains a component, or a list of gateways.
struct Place {
    /// Keys below `spec`.
    keys: Vec<&'static str>,
    kind: PlaceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    /// A component that may be enabled without being mentioned.
    Component,
    /// A list of gateways, the first of which may be enabled without being mentioned.
    Gateways,
    /// A map that has an effect only if it is mentioned.
    Optional,
}

impl DisabledFeatures {
    /// Returns the features that a `spec` disables.
    pub(super) fn from_spec(spec: &Map) -> Self {
        let is_disabled = |feature: &&Feature| bool_at(spec, &[feature.key, "enabled"]) == Some(false);
        Self(FEATURES.iter().filter(is_disabled).collect())
    }

    /// Reports every component of the features that `spec` enables.
    pub(super) fn report(&self, spec: &Map, found: &mut Diagnostics) {
        for feature in &self.0 {
            let places = [feature_places(feature), component_places(feature)];
            for path in places.iter().flatten().flat_map(|place| place.enabled_at(spec)) {
                let message = format!("is enabled, but its feature {:?} is disabled", feature.key);
                let hint = format!("set spec.{}.enabled to true, or remove this", feature.key);
                found.push(Diagnostic::error(path, message).hint(hint));
            }
        }
    }

    /// Disables all components of the features.
    pub(crate) fn disable_components(&self, operator: &mut Map) {
        for place in self.0.iter().flat_map(|feature| component_places(feature)) {
            place.disable(operator);
        }
    }
}

impl Place {
    fn new(kind: PlaceKind, keys: &[&'static str]) -> Self {
        Self {
            keys: keys.to_vec(),
            kind,
        }
    }

    /// Returns the paths of all switches at this place that are on.
    fn enabled_at(&self, spec: &Map) -> Vec<Path> {
        let path = spec_path(&self.keys);
        let paths = match value_at(spec, &self.keys) {
            Some(Value::List(items)) => items
                .iter()
                .enumerate()
                .filter(|(_, item)| is_enabled(item))
                .map(|(index, item)| item_path(&path, index, item))
                .collect(),
            Some(value) if is_enabled(value) => vec![path],
            _ => Vec::new(),
        };
        paths.iter().map(|path| path.key("enabled")).collect()
    }

    fn disable(&self, operator: &mut Map) {
        let mut keys = vec!["spec"];
        keys.extend(&self.keys);
        let found = value_at(operator, &keys).cloned().unwrap_or_default();
        match (self.kind, found) {
            (PlaceKind::Gateways, Value::List(mut items)) => {
                for gateway in items.iter_mut().filter_map(Value::as_map_mut) {
                    gateway.insert("enabled".into(), false.into());
                }
                put(operator, &keys, Value::List(items));
            }
            (PlaceKind::Gateways, _) => put(operator, &keys, Value::List(Vec::new())),
            (PlaceKind::Optional, found) if !is_enabled(&found) => {}
            (PlaceKind::Component | PlaceKind::Optional, _) => {
                keys.push("enabled");
                put(operator, &keys, false.into());
            }
        }
    }
}

fn is_enabled(block: &Value) -> bool {
    block.get("enabled").and_then(Value::as_bool) == Some(true)
}

fn item_path(list: &Path, index: usize, item: &Value) -> Path {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => list.named("name", name),
        None => list.index(index),
    }
}

/// Returns the components that still exist.
fn components(feature: &'static Feature) -> impl Iterator<Item = &'static str> {
    let names = feature.components.iter().copied();
    names.filter(|name| REMOVED.iter().all(|(removed, _)| removed != name))
}

/// Returns the places of the components in the block of the feature.
fn feature_places(feature: &'static Feature) -> Vec<Place> {
    let place = |name| Place::new(PlaceKind::Optional, &[feature.key, "components", name]);
    components(feature).map(place).collect()
}

/// Returns the places of the components outside of the block of the feature.
fn component_places(feature: &'static Feature) -> Vec<Place> {
    components(feature).flat_map(component_fields).collect()
}

fn component_fields(name: &'static str) -> Vec<Place> {
    if ADDONS.contains(&name) {
        return vec![Place::new(PlaceKind::Optional, &["addonComponents", name])];
    }
    let Some(&(single, list, gateway)) = GATEWAYS.iter().find(|row| name == row.0 || name == row.1) else {
        return vec![Place::new(PlaceKind::Component, &["components", name])];
    };
    if name == single {
        // The block of the feature contains it; it is translated to an item of the list.
        return Vec::new();
    }
    vec![
        Place::new(PlaceKind::Gateways, &["components", list]),
        // Values enable gateways, too.
        Place::new(PlaceKind::Optional, &["values", "gateways", gateway]),
        Place::new(PlaceKind::Optional, &["unvalidatedValues", "gateways", gateway]),
    ]
}
