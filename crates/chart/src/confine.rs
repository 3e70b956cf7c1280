//! Detects objects that values add to a chart, and objects in other namespaces.
//!
//! A template may print a value without quoting it. A line break in such a value could end its document and
//! add another object. Therefore, a controller renders values with line breaks a second time without the
//! line breaks: an object that is missing from the second render does not belong to the chart.

use std::collections::BTreeMap;

use mainstay_yaml::{Map, Value};

use crate::identity::ObjectIdentity;

/// Characters that end a line in YAML.
const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Kinds and namespaces of objects that Istio's charts install outside the namespaces of their release. The
/// only one is the network of the CNI plugin on `OpenShift`.
const OTHER_NAMESPACES: [(&str, &str); 1] = [("NetworkAttachmentDefinition", "default")];

/// Whether a text has a line break.
#[must_use]
pub fn is_multi_line(text: &str) -> bool {
    text.contains(LINE_BREAKS)
}

/// Whether a string or key in the values has a line break.
#[must_use]
pub fn has_line_break(values: &Map) -> bool {
    let has_break = |text: &String| is_multi_line(text);
    let mut remaining: Vec<&Value> = values.values().collect();
    let mut found = values.keys().any(has_break);
    while let (false, Some(value)) = (found, remaining.pop()) {
        match value {
            Value::String(text) => found = has_break(text),
            Value::List(items) => remaining.extend(items),
            Value::Map(map) => {
                found = map.keys().any(has_break);
                remaining.extend(map.values());
            }
            _ => {}
        }
    }
    found
}

/// A method of removing line breaks from a text.
type Flatten = fn(&str) -> String;

/// Methods of removing line breaks, in the order in which they are tried. There are several, because a
/// template may parse a value, and not every method leaves the value valid.
const LINE_BREAK_REMOVALS: [Flatten; 3] = [
    first_line,
    |text| text.replace(LINE_BREAKS, " "),
    |text| text.replace(LINE_BREAKS, ""),
];

/// Returns the first line that contains more than white space.
fn first_line(text: &str) -> String {
    let mut lines = text.split(LINE_BREAKS);
    let line = lines.find(|line| !line.trim().is_empty());
    line.unwrap_or_default().to_owned()
}

/// Returns the values without line breaks, once for each method of removing them. The first of them that
/// renders is the reference for [`find_added`].
pub fn without_line_breaks(values: &Map) -> impl Iterator<Item = Map> {
    LINE_BREAK_REMOVALS
        .iter()
        .map(|flatten| flatten_map(values, *flatten))
}

/// Recursion is safe, because the parsers and the API server limit the depth of values.
fn flatten_map(map: &Map, flatten: Flatten) -> Map {
    map.iter()
        .map(|(key, value)| (flatten_text(key, flatten), flatten_value(value, flatten)))
        .collect()
}

fn flatten_value(value: &Value, flatten: Flatten) -> Value {
    match value {
        Value::String(text) => Value::String(flatten_text(text, flatten)),
        Value::List(items) => Value::List(items.iter().map(|item| flatten_value(item, flatten)).collect()),
        Value::Map(map) => Value::Map(flatten_map(map, flatten)),
        other => other.clone(),
    }
}

fn flatten_text(text: &str, flatten: Flatten) -> String {
    if is_multi_line(text) {
        flatten(text)
    } else {
        text.to_owned()
    }
}

/// Returns the first object that `reference` does not contain, or contains less often than `objects`.
#[must_use]
pub fn find_added(
    objects: impl IntoIterator<Item = ObjectIdentity>,
    reference: impl IntoIterator<Item = ObjectIdentity>,
) -> Option<ObjectIdentity> {
    let mut remaining: BTreeMap<ObjectIdentity, usize> = BTreeMap::new();
    for object in reference {
        *remaining.entry(object).or_default() += 1;
    }
    objects
        .into_iter()
        .find(|object| match remaining.get_mut(object) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
}

/// Whether an object is in a namespace that its release does not use.
#[must_use]
pub fn is_outside(object: &ObjectIdentity, namespaces: &[&str]) -> bool {
    let namespace = object.namespace.as_str();
    !namespace.is_empty()
        && !namespaces.contains(&namespace)
        && !OTHER_NAMESPACES.contains(&(object.kind.as_str(), namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Map {
        Map::from([(
            "a".into(),
            Value::List(vec![Value::Map(Map::from([("b".into(), text.into())]))]),
        )])
    }

    #[test]
    fn every_line_break_of_yaml_is_found_and_removed() {
        for character in LINE_BREAKS {
            let values = values(&format!("one{character}two"));
            assert!(has_line_break(&values), "{character:?}");
            let flattened: Vec<Map> = without_line_breaks(&values).collect();
            assert_eq!(flattened.len(), 3);
            assert!(!flattened.iter().any(has_line_break), "{flattened:?}");
        }
        assert!(
            has_line_break(&Map::from([("a\nb".into(), Value::Null)])),
            "a key"
        );
        assert!(!has_line_break(&values("one two")));
    }

    fn identity(kind: &str, namespace: &str, name: &str) -> ObjectIdentity {
        ObjectIdentity {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_second_object_with_the_identity_of_another_one_is_added() {
        let (a, b) = (identity("Service", "n", "a"), identity("Service", "n", "b"));
        let found = |objects: [&ObjectIdentity; 2], reference: &[ObjectIdentity]| {
            find_added(objects.map(Clone::clone), reference.to_vec())
        };
        assert_eq!(found([&a, &b], &[b.clone(), a.clone()]), None);
        assert_eq!(found([&a, &a], &[b.clone(), a.clone()]), Some(a.clone()));
        assert_eq!(found([&a, &b], std::slice::from_ref(&a)), Some(b));
    }

    #[test]
    fn only_the_network_of_the_cni_plugin_is_in_the_default_namespace() {
        let check = |kind: &str, namespace: &str| is_outside(&identity(kind, namespace, "x"), &["own"]);
        assert!(!check("Deployment", "own") && !check("ClusterRole", ""));
        assert!(check("Deployment", "default") && check("NetworkAttachmentDefinition", "other"));
        assert!(!check("NetworkAttachmentDefinition", "default"));
    }
}
