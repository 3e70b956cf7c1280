//! Namespaces and pods as far as they matter: takes JSON, gives a name and the few labels and annotations that mean something to
//! the mesh. All else, `managedFields` above all, is skipped while it is read and never held.

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
pub(crate) struct Light {
    /// Who it is.
    pub(crate) metadata: Metadata,
}

/// What matters of its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "few")]
    pub(crate) labels: Labels,
    #[serde(deserialize_with = "few")]
    pub(crate) annotations: Labels,
    #[serde(rename = "deletionTimestamp", deserialize_with = "is_there")]
    pub(crate) is_deleting: bool,
    owner_references: Vec<Owner>,
}

/// An owner; only the one that controls matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    controller: bool,
}

impl Metadata {
    /// The workload a pod belongs to.
    pub(crate) fn workload(&self) -> Option<WorkloadKey> {
        let owner = self.owner_references.iter().find(|owner| owner.controller)?;
        let controller = PodController {
            kind: &owner.kind,
            name: &owner.name,
        };
        WorkloadKey::for_pod(&self.namespace, controller, &self.labels)
    }
}

impl Light {
    /// As a namespace.
    pub(crate) fn namespace(self) -> Observation {
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

impl Item for Light {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

/// The labels and annotations that mean something.
const WORDS: [&str; 5] = [
    REVISION_LABEL,
    INJECTION_LABEL,
    INJECT_LABEL,
    POD_TEMPLATE_HASH,
    SKIP_MIGRATION,
];

/// A key: one of the words, or none of them.
struct Key(Option<&'static str>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E>(self, text: &str) -> Result<Key, E> {
                Ok(Key(WORDS.into_iter().find(|word| *word == text)))
            }
        }
        deserializer.deserialize_str(Word)
    }
}

/// A map of which only our words are kept; `null` is an empty one.
fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = Labels;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }
        fn visit_unit<E>(self) -> Result<Labels, E> {
            Ok(Labels::new())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
            let mut kept = Labels::new();
            while let Some(Key(word)) = map.next_key()? {
                match word {
                    Some(word) => {
                        kept.insert(word.to_owned(), map.next_value()?);
                    }
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(kept)
        }
    }
    deserializer.deserialize_any(Few)
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(deserializer)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let light: Light = serde_json::from_str(json).unwrap();
        let Metadata {
            name,
            namespace,
            resource_version,
            labels,
            annotations,
            is_deleting,
            ..
        } = light.metadata;
        assert_eq!(
            format!("{namespace}/{name} {resource_version} {labels:?} {annotations:?} {is_deleting}"),
            expected
        );
    }

    #[test]
    fn only_what_matters_is_kept() {
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
