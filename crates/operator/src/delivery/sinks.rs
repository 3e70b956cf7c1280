//! Sinks that pass watch events to the index.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_rollout::manifest::ObjectKey;
use serde_json::Value;

use super::index::HostKind;
use super::names::{ClusterKey, Name, ObjectType};
use super::observed::object_key;
use super::shared::Shared;
use crate::object::string_at;
use crate::watch::Sink;

/// A sink for the objects of one [`HostKind`].
pub(crate) struct HostSink {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: HostKind,
    pub(crate) names: BTreeSet<Name>,
}

impl Sink for HostSink {
    type Item = Value;

    fn begin_list(&mut self) {
        self.names.clear();
    }

    fn apply(&mut self, object: Value) {
        self.names.insert(Name::from_object(&object));
        self.shared.with(|index| index.observe_host(self.kind, object));
    }

    fn delete(&mut self, object: Value) {
        self.shared.with(|index| index.remove_host(self.kind, &object));
    }

    fn finish_list(&mut self, version: &str) {
        let names = std::mem::take(&mut self.names);
        self.shared
            .with(|index| index.finish_host_list(self.kind, &names, version));
    }

    fn mark_failing(&mut self, message: &str) {
        tracing::warn!(kind = self.kind.plural(), message, "cannot watch");
    }

    fn mark_recovered(&mut self) {}
}

/// A sink for the objects of one kind in a cluster that have our label.
pub(crate) struct ObjectSink {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cluster: ClusterKey,
    pub(crate) kind: ObjectType,
    pub(crate) keys: BTreeSet<ObjectKey>,
}

impl Sink for ObjectSink {
    type Item = Value;

    fn begin_list(&mut self) {
        self.keys.clear();
    }

    fn apply(&mut self, object: Value) {
        self.keys.insert(object_key(&self.kind, &object));
        self.shared
            .with(|index| index.observe_object(&self.cluster, &self.kind, object));
    }

    fn delete(&mut self, object: Value) {
        let key = object_key(&self.kind, &object);
        let uid = string_at(&object, "/metadata/uid");
        self.shared
            .with(|index| index.remove_object(&self.cluster, &key, uid));
    }

    fn finish_list(&mut self, version: &str) {
        let keys = std::mem::take(&mut self.keys);
        self.shared
            .with(|index| index.finish_list(&self.cluster, &self.kind, &keys, version));
        self.shared.lists.send_modify(|count| *count += 1);
    }

    fn mark_failing(&mut self, message: &str) {
        tracing::warn!(cluster = %self.cluster, kind = self.kind.kind, message, "cannot watch");
        self.shared.request_check(&self.cluster);
    }

    fn mark_recovered(&mut self) {}
}
