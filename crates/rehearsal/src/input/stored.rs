//! Objects as JSON text. The tree of maps of an object needs about eight times as much memory, and most
//! objects of a large cluster are read only once.

use jiff::Timestamp;
use serde_json::Value;

use super::{kinds, latest_timestamp, text, trim, validate_object, validate_workload};
use crate::error::InvalidObject;

/// Position of an object in an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Index of the kind in [`KINDS`](super::KINDS).
    pub(super) rank: usize,
    pub(super) namespace: Box<str>,
    name: Box<str>,
}

/// An object of an input.
#[derive(Clone, Debug)]
pub(super) struct StoredObject {
    pub(super) key: Key,
    json: Box<[u8]>,
}

impl StoredObject {
    /// Stores an object of a known kind. Returns `None` for other kinds.
    pub(super) fn new(object: &Value) -> Option<Self> {
        Some(Self {
            key: Key {
                rank: kinds::rank(object)?,
                namespace: text(object, "/metadata/namespace").into(),
                name: text(object, "/metadata/name").into(),
            },
            json: serde_json::to_vec(object).ok()?.into(),
        })
    }

    /// Returns the object.
    pub(super) fn parse(&self) -> Value {
        // The text was written from a value.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// What an input keeps of an object that was read.
#[derive(Debug, Default)]
pub(super) struct Reduced {
    pub(super) stored: Option<StoredObject>,
    /// Name of another vendor's webhook configuration.
    pub(super) foreign_webhook: Option<String>,
    pub(super) latest: Option<Timestamp>,
    /// Number of pods of a workload.
    pub(super) pods: u64,
}

impl Reduced {
    /// Validates an object, removes the fields that a rehearsal does not read, and stores it.
    pub(super) fn from_object(mut object: Value) -> Result<Self, InvalidObject> {
        trim::trim(&mut object);
        validate_object(&object)?;
        if kinds::rank(&object).is_none() {
            return Ok(Self::default());
        }
        let pods = validate_workload(&object)?;
        if !kinds::is_relevant(&object) {
            let is_webhook = text(&object, "/kind") == kinds::WEBHOOKS;
            return Ok(Self {
                foreign_webhook: is_webhook.then(|| text(&object, "/metadata/name").to_owned()),
                pods,
                ..Self::default()
            });
        }
        Ok(Self {
            latest: latest_timestamp(&object),
            stored: StoredObject::new(&object),
            foreign_webhook: None,
            pods,
        })
    }
}
