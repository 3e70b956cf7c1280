//! What belongs to others and is moved by us: takes workloads and namespaces as watches and writes show them, keeps the newest. A write's answer
//! may be older than what a watch has shown meanwhile, and the other way round.

use mainstay_mesh::references::ReferrerKey;
use mainstay_mesh::workload::{Workload, WorkloadKey};
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;
use super::objects::version;
use crate::watch::light::Light;

impl Reconciler {
    /// A workload is there.
    pub(crate) fn observe_workload(&mut self, key: WorkloadKey, workload: Workload) {
        let known = self.snapshot.workload(&key);
        let old = known.is_some_and(|known| {
            let (known, seen) = (
                (&*known.uid, &*known.resource_version),
                (&*workload.uid, &*workload.resource_version),
            );
            is_older(known, seen)
        });
        if !old {
            self.observe(Observation::Workload(key, Some(workload)));
        }
    }

    /// A write changed a workload to this. One that is gone meanwhile stays gone.
    pub(crate) fn observe_written_workload(&mut self, key: WorkloadKey, workload: Workload) {
        if self.snapshot.workload(&key).is_some() {
            self.observe_workload(key, workload);
        }
    }

    /// A workload is gone.
    pub(crate) fn remove_workload(&mut self, key: &WorkloadKey) {
        self.forget(Subject::Workload(key.clone()));
    }

    /// A namespace is there.
    pub(crate) fn observe_namespace(&mut self, light: Light) {
        let metadata = &light.metadata;
        let known = self.snapshot.namespace(&metadata.name);
        let old = known.is_some_and(|known| {
            let (known, seen) = (
                (&*known.uid, &*known.resource_version),
                (&*metadata.uid, &*metadata.resource_version),
            );
            is_older(known, seen)
        });
        if !old {
            self.observe(light.namespace());
        }
    }

    /// A write changed a namespace to this. One that is gone meanwhile stays gone.
    pub(crate) fn observe_written_namespace(&mut self, light: Light) {
        if self.snapshot.namespace(&light.metadata.name).is_some() {
            self.observe_namespace(light);
        }
    }

    /// A namespace is gone.
    pub(crate) fn remove_namespace(&mut self, name: String) {
        if self.snapshot.namespace(&name).is_some() {
            self.forget(Subject::Namespace(name));
        } else {
            self.remove_referrer(ReferrerKey::Namespace(name));
        }
    }

    /// A namespace or a workload was looked for, and this is what is there.
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
                if let Ok(light) = serde_json::from_value::<Light>(object) {
                    self.observe_written_namespace(light);
                }
            }
            _ => {}
        }
    }

    /// What is gone leaves nothing behind.
    fn forget(&mut self, subject: Subject) {
        self.failed.remove(&subject);
        self.last.remove(&subject);
        self.queue.forget(&subject);
        self.observe(Observation::Gone(subject));
    }
}

/// Whether what was seen is an older version of what is known: identity and version of each.
fn is_older(known: (&str, &str), seen: (&str, &str)) -> bool {
    let versions = version(known.1).zip(version(seen.1));
    known.0 == seen.0 && versions.is_some_and(|(known, seen)| seen < known)
}
