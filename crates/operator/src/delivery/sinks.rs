//! Passes watch events to the index.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_rollout::manifest::ObjectKey;
use serde_json::Value;

use super::index::HostKind;
use super::names::{ClusterKey, Name, ObjectType};
use super::observed::{object_key, text};
use super::shared::Shared;
use crate::watch::Sink;

/// Objects of our kinds in the host cluster.
pub(crate) struct HostSink {
    pub(crate) shared: Arc<Shared>,
    pub(crate) kind: HostKind,
    pub(crate) names: BTreeSet<Name>,
}

fn name(object: &Value) -> Name {
    Name::new(
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

impl Sink for HostSink {
    type Item = Value;

    fn begin(&mut self) {
        self.names.clear();
    }

    fn apply(&mut self, object: Value) {
        self.names.insert(name(&object));
        self.shared.with(|index| index.observe_host(self.kind, object));
    }

    fn delete(&mut self, object: Value) {
        self.shared.with(|index| index.remove_host(self.kind, &object));
    }

    fn listed(&mut self, version: &str) {
        let names = std::mem::take(&mut self.names);
        self.shared
            .with(|index| index.finish_host_list(self.kind, &names, version));
    }

    fn failing(&mut self, message: &str) {
        tracing::warn!(kind = self.kind.plural(), message, "cannot watch");
    }

    fn recovered(&mut self) {}
}

/// Objects of one kind in a cluster, with our label.
pub(crate) struct ObjectSink {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cluster: ClusterKey,
    pub(crate) kind: ObjectType,
    pub(crate) keys: BTreeSet<ObjectKey>,
}

impl Sink for ObjectSink {
    type Item = Value;

    fn begin(&mut self) {
        self.keys.clear();
    }

    fn apply(&mut self, object: Value) {
        self.keys.insert(object_key(&self.kind, &object));
        self.shared
            .with(|index| index.observe_object(&self.cluster, &self.kind, object));
    }

    fn delete(&mut self, object: Value) {
        let key = object_key(&self.kind, &object);
        let uid = text(&object, "/metadata/uid");
        self.shared
            .with(|index| index.remove_object(&self.cluster, &key, uid));
    }

    fn listed(&mut self, version: &str) {
        let keys = std::mem::take(&mut self.keys);
        self.shared
            .with(|index| index.finish_list(&self.cluster, &self.kind, &keys, version));
        self.shared.lists.send_modify(|count| *count += 1);
    }

    fn failing(&mut self, message: &str) {
        tracing::warn!(cluster = %self.cluster, kind = self.kind.kind, message, "cannot watch");
        self.shared.request_check(&self.cluster);
    }

    fn recovered(&mut self) {}
}
