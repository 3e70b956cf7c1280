//! Fields that differ right after an apply, for example because an admission webhook raises resource
//! requests or excludes namespaces from selectors. They are not applied again, because that would never
//! converge.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ObjectId;
use crate::compare::Path;

type PathsByObject = BTreeMap<ObjectId, (String, Vec<Path>)>;

/// Paths that differed right after an apply, by object and UID. They are kept as long as the desired
/// state: a new desired state is applied again.
#[derive(Debug, Default)]
pub(crate) struct ReappliedFields(Mutex<PathsByObject>);

impl ReappliedFields {
    /// Returns the paths of an object; empty if they were recorded for another UID.
    pub(crate) fn paths(&self, id: &ObjectId, uid: &str) -> Vec<Path> {
        match self.lock().get(id) {
            Some((known_uid, paths)) if known_uid == uid => paths.clone(),
            _ => Vec::new(),
        }
    }

    /// Replaces the paths of an object.
    pub(crate) fn set_paths(&self, id: &ObjectId, uid: &str, paths: Vec<Path>) {
        if paths.is_empty() {
            self.lock().remove(id);
        } else {
            self.lock().insert(id.clone(), (uid.to_owned(), paths));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PathsByObject> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for ReappliedFields {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

impl PartialEq for ReappliedFields {
    /// Returns true: desired states are equal regardless of changes by the server.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
