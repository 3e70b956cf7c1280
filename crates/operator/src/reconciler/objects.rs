//! Our own objects: takes them as watches and writes show them, keeps the newest. What cannot be read is told, and stops no
//! other.

use std::collections::BTreeSet;

use mainstay_api::{Kind, ObjectKind, ObjectMeta};
use mainstay_mesh::snapshot::Objects;
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;

/// An object that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{kind} {name:?} cannot be read", kind = .kind.name())]
pub struct DecodeError {
    /// Of which kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

impl Reconciler {
    /// One of our objects is there.
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
        let seen = read(kind, object).map_err(|source| DecodeError { kind, name, source })?;
        self.tombstones.remove(&subject);
        self.observe(seen);
        Ok(())
    }

    /// One of our objects is gone; this was its last version.
    pub fn remove_object(&mut self, kind: ObjectKind, last: &Value) {
        let subject = Subject::Object(kind, text(last, "/metadata/name").to_owned());
        let version = version(text(last, "/metadata/resourceVersion"));
        if self.known_version(&subject) <= version {
            self.bury(subject, version);
        }
    }

    /// The version of one of our objects that is known.
    #[must_use]
    pub fn known_version_of(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.known_version(&Subject::Object(kind, name.to_owned()))
    }

    /// The version up to which one of our objects counts as gone.
    #[must_use]
    pub fn tombstone(&self, kind: ObjectKind, name: &str) -> Option<u64> {
        self.tombstones
            .get(&Subject::Object(kind, name.to_owned()))
            .copied()
    }

    /// One of our objects was looked for and is there; whoever counted as gone up to `grave` when it was asked for lives.
    pub fn confirm_object(
        &mut self,
        kind: ObjectKind,
        object: Value,
        grave: Option<u64>,
    ) -> Result<(), DecodeError> {
        let name = text(&object, "/metadata/name");
        if self.tombstone(kind, name) == grave {
            self.tombstones.remove(&Subject::Object(kind, name.to_owned()));
        }
        self.observe_object(kind, object)
    }

    /// One of our objects was looked for and is not there; nothing newer than `before` may have been seen since.
    pub fn confirm_missing(&mut self, kind: ObjectKind, name: &str, before: Option<u64>) {
        let subject = Subject::Object(kind, name.to_owned());
        if self.metadata(&subject).is_some() && self.known_version(&subject) == before {
            self.bury(subject, before);
        }
    }

    /// All objects of a kind are being listed: whoever is there lives, even if the list before, which may have been wrong, lacked it.
    pub fn begin_list(&mut self, kind: ObjectKind) {
        self.tombstones
            .retain(|subject, _| !matches!(subject, Subject::Object(buried, _) if *buried == kind));
    }

    /// All objects of a kind were listed, and these were there at this version.
    pub fn finish_list(&mut self, kind: ObjectKind, names: &BTreeSet<String>, at: &str) {
        let at = version(at);
        for name in self.names(kind) {
            let subject = Subject::Object(kind, name);
            // What we wrote after the list was made is not in it.
            let is_newer = at.is_some() && self.known_version(&subject) > at;
            if !names.contains(subject.name()) && !is_newer {
                self.bury(subject, at);
            }
        }
    }

    fn bury(&mut self, subject: Subject, version: Option<u64>) {
        let last = self.known_version(&subject).max(version);
        self.failed.remove(&subject);
        self.last.remove(&subject);
        self.queue.forget(&subject);
        if let Some(uid) = self.metadata(&subject).map(|metadata| metadata.uid.clone()) {
            self.forget_releases(&uid);
        }
        self.tombstones.extend(last.map(|last| (subject.clone(), last)));
        self.observe(Observation::Gone(subject));
    }

    /// The newest version of a subject that was seen, alive or not.
    fn newest(&self, subject: &Subject) -> Option<u64> {
        self.known_version(subject)
            .max(self.tombstones.get(subject).copied())
    }

    fn known_version(&self, subject: &Subject) -> Option<u64> {
        version(&self.metadata(subject)?.resource_version)
    }

    fn metadata(&self, subject: &Subject) -> Option<&ObjectMeta> {
        fn of<'a, S: Kind>(objects: &'a Objects<S>, name: &str) -> Option<&'a ObjectMeta> {
            objects.get(name).map(|object| &object.metadata)
        }
        let Subject::Object(kind, name) = subject else {
            return None;
        };
        match kind {
            ObjectKind::Istio => of(self.snapshot.istios(), name),
            ObjectKind::IstioRevision => of(self.snapshot.revisions(), name),
            ObjectKind::IstioRevisionTag => of(self.snapshot.tags(), name),
            ObjectKind::IstioCni => of(self.snapshot.cnis(), name),
            ObjectKind::ZTunnel => of(self.snapshot.ztunnels(), name),
        }
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        fn of<S: Kind>(objects: &Objects<S>) -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        }
        match kind {
            ObjectKind::Istio => of(self.snapshot.istios()),
            ObjectKind::IstioRevision => of(self.snapshot.revisions()),
            ObjectKind::IstioRevisionTag => of(self.snapshot.tags()),
            ObjectKind::IstioCni => of(self.snapshot.cnis()),
            ObjectKind::ZTunnel => of(self.snapshot.ztunnels()),
        }
    }
}

fn read(kind: ObjectKind, object: Value) -> Result<Observation, serde_json::Error> {
    Ok(match kind {
        ObjectKind::Istio => Observation::Istio(serde_json::from_value(object)?),
        ObjectKind::IstioRevision => Observation::Revision(serde_json::from_value(object)?),
        ObjectKind::IstioRevisionTag => Observation::Tag(serde_json::from_value(object)?),
        ObjectKind::IstioCni => Observation::Cni(serde_json::from_value(object)?),
        ObjectKind::ZTunnel => Observation::ZTunnel(serde_json::from_value(object)?),
    })
}

pub(super) fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// Versions grow with time on every server there is, and servers promise it since Kubernetes 1.35.
pub(super) fn version(text: &str) -> Option<u64> {
    text.parse().ok()
}
