//! Confines releases to the objects and namespaces of their chart.
//!
//! A template may print a value without quoting it. A line break in such a value could end its document and
//! add another object, which the operator would create with its own permissions. Therefore, values with
//! line breaks are rendered a second time without the line breaks: an object that is missing from the
//! second render does not belong to the chart.

use std::collections::BTreeMap;

use mainstay_api::{Values, names};
use mainstay_mesh::plan::Release;
use serde_json::Value;

use crate::object::string_at;

/// Characters that end a line in YAML.
const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Kinds and namespaces of objects that charts install outside the namespaces of their release. The only
/// one is the network of the CNI plugin on `OpenShift`.
const OTHER_NAMESPACES: [(&str, &str); 1] = [("NetworkAttachmentDefinition", "default")];

/// Error for a release with an object that it must not contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfineError {
    /// A value adds an object.
    #[error(
        "{object} is not part of chart {chart:?}: a value with a line break adds it; remove the line break from spec.values"
    )]
    Object {
        /// Name of the chart.
        chart: &'static str,
        /// Kind, namespace and name of the object.
        object: String,
    },
    /// The chart cannot be rendered without the line breaks in its values.
    #[error(
        "cannot tell which objects of chart {chart:?} come from values with line breaks; remove the line breaks from spec.values"
    )]
    Unverified {
        /// Name of the chart.
        chart: &'static str,
    },
    /// An object is in a namespace that the chart does not use.
    #[error("{object} is outside the namespace {namespace:?} of the release of chart {chart:?}")]
    Namespace {
        /// Name of the chart.
        chart: &'static str,
        /// Kind, namespace and name of the object.
        object: String,
        /// Namespace of the release.
        namespace: String,
    },
}

/// Checks that every object is in a namespace that the chart uses.
pub(super) fn check_namespaces(release: &Release, objects: &[Value]) -> Result<(), ConfineError> {
    let allowed = release_namespaces(release);
    let is_outside = |object: &&Value| {
        let (kind, namespace) = (
            string_at(object, "/kind"),
            string_at(object, "/metadata/namespace"),
        );
        !namespace.is_empty()
            && !allowed.contains(&namespace)
            && !OTHER_NAMESPACES.contains(&(kind, namespace))
    };
    match objects.iter().find(is_outside) {
        None => Ok(()),
        Some(object) => Err(ConfineError::Namespace {
            chart: release.chart,
            object: describe_object(object),
            namespace: release.key.namespace.clone(),
        }),
    }
}

/// Returns the namespaces of a release: its own namespace, and for the charts of a revision also that of
/// the control plane. Revisions are validated, so that both are the namespace in their spec.
fn release_namespaces(release: &Release) -> Vec<&str> {
    let own = release.key.namespace.as_str();
    let global = release
        .values
        .get("global")
        .and_then(|global| global.get("istioNamespace"));
    let is_revision = !matches!(release.chart, names::CNI_CHART | names::ZTUNNEL_CHART);
    let control_plane = global.and_then(Value::as_str).filter(|_| is_revision);
    [own].into_iter().chain(control_plane).collect()
}

/// Checks that `reference` contains every object, and contains it at least as often as `objects`.
pub(super) fn check_objects(
    release: &Release,
    objects: &[Value],
    reference: &[Value],
) -> Result<(), ConfineError> {
    let mut remaining: BTreeMap<String, usize> = BTreeMap::new();
    for object in reference {
        *remaining.entry(object_identity(object)).or_default() += 1;
    }
    for object in objects {
        match remaining.get_mut(&object_identity(object)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                return Err(ConfineError::Object {
                    chart: release.chart,
                    object: describe_object(object),
                });
            }
        }
    }
    Ok(())
}

/// Whether a string or key in the values has a line break.
pub(super) fn has_line_break(values: &Values) -> bool {
    let has_break = |text: &String| text.contains(LINE_BREAKS);
    let mut remaining: Vec<&Value> = values.values().collect();
    let mut found = values.keys().any(has_break);
    while let (false, Some(value)) = (found, remaining.pop()) {
        match value {
            Value::String(text) => found = has_break(text),
            Value::Array(items) => remaining.extend(items),
            Value::Object(map) => {
                found = map.keys().any(has_break);
                remaining.extend(map.values());
            }
            _ => {}
        }
    }
    found
}

/// A method of removing line breaks from a text.
pub(super) type Flatten = fn(&str) -> String;

/// Methods of removing line breaks, in the order in which they are tried. There are several, because a
/// template may parse a value, and not every method leaves the value valid.
pub(super) const LINE_BREAK_REMOVALS: [Flatten; 3] = [
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

/// Returns the values without line breaks. Recursion is safe, because the API server limits the depth of
/// values.
pub(super) fn flatten_map(map: &Values, flatten: Flatten) -> Values {
    map.iter()
        .map(|(key, value)| (flatten_text(key, flatten), flatten_value(value, flatten)))
        .collect()
}

fn flatten_value(value: &Value, flatten: Flatten) -> Value {
    match value {
        Value::String(text) => flatten_text(text, flatten).into(),
        Value::Array(items) => items.iter().map(|item| flatten_value(item, flatten)).collect(),
        Value::Object(map) => Value::Object(flatten_map(map, flatten)),
        other => other.clone(),
    }
}

fn flatten_text(text: &str, flatten: Flatten) -> String {
    if text.contains(LINE_BREAKS) {
        flatten(text)
    } else {
        text.to_owned()
    }
}

fn object_identity(object: &Value) -> String {
    format!("{} {}", string_at(object, "/apiVersion"), describe_object(object))
}

/// Returns kind, namespace and name of an object, for example `Deployment kube-system/x`.
pub(super) fn describe_object(object: &Value) -> String {
    let (kind, name) = (string_at(object, "/kind"), string_at(object, "/metadata/name"));
    match string_at(object, "/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}
