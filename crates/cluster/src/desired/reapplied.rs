//! What a server makes of objects otherwise than we want: takes the places that differ right after an apply, gives them back. Some servers
//! have a say of their own (webhooks that raise requests, or keep namespaces out of selectors); to go on wanting would be to write for ever.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ObjectId;
use crate::compare::Path;

type Places = BTreeMap<ObjectId, (String, Vec<Path>)>;

/// Places that differed although we had just applied them. It lives and dies with what is wanted: another wish is a new attempt.
#[derive(Debug, Default)]
pub(crate) struct ReappliedFields(Mutex<Places>);

impl ReappliedFields {
    /// The places of this very object.
    pub(crate) fn places(&self, id: &ObjectId, uid: &str) -> Vec<Path> {
        match self.lock().get(id) {
            Some((of, places)) if of == uid => places.clone(),
            _ => Vec::new(),
        }
    }

    /// Remembers the places of this very object, and none of any other.
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
    /// What is wanted is the same, whatever servers make of it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
