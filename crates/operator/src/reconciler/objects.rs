//! Observes objects of Mainstay's kinds from watches and write responses. Stores the newest version of each
//! object. An object that cannot be decoded does not affect other objects.

use std::collections::BTreeSet;

use mainstay_api::{Kind, ObjectKind, ObjectMeta};
use mainstay_cluster::live::parse_version;
use mainstay_mesh::snapshot::Objects;
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;
use crate::object::string_at;

/// Error of decoding an object.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name:?} cannot be read", kind = .kind.name())]
pub struct DecodeError {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Name of the object.
    pub name: String,
    /// Error of the decoder.
    #[source]
    pub source: serde_json::Error,
}

impl Reconciler {
    /// Records an object, unless this version or a newer one is known.
    pub fn observe_object(&mut self, kind: ObjectKind, object: Value) -> Result<(), DecodeError> {
        let name = string_at(&object, "/metadata/name").to_owned();
        let subject = Subject::Object(kind, name.clone());
        let version = parse_version(string_at(&object, "/metadata/resourceVersion"));
        if self
            .newest_version(&subject)
            .is_some_and(|known| version.is_some_and(|seen| seen <= known))
        {
            return Ok(());
        }
        let changed = self
            .metadata(&subject)
            .is_some_and(|known| is_changed(known, &object));
        let uid = string_at(&object, "/metadata/uid").to_owned();
        let observation = decode(kind, object).map_err(|source| DecodeError { kind, name, source })?;
        self.tombstones.remove(&subject);
        self.live.add_owner(&uid);
        if changed {
            self.record_change(&subject);
        }
        self.observe(observation);
        Ok(())
    }

    /// Records the deletion of an object, unless a newer version is known. `last` is its last version.
    pub fn remove_object(&mut self, kind: ObjectKind, last: &Value) {
        let subject = Subject::Object(kind, string_at(last, "/metadata/name").to_owned());
        let version = parse_version(string_at(last, "/metadata/resourceVersion"));
        if self.subject_version(&subject) <= version {
            self.record_deletion(subject, version);
        }
    }

    /// Returns the known version of an object, or `None` if it does not exist.
    #[must_use]
    pub fn known_version(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.subject_version(&Subject::Object(kind, name.to_owned()))
    }

    /// Returns the version up to which an object counts as deleted.
    #[must_use]
    pub fn tombstone(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.tombstones
            .get(&Subject::Object(kind, name.to_owned()))
            .copied()
    }

    /// Records an object that was read again. `tombstone` is the tombstone before the read. A tombstone that
    /// has not changed since the read is outdated and is removed.
    pub fn confirm_object(
        &mut self,
        kind: ObjectKind,
        object: Value,
        tombstone: Option<u64>,
    ) -> Result<(), DecodeError> {
        let name = string_at(&object, "/metadata/name");
        if self.tombstone(kind, name) == tombstone {
            self.tombstones.remove(&Subject::Object(kind, name.to_owned()));
        }
        self.observe_object(kind, object)
    }

    /// Records that an object was read again and does not exist. `before` is its known version before the
    /// read: if it has changed since, the read is ignored.
    pub fn confirm_missing(&mut self, kind: ObjectKind, name: &str, before: Option<u64>) {
        let subject = Subject::Object(kind, name.to_owned());
        if self.metadata(&subject).is_some() && self.subject_version(&subject) == before {
            self.record_deletion(subject, before);
        }
    }

    /// Begins a list of all objects of a kind. Removes the tombstones of the kind, because an object that
    /// was missing from an earlier list may still exist.
    pub fn begin_list(&mut self, kind: ObjectKind) {
        self.tombstones
            .retain(|subject, _| !matches!(subject, Subject::Object(deleted, _) if *deleted == kind));
    }

    /// Completes a list of all objects of a kind at version `at`. Records the deletion of objects that are
    /// not in `names`.
    pub fn finish_list(&mut self, kind: ObjectKind, names: &BTreeSet<String>, at: &str) {
        let at = parse_version(at);
        for name in self.names(kind) {
            let subject = Subject::Object(kind, name);
            // An object that was written after the list is not part of it.
            let is_newer = at.is_some() && self.subject_version(&subject) > at;
            if !names.contains(subject.name()) && !is_newer {
                self.record_deletion(subject, at);
            }
        }
    }

    fn record_deletion(&mut self, subject: Subject, version: Option<u64>) {
        let last = self.subject_version(&subject).max(version);
        self.forget_subject(&subject);
        if let Some(uid) = self.metadata(&subject).map(|metadata| metadata.uid.clone()) {
            self.forget_releases(&uid);
            self.live.remove_owner(&uid);
        }
        self.tombstones.extend(last.map(|last| (subject.clone(), last)));
        self.observe(Observation::Gone(subject));
    }

    /// Returns the newest known version of a subject, including that of its tombstone.
    fn newest_version(&self, subject: &Subject) -> Option<u64> {
        self.subject_version(subject)
            .max(self.tombstones.get(subject).copied())
    }

    fn subject_version(&self, subject: &Subject) -> Option<u64> {
        parse_version(&self.metadata(subject)?.resource_version)
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

/// Whether the spec, labels, annotations or deletion timestamp of an object changed. Changes of the status
/// do not count, because the operator itself writes it.
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
