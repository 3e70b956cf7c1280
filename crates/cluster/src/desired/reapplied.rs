//! Fields that a server changes right after an apply: webhooks that raise requests, or exclude namespaces
//! from selectors. Applying them again would never end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ObjectId;
use crate::compare::Path;

type Places = BTreeMap<ObjectId, (String, Vec<Path>)>;

/// Paths that differed right after an apply. They live as long as the desired state: a new one is applied
/// again.
#[derive(Debug, Default)]
pub(crate) struct ReappliedFields(Mutex<Places>);

impl ReappliedFields {
    /// Returns the paths of this object.
    pub(crate) fn places(&self, id: &ObjectId, uid: &str) -> Vec<Path> {
        match self.lock().get(id) {
            Some((of, places)) if of == uid => places.clone(),
            _ => Vec::new(),
        }
    }

    /// Replaces the paths of this object.
    pub(crate) fn remember(&self, id: &ObjectId, uid: &str, places: Vec<Path>) {
        if places.is_empty() {
            self.lock().remove(id);
        } else {
            self.lock().insert(id.clone(), (uid.to_owned(), places));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for ReappliedFields {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.lock().clone()))
    }
}

impl PartialEq for ReappliedFields {
    /// Desired states are equal regardless of server changes.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
