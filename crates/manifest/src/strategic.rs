//! Strategic merge patches: maps are merged, lists with a merge key are merged item by item, other lists
//! are replaced, and null removes a field.

use mainstay_yaml::{Map, Value};

use crate::limits::{StepLimit, Steps};

/// Paths of lists that are merged, and the keys that identify their items.
const MERGE_KEYS: &[(&str, &str)] = &[
    ("spec.ports", "port"),
    ("spec.template.spec.containers", "name"),
    ("spec.template.spec.containers.env", "name"),
    ("spec.template.spec.containers.ports", "containerPort"),
    ("spec.template.spec.containers.volumeDevices", "devicePath"),
    ("spec.template.spec.containers.volumeMounts", "mountPath"),
    ("spec.template.spec.hostAliases", "ip"),
    ("spec.template.spec.imagePullSecrets", "name"),
    ("spec.template.spec.initContainers", "name"),
    ("spec.template.spec.topologySpreadConstraints", "topologyKey"),
    ("spec.template.spec.volumes", "name"),
];

/// Key of a directive.
const DIRECTIVE: &str = "$patch";

/// Error of applying a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// An item of a merged list has no merge key.
    #[error("an item of {path} has no {key:?}")]
    NoMergeKey { path: String, key: &'static str },
    /// `$patch` has an unknown value.
    #[error("$patch in {path} is neither \"replace\" nor \"delete\"")]
    Directive { path: String },
    #[error(transparent)]
    Steps(#[from] StepLimit),
}

/// Applies `patch` to `object`.
pub(crate) fn apply_patch(object: &mut Map, patch: &Map, steps: &mut Steps) -> Result<(), PatchError> {
    merge_map(object, patch, "", steps)
}

fn merge_map(base: &mut Map, patch: &Map, path: &str, steps: &mut Steps) -> Result<(), PatchError> {
    steps.take(patch.len() + 1)?;
    if let Some(directive) = patch.get(DIRECTIVE) {
        return apply_directive(base, patch, directive, path);
    }
    for (key, value) in patch {
        let below = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match (base.get_mut(key), value) {
            (_, Value::Null) => {
                base.remove(key);
            }
            (Some(Value::Map(old)), Value::Map(new)) => merge_map(old, new, &below, steps)?,
            (Some(Value::List(old)), Value::List(new)) => merge_list(old, new, &below, steps)?,
            (_, value) => {
                base.insert(key.clone(), without_nulls(value));
            }
        }
    }
    Ok(())
}

fn apply_directive(base: &mut Map, patch: &Map, directive: &Value, path: &str) -> Result<(), PatchError> {
    match directive.as_str() {
        Some("replace") => {
            base.clone_from(patch);
            base.remove(DIRECTIVE);
            Ok(())
        }
        Some("delete") => {
            base.clear();
            Ok(())
        }
        _ => Err(PatchError::Directive {
            path: path.to_owned(),
        }),
    }
}

fn merge_list(
    base: &mut Vec<Value>,
    patch: &[Value],
    path: &str,
    steps: &mut Steps,
) -> Result<(), PatchError> {
    let Some((_, key)) = MERGE_KEYS.iter().find(|(known, _)| *known == path) else {
        *base = patch.to_vec();
        return Ok(());
    };
    let order: Vec<Value> = base.iter().map(|item| key_of(item, key)).collect();
    steps.take((order.len() + 1).saturating_mul(patch.len() + 1))?;
    let mut patched = Vec::new();
    for item in patch {
        let id = key_of(item, key);
        if id.is_null() {
            let path = path.to_owned();
            return Err(PatchError::NoMergeKey { path, key });
        }
        let same = base.iter_mut().find(|old| key_of(old, key) == id);
        match (same, item) {
            (Some(Value::Map(old)), Value::Map(new)) => merge_map(old, new, path, steps)?,
            _ => base.push(without_nulls(item)),
        }
        if !patched.contains(&id) {
            patched.push(id);
        }
    }
    *base = sort_items(std::mem::take(base), &order, &patched, key);
    Ok(())
}

fn key_of(item: &Value, key: &str) -> Value {
    item.get(key).cloned().unwrap_or_default()
}

/// Returns the items in Kubernetes' order. Patched items have the order of the patch, other items their
/// original order. An unpatched item precedes a patched one only if it did so originally.
fn sort_items(items: Vec<Value>, order: &[Value], patched: &[Value], key: &str) -> Vec<Value> {
    let position = |list: &[Value], item: &Value| {
        let id = key_of(item, key);
        list.iter().position(|one| *one == id)
    };
    let is_patched = |item: &Value| position(patched, item).is_some();
    let (mut right, left): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_patched);
    right.sort_by_key(|item| position(patched, item));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut out = Vec::new();
    while let (Some(own), Some(new)) = (left.peek(), right.peek()) {
        let is_before = match (position(order, own), position(order, new)) {
            (Some(own), Some(new)) => own < new,
            _ => false,
        };
        out.extend(if is_before { left.next() } else { right.next() });
    }
    out.extend(left);
    out.extend(right);
    out
}

/// Returns the value without null entries and directives.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let kept = map
                .iter()
                .filter(|(key, value)| !value.is_null() && *key != DIRECTIVE);
            Value::Map(
                kept.map(|(key, value)| (key.clone(), without_nulls(value)))
                    .collect(),
            )
        }
        Value::List(items) => Value::List(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, parse_map, to_json};

    use super::*;

    fn check(base: &str, patch: &str, expected: &str) {
        let read = |text: &str| parse_map(text, &Budget::default()).unwrap();
        let mut object = read(base);
        let done = apply_patch(&mut object, &read(patch), &mut Steps::default());
        let found = match done {
            Ok(()) => to_json(&Value::Map(object)).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{patch}");
    }

    #[test]
    fn maps_are_merged_and_null_removes() {
        check(
            "{a: {b: 1, c: 2}}",
            "{a: {b: null, d: 3, e: {f: null}}}",
            r#"{"a":{"c":2,"d":3,"e":{}}}"#,
        );
        check("{a: {b: 1}}", "{a: {$patch: replace, c: 2}}", r#"{"a":{"c":2}}"#);
        check("{a: {b: 1}}", "{a: {$patch: delete}}", r#"{"a":{}}"#);
        check(
            "{a: {b: 1}}",
            "{a: {$patch: x}}",
            "$patch in a is neither \"replace\" nor \"delete\"",
        );
    }

    #[test]
    fn lists_without_a_key_are_replaced() {
        check("{spec: {x: [1, 2]}}", "{spec: {x: [3]}}", r#"{"spec":{"x":[3]}}"#);
    }

    #[test]
    fn items_are_merged_by_key_in_kubernetes_order() {
        check(
            "{spec: {ports: [{port: 1}, {port: 2}, {port: 3}]}}",
            "{spec: {ports: [{port: 9}, {port: 2, name: b}]}}",
            r#"{"spec":{"ports":[{"port":9},{"port":1},{"name":"b","port":2},{"port":3}]}}"#,
        );
        check(
            "{spec: {ports: [{port: 1}]}}",
            "{spec: {ports: [{name: x}]}}",
            "an item of spec.ports has no \"port\"",
        );
    }
}
