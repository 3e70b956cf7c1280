//! Representations of objects in a response: whole objects, metadata only, or a table.

use serde_json::{Value, json};

use crate::convert;
use crate::object::Object;
use crate::resource::Resource;
use crate::tree;

/// Representation that a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// Whole objects.
    #[default]
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `Table`.
    Table,
}

impl Representation {
    /// Returns the first supported representation in an `Accept` header, or `None` if the response is 406 Not
    /// Acceptable.
    #[must_use]
    pub fn accepted(accept: &str) -> Option<Self> {
        if accept.is_empty() {
            return Some(Self::Whole);
        }
        accept.split(',').find_map(parse_clause)
    }
}

fn parse_clause(clause: &str) -> Option<Representation> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next()?;
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| {
        parameters
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    };
    if !matches!(media, "application/json" | "application/*" | "*/*") {
        return None;
    }
    match (parameter("as"), parameter("g"), parameter("v")) {
        (None, ..) => Some(Representation::Whole),
        (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Representation::Table),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => {
            Some(Representation::Metadata)
        }
        _ => None,
    }
}

/// Appends an object in the resource's version.
pub(crate) fn write_whole(resource: &Resource, object: &Object, out: &mut Vec<u8>) {
    if convert::is_as_stored(resource) {
        object.write_json(out);
    } else {
        let _ = serde_json::to_writer(out, &convert::from_stored(resource, object.value()));
    }
}

/// Returns an object in the resource's version, usually the stored bytes unchanged.
pub(crate) fn whole(resource: &Resource, object: &Object) -> bytes::Bytes {
    if convert::is_as_stored(resource) {
        return object.json();
    }
    let mut out = Vec::new();
    write_whole(resource, object, &mut out);
    out.into()
}

/// Returns the object with its metadata only.
pub(crate) fn partial(object: &Object) -> Value {
    let mut value = object.value();
    let metadata = value.get_mut("metadata").map(Value::take).unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// Returns the metadata of a list.
pub(crate) fn list_meta(version: u64, token: &str, remaining: Option<u64>) -> Value {
    let mut meta = json!({"resourceVersion": version.to_string()});
    if !token.is_empty() {
        tree::set(&mut meta, &["continue"], token);
        if let Some(remaining) = remaining {
            tree::set(&mut meta, &["remainingItemCount"], remaining);
        }
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_supported_representation_is_selected() {
        let check = |accept: &str, expected: Option<Representation>| {
            assert_eq!(Representation::accepted(accept), expected, "{accept}");
        };
        check("", Some(Representation::Whole));
        check("application/json", Some(Representation::Whole));
        check(
            "application/vnd.kubernetes.protobuf, application/json",
            Some(Representation::Whole),
        );
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some(Representation::Table),
        );
        check(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Some(Representation::Metadata),
        );
        check(
            "application/json;as=Other;g=meta.k8s.io;v=v1, */*",
            Some(Representation::Whole),
        );
        check("text/html", None);
    }
}
