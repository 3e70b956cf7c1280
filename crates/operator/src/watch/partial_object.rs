//! Partial decoding of namespaces and pods. Decodes only the metadata, labels and annotations that the
//! planner uses. Everything else, especially `managedFields`, is skipped.

use std::fmt;

use mainstay_api::names::{INJECT_LABEL, INJECTION_LABEL, POD_TEMPLATE_HASH, REVISION_LABEL, SKIP_MIGRATION};
use mainstay_mesh::Observation;
use mainstay_mesh::references::Labels;
use mainstay_mesh::workload::{PodController, WorkloadKey};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Item;

/// A namespace or a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PartialObject {
    /// Metadata of the object.
    pub(crate) metadata: Metadata,
}

/// Decoded part of the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "known_keys")]
    pub(crate) labels: Labels,
    #[serde(deserialize_with = "known_keys")]
    pub(crate) annotations: Labels,
    #[serde(rename = "deletionTimestamp", deserialize_with = "is_present")]
    pub(crate) is_deleting: bool,
    owner_references: Vec<Owner>,
}

/// An owner reference. Only that of the controller is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    controller: bool,
}

impl Metadata {
    /// Returns the workload to which a pod belongs, or `None` if it has no controller that is a workload.
    pub(crate) fn workload(&self) -> Option<WorkloadKey> {
        let owner = self.owner_references.iter().find(|owner| owner.controller)?;
        let controller = PodController {
            kind: &owner.kind,
            name: &owner.name,
        };
        WorkloadKey::for_pod(&self.namespace, controller, &self.labels)
    }
}

impl PartialObject {
    /// Converts a namespace to its observation.
    pub(crate) fn into_observation(self) -> Observation {
        let metadata = self.metadata;
        Observation::Namespace {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            labels: metadata.labels,
            annotations: metadata.annotations,
            terminating: metadata.is_deleting,
        }
    }
}

impl Item for PartialObject {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

/// Labels and annotations that are decoded.
const KNOWN_KEYS: [&str; 5] = [
    REVISION_LABEL,
    INJECTION_LABEL,
    INJECT_LABEL,
    POD_TEMPLATE_HASH,
    SKIP_MIGRATION,
];

/// A map key; `None` if it is not one of [`KNOWN_KEYS`].
struct Key(Option<&'static str>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E>(self, text: &str) -> Result<Key, E> {
                Ok(Key(KNOWN_KEYS.into_iter().find(|key| *key == text)))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Decodes the known keys of a map. Decodes `null` as an empty map.
fn known_keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    struct MapVisitor;
    impl<'de> Visitor<'de> for MapVisitor {
        type Value = Labels;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }
        fn visit_unit<E>(self) -> Result<Labels, E> {
            Ok(Labels::new())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
            let mut kept = Labels::new();
            while let Some(Key(key)) = map.next_key()? {
                match key {
                    Some(key) => {
                        kept.insert(key.to_owned(), map.next_value()?);
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(kept)
        }
    }
    deserializer.deserialize_any(MapVisitor)
}

fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let object: PartialObject = serde_json::from_str(json).unwrap();
        let Metadata {
            name,
            namespace,
            resource_version,
            labels,
            annotations,
            is_deleting,
            ..
        } = object.metadata;
        assert_eq!(
            format!("{namespace}/{name} {resource_version} {labels:?} {annotations:?} {is_deleting}"),
            expected
        );
    }

    #[test]
    fn only_known_keys_are_kept() {
        check(
            r#"{"kind": "PartialObjectMetadata", "metadata": {"name": "p", "namespace": "n", "resourceVersion": "7",
                "labels": {"app": "x", "istio.io/rev": "r"}, "annotations": {"istio.io/rev": "s", "b": "c"},
                "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {}}}], "deletionTimestamp": "2026-11-15T00:00:00Z"}}"#,
            r#"n/p 7 {"istio.io/rev": "r"} {"istio.io/rev": "s"} true"#,
        );
        check(
            r#"{"metadata": {"name": "n", "labels": null, "deletionTimestamp": null}}"#,
            "/n  {} {} false",
        );
        check("{}", "/  {} {} false");
    }
}
