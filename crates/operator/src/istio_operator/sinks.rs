//! Sinks that pass watch events to the index.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::index::ObjectKey;
use super::shared::Shared;
use crate::delivery::Name;
use crate::object::string_at;
use crate::watch::Sink;

/// A sink for `IstioOperator` resources.
pub(super) struct OperatorSink {
    pub(super) shared: Arc<Shared>,
    pub(super) names: BTreeSet<Name>,
}

impl Sink for OperatorSink {
    type Item = Value;

    fn begin_list(&mut self) {
        self.names.clear();
    }

    fn apply(&mut self, object: Value) {
        let now = self.shared.now();
        let found = self.shared.with(|index| index.observe(object, now));
        self.names.extend(found);
    }

    fn delete(&mut self, object: Value) {
        let now = self.shared.now();
        let uid = string_at(&object, "/metadata/uid");
        self.shared
            .with(|index| index.remove(&Name::from_object(&object), uid, now));
    }

    fn finish_list(&mut self, version: &str) {
        let names = std::mem::take(&mut self.names);
        let now = self.shared.now();
        self.shared.with(|index| index.finish_list(&names, version, now));
        // The loop does not start reconciling before the first list is complete.
        self.shared.enqueued.notify_one();
    }

    fn mark_failing(&mut self, message: &str) {
        tracing::warn!(message, "cannot watch IstioOperators");
    }

    fn mark_recovered(&mut self) {}
}

/// A sink for the owned objects of one kind.
pub(super) struct ObjectSink {
    pub(super) shared: Arc<Shared>,
    /// URL path of the collection.
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) names: BTreeSet<Name>,
}

impl ObjectSink {
    fn key(&self, object: &Value) -> ObjectKey {
        (self.path.clone(), Name::from_object(object))
    }
}

impl Sink for ObjectSink {
    type Item = Value;

    fn begin_list(&mut self) {
        self.names.clear();
    }

    fn apply(&mut self, object: Value) {
        self.names.insert(Name::from_object(&object));
        let (key, now) = (self.key(&object), self.shared.now());
        self.shared
            .with(|index| index.observe_object(key, &self.kind, &object, now));
    }

    fn delete(&mut self, object: Value) {
        let now = self.shared.now();
        self.shared
            .with(|index| index.remove_object(&self.key(&object), now));
    }

    fn finish_list(&mut self, _version: &str) {
        let names = std::mem::take(&mut self.names);
        let now = self.shared.now();
        self.shared
            .with(|index| index.finish_object_list(&self.path, &names, now));
    }

    fn mark_failing(&mut self, message: &str) {
        tracing::warn!(kind = self.kind, message, "cannot watch installed objects");
    }

    fn mark_recovered(&mut self) {}
}
