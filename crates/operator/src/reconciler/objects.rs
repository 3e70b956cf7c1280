//! Our own objects, from watches and write responses: keeps the newest version of each. An object that cannot
//! be decoded is an error for that object only.

use std::collections::BTreeSet;

use mainstay_api::{Kind, ObjectKind, ObjectMeta};
use mainstay_mesh::snapshot::Objects;
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;

/// An object that cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name:?} cannot be read", kind = .kind.name())]
pub struct DecodeError {
    /// The object's kind.
    pub kind: ObjectKind,
    /// The object's name.
    pub name: String,
    /// The decoder's error.
    #[source]
    pub source: serde_json::Error,
}

impl Reconciler {
    /// Records one of our objects, unless a newer version is known.
    pub fn observe_object(&mut self, kind: ObjectKind, object: Value) -> Result<(), DecodeError> {
        let name = text(&object, "/metadata/name").to_owned();
        let subject = Subject::Object(kind, name.clone());
        let version = version(text(&object, "/metadata/resourceVersion"));
        if self
            .newest(&subject)
            .is_some_and(|known| version.is_some_and(|seen| seen <= known))
        {
            return Ok(());
        }
        let changed = self
            .metadata(&subject)
            .is_some_and(|known| is_changed(known, &object));
        let uid = text(&object, "/metadata/uid").to_owned();
        let observation = decode(kind, object).map_err(|source| DecodeError { kind, name, source })?;
        self.tombstones.remove(&subject);
        self.live.add_owner(&uid);
        if changed {
            self.note_change(&subject);
        }
        self.observe(observation);
        Ok(())
    }

    /// Records that one of our objects was deleted; `last` is its last version.
    pub fn remove_object(&mut self, kind: ObjectKind, last: &Value) {
        let subject = Subject::Object(kind, text(last, "/metadata/name").to_owned());
        let version = version(text(last, "/metadata/resourceVersion"));
        if self.known_version(&subject) <= version {
            self.record_deletion(subject, version);
        }
    }

    /// Returns the known version of one of our objects.
    #[must_use]
    pub fn known_version_of(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.known_version(&Subject::Object(kind, name.to_owned()))
    }

    /// Returns the version up to which one of our objects counts as deleted.
    #[must_use]
    pub fn tombstone(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.tombstones
            .get(&Subject::Object(kind, name.to_owned()))
            .copied()
    }

    /// Records one of our objects that was read again. A tombstone that is the same as before the read is
    /// outdated.
    pub fn confirm_object(
        &mut self,
        kind: ObjectKind,
        object: Value,
        tombstone: Option<u64>,
    ) -> Result<(), DecodeError> {
        let name = text(&object, "/metadata/name");
        if self.tombstone(kind, name) == tombstone {
            self.tombstones.remove(&Subject::Object(kind, name.to_owned()));
        }
        self.observe_object(kind, object)
    }

    /// Records that one of our objects was read again and does not exist, unless a version newer than
    /// `before` is known.
    pub fn confirm_missing(&mut self, kind: ObjectKind, name: &str, before: Option<u64>) {
        let subject = Subject::Object(kind, name.to_owned());
        if self.metadata(&subject).is_some() && self.known_version(&subject) == before {
            self.record_deletion(subject, before);
        }
    }

    /// Begins a list of all objects of a kind: tombstones are dropped, because an earlier list may have
    /// lacked an object.
    pub fn begin_list(&mut self, kind: ObjectKind) {
        self.tombstones
            .retain(|subject, _| !matches!(subject, Subject::Object(deleted, _) if *deleted == kind));
    }

    /// Ends a list of all objects of a kind: objects that are not in `names` were deleted at version `at`.
    pub fn finish_list(&mut self, kind: ObjectKind, names: &BTreeSet<String>, at: &str) {
        let at = version(at);
        for name in self.names(kind) {
            let subject = Subject::Object(kind, name);
            // An object written after the list was made is not in it.
            let is_newer = at.is_some() && self.known_version(&subject) > at;
            if !names.contains(subject.name()) && !is_newer {
                self.record_deletion(subject, at);
            }
        }
    }

    fn record_deletion(&mut self, subject: Subject, version: Option<u64>) {
        let last = self.known_version(&subject).max(version);
        self.forget_subject(&subject);
        if let Some(uid) = self.metadata(&subject).map(|metadata| metadata.uid.clone()) {
            self.forget_releases(&uid);
            self.live.remove_owner(&uid);
        }
        self.tombstones.extend(last.map(|last| (subject.clone(), last)));
        self.observe(Observation::Gone(subject));
    }

    /// Returns the newest known version of a subject, deleted or not.
    fn newest(&self, subject: &Subject) -> Option<u64> {
        self.known_version(subject)
            .max(self.tombstones.get(subject).copied())
    }

    fn known_version(&self, subject: &Subject) -> Option<u64> {
        version(&self.metadata(subject)?.resource_version)
    }

    fn metadata(&self, subject: &Subject) -> Option<&ObjectMeta> {
        fn get<'a, S: Kind>(objects: &'a Objects<S>, name: &str) -> Option<&'a ObjectMeta> {
            objects.get(name).map(|object| &object.metadata)
        }
        let Subject::Object(kind, name) = subject else {
            return None;
        };
        match kind {
            ObjectKind::Istio => get(self.snapshot.istios(), name),
            ObjectKind::IstioRevision => get(self.snapshot.revisions(), name),
            ObjectKind::IstioRevisionTag => get(self.snapshot.tags(), name),
            ObjectKind::IstioCni => get(self.snapshot.cnis(), name),
            ObjectKind::ZTunnel => get(self.snapshot.ztunnels(), name),
        }
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        fn names<S: Kind>(objects: &Objects<S>) -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        }
        match kind {
            ObjectKind::Istio => names(self.snapshot.istios()),
            ObjectKind::IstioRevision => names(self.snapshot.revisions()),
            ObjectKind::IstioRevisionTag => names(self.snapshot.tags()),
            ObjectKind::IstioCni => names(self.snapshot.cnis()),
            ObjectKind::ZTunnel => names(self.snapshot.ztunnels()),
        }
    }
}

fn decode(kind: ObjectKind, object: Value) -> Result<Observation, serde_json::Error> {
    Ok(match kind {
        ObjectKind::Istio => Observation::Istio(serde_json::from_value(object)?),
        ObjectKind::IstioRevision => Observation::Revision(serde_json::from_value(object)?),
        ObjectKind::IstioRevisionTag => Observation::Tag(serde_json::from_value(object)?),
        ObjectKind::IstioCni => Observation::Cni(serde_json::from_value(object)?),
        ObjectKind::ZTunnel => Observation::ZTunnel(serde_json::from_value(object)?),
    })
}

/// Whether a user or another controller changed an object: its spec, labels, annotations or deletion, but not
/// its status.
fn is_changed(known: &ObjectMeta, object: &Value) -> bool {
    let Ok(metadata) =
        serde_json::from_value::<ObjectMeta>(object.get("metadata").cloned().unwrap_or_default())
    else {
        return true;
    };
    known.uid != metadata.uid
        || known.generation != metadata.generation
        || known.deletion_timestamp != metadata.deletion_timestamp
        || known.labels != metadata.labels
        || known.annotations != metadata.annotations
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Parses a resourceVersion. They increase on every known server, and Kubernetes guarantees it since 1.35.
pub(super) fn version(text: &str) -> Option<u64> {
    text.parse().ok()
}
