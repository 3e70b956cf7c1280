//! Derives the values of each component's chart from the values shared by all components.

use mainstay_yaml::{Map, Value};

use crate::component::Instance;
use crate::merge::{map_at, put, value_at};
use crate::source::with_floats;
use crate::translate::{Translated, Translator, text_value};

/// Input of rendering a component's chart.
#[derive(Clone, Debug)]
pub(crate) struct ChartInput {
    pub(crate) instance: Instance,
    pub(crate) values: Map,
}

/// Returns the chart input of an instance.
pub(crate) fn chart_input(
    instance: Instance,
    translated: &Translated,
    translator: &Translator,
) -> ChartInput {
    let mut values = with_floats(map_at(&translated.operator, &["spec", "values"]));
    let root = instance.component.values_root;
    if instance.component.is_gateway {
        set_gateway_values(&instance, &mut values);
    }
    for key in ["hub", "tag"] {
        match instance.block.get(key) {
            Some(value) if !value.is_null() && value.as_str() != Some("") => {
                put(&mut values, &child_keys(root, key), text_value(value.clone()));
            }
            _ => {}
        }
    }
    for row in translator.settings {
        copy_setting(&instance, row.setting, row.value, &mut values);
    }
    if instance.component.flattens_values {
        values = flatten_values(values, root);
    }
    ChartInput { instance, values }
}

fn child_keys<'a>(root: &[&'a str], key: &'a str) -> Vec<&'a str> {
    let mut keys = root.to_vec();
    keys.push(key);
    keys
}

fn set_gateway_values(instance: &Instance, values: &mut Map) {
    let root = instance.component.values_root;
    let label = map_at(&instance.block, &["label"]);
    put(
        values,
        &child_keys(root, "name"),
        instance.gateway.as_str().into(),
    );
    put(values, &child_keys(root, "labels"), Value::Map(label));
    let ports = value_at(&instance.block, &["k8s", "service", "ports"]).and_then(Value::as_list);
    if let Some(ports) = ports.filter(|ports| !ports.is_empty()) {
        let ports = ports.iter().cloned().map(with_target_port).collect();
        put(values, &child_keys(root, "ports"), Value::List(ports));
    }
}

/// Adds the target port 0 if a port has none: templates require a target port, and Kubernetes treats 0 as
/// unset.
fn with_target_port(mut port: Value) -> Value {
    if let Some(port) = port.as_map_mut() {
        port.entry("targetPort".into()).or_insert(Value::Float(0.0));
    }
    port
}

fn copy_setting(instance: &Instance, setting: &[&str], value: &[&str], values: &mut Map) {
    let mut keys = vec!["k8s"];
    keys.extend(setting);
    let Some(found) = value_at(&instance.block, &keys).filter(|found| !found.is_null()) else {
        return;
    };
    let mut target = instance.component.values_root.to_vec();
    target.extend(value);
    put(values, &target, found.clone());
}

/// Moves the subtree at `root` to the top level. The result contains `global`, all values that are not
/// maps, and the subtree.
fn flatten_values(values: Map, root: &[&str]) -> Map {
    let Some(own) = value_at(&values, root).and_then(Value::as_map).cloned() else {
        return values;
    };
    let global = values.get("global").cloned().unwrap_or_default();
    let mut out = Map::from([("global".to_owned(), global)]);
    out.extend(values.into_iter().filter(|(_, value)| value.as_map().is_none()));
    out.extend(own);
    out
}
