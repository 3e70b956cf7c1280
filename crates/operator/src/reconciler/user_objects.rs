//! Observes workloads and namespaces, which belong to users and are changed by migrations, from watches and
//! write responses. Stores the newest version of each object: a write response may be older than a watch
//! event, and vice versa.

use mainstay_cluster::live::parse_version;
use mainstay_mesh::references::ReferrerKey;
use mainstay_mesh::workload::{Workload, WorkloadKey};
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;
use crate::watch::partial_object::PartialObject;

impl Reconciler {
    /// Records a workload, unless a newer version is known.
    pub(crate) fn observe_workload(&mut self, key: WorkloadKey, workload: Workload) {
        let mut changed = false;
        if let Some(known) = self.snapshot.workload(&key) {
            if is_older(ObjectVersion::from(known), ObjectVersion::from(&workload)) {
                return;
            }
            changed = is_changed(known, &workload);
        }
        if changed {
            self.record_change(&Subject::Workload(key.clone()));
        }
        self.observe(Observation::Workload(key, Some(workload)));
    }

    /// Records the response of a write to a workload, unless the workload has been deleted since.
    pub(crate) fn observe_written_workload(&mut self, key: WorkloadKey, workload: Workload) {
        if self.snapshot.workload(&key).is_some() {
            self.observe_workload(key, workload);
        }
    }

    /// Records the deletion of a workload.
    pub(crate) fn remove_workload(&mut self, key: &WorkloadKey) {
        self.remove_subject(Subject::Workload(key.clone()));
    }

    /// Records a namespace, unless a newer version is known.
    pub(crate) fn observe_namespace(&mut self, object: PartialObject) {
        let metadata = &object.metadata;
        let known = self.snapshot.namespace(&metadata.name);
        let is_outdated = known.is_some_and(|known| {
            let known = ObjectVersion {
                uid: &known.uid,
                version: &known.resource_version,
            };
            let observed = ObjectVersion {
                uid: &metadata.uid,
                version: &metadata.resource_version,
            };
            is_older(known, observed)
        });
        if !is_outdated {
            self.observe(object.into_observation());
        }
    }

    /// Records the response of a write to a namespace, unless the namespace has been deleted since.
    pub(crate) fn observe_written_namespace(&mut self, object: PartialObject) {
        if self.snapshot.namespace(&object.metadata.name).is_some() {
            self.observe_namespace(object);
        }
    }

    /// Records the deletion of a namespace.
    pub(crate) fn remove_namespace(&mut self, name: String) {
        if self.snapshot.namespace(&name).is_some() {
            self.remove_subject(Subject::Namespace(name));
        } else {
            self.remove_referrer(ReferrerKey::Namespace(name));
        }
    }

    /// Records a namespace or workload that was read again. `object` is `None` if it does not exist.
    pub(crate) fn observe_read(&mut self, subject: &Subject, object: Option<Value>) {
        match (subject, object) {
            (Subject::Workload(key), None) => self.remove_workload(key),
            (Subject::Workload(key), Some(object)) => {
                if let Some((_, workload)) = Workload::from_object(key.kind(), &object) {
                    self.observe_written_workload(key.clone(), workload);
                }
            }
            (Subject::Namespace(name), None) => self.remove_namespace(name.clone()),
            (Subject::Namespace(_), Some(object)) => {
                if let Ok(object) = serde_json::from_value::<PartialObject>(object) {
                    self.observe_written_namespace(object);
                }
            }
            _ => {}
        }
    }

    /// Removes failures, conflicts, back-off and rate limit of a deleted subject.
    pub(super) fn forget_subject(&mut self, subject: &Subject) {
        self.failed.remove(subject);
        self.last_steps.remove(subject);
        self.conflicts.remove(subject);
        self.queue.forget(subject);
    }

    fn remove_subject(&mut self, subject: Subject) {
        self.forget_subject(&subject);
        self.observe(Observation::Gone(subject));
    }
}

/// UID and resource version of an object.
#[derive(Clone, Copy)]
struct ObjectVersion<'a> {
    uid: &'a str,
    version: &'a str,
}

impl<'a> From<&'a Workload> for ObjectVersion<'a> {
    fn from(workload: &'a Workload) -> Self {
        Self {
            uid: &workload.uid,
            version: &workload.resource_version,
        }
    }
}

fn is_older(known: ObjectVersion<'_>, observed: ObjectVersion<'_>) -> bool {
    let versions = parse_version(known.version).zip(parse_version(observed.version));
    known.uid == observed.uid && versions.is_some_and(|(known, observed)| observed < known)
}

/// Whether a workload changed in more than its resource version and the progress of its rollout.
fn is_changed(known: &Workload, observed: &Workload) -> bool {
    let settings = |workload: &Workload| Workload {
        resource_version: String::new(),
        rollout: known.rollout,
        ..workload.clone()
    };
    settings(known) != settings(observed)
}
