//! Derives the values of each component's chart from the values that all components share.

use mainstay_yaml::{Map, Value};

use crate::component::Instance;
use crate::merge::{map_at, put, value_at};
use crate::source::with_floats;
use crate::translate::{Translated, Translator, text_value};

/// What a component's chart is rendered with.
#[derive(Clone, Debug)]
pub(crate) struct ChartInput {
    pub(crate) instance: Instance,
    pub(crate) values: Map,
}

/// Returns the values of one instance.
pub(crate) fn chart_input(
    instance: Instance,
    translated: &Translated,
    translator: &Translator,
) -> ChartInput {
    let mut values = with_floats(map_at(&translated.operator, &["spec", "values"]));
    let root = instance.component.values_root;
    if instance.component.is_gateway {
        gateway_values(&instance, &mut values);
    }
    for key in ["hub", "tag"] {
        match instance.block.get(key) {
            Some(value) if !value.is_null() && value.as_str() != Some("") => {
                put(&mut values, &below(root, key), text_value(value.clone()));
            }
            _ => {}
        }
    }
    for row in translator.settings {
        setting_value(&instance, row.setting, row.value, &mut values);
    }
    if instance.component.flattens_values {
        values = flattened(values, root);
    }
    ChartInput { instance, values }
}

fn below<'a>(root: &[&'a str], key: &'a str) -> Vec<&'a str> {
    let mut keys = root.to_vec();
    keys.push(key);
    keys
}

fn gateway_values(instance: &Instance, values: &mut Map) {
    let root = instance.component.values_root;
    let label = map_at(&instance.block, &["label"]);
    put(values, &below(root, "name"), instance.gateway.as_str().into());
    put(values, &below(root, "labels"), Value::Map(label));
    let ports = value_at(&instance.block, &["k8s", "service", "ports"]).and_then(Value::as_list);
    if let Some(ports) = ports.filter(|ports| !ports.is_empty()) {
        let ports = ports.iter().cloned().map(service_port).collect();
        put(values, &below(root, "ports"), Value::List(ports));
    }
}

/// Templates expect a target port; Kubernetes reads 0 as unset.
fn service_port(mut port: Value) -> Value {
    if let Some(port) = port.as_map_mut() {
        port.entry("targetPort".into()).or_insert(Value::Float(0.0));
    }
    port
}

fn setting_value(instance: &Instance, setting: &[&str], value: &[&str], values: &mut Map) {
    let mut keys = vec!["k8s"];
    keys.extend(setting);
    let Some(found) = value_at(&instance.block, &keys).filter(|found| !found.is_null()) else {
        return;
    };
    let mut target = instance.component.values_root.to_vec();
    target.extend(value);
    put(values, &target, found.clone());
}

/// Lifts the subtree at `root` to the top: `global`, every value that is not a map, then the subtree.
fn flattened(values: Map, root: &[&str]) -> Map {
    let Some(own) = value_at(&values, root).and_then(Value::as_map).cloned() else {
        return values;
    };
    let global = values.get("global").cloned().unwrap_or_default();
    let mut out = Map::from([("global".to_owned(), global)]);
    out.extend(values.into_iter().filter(|(_, value)| value.as_map().is_none()));
    out.extend(own);
    out
}
