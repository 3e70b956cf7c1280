//! Sinks that pass watch events to the reconciler. They only keep the names that are needed to detect
//! deletions with a list.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_api::ObjectKind;
use mainstay_cluster::desired::ObjectId;
use mainstay_mesh::references::{Referrer, ReferrerKey, injected_revision, pod_reference};
use mainstay_mesh::snapshot::{Source, SourceState};
use mainstay_mesh::{Observation, injects_enabled_namespaces};
use serde_json::Value;
use tokio::sync::watch::Sender;

use super::Sink;
use super::partial_object::PartialObject;
use crate::run::Shared;

/// Context of a sink: the reconciler, the source that the collection belongs to, and the signal of the
/// first list.
pub(crate) struct SinkContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Option<Source>,
    pub(crate) synced: Sender<bool>,
}

impl SinkContext {
    fn set_state(&self, state: SourceState) {
        if let Some(source) = self.source {
            self.shared
                .with(|reconciler| reconciler.set_source_state(source, state));
        }
        // An error means that the receiver was dropped, because the wait for the list has ended.
        let _ = self.synced.send(true);
    }

    fn mark_failing(&self, message: &str) {
        self.set_state(SourceState::Failing(message.to_owned()));
    }
}

/// A sink for the objects of one of Mainstay's kinds.
pub(crate) struct OwnObjects {
    pub(crate) context: SinkContext,
    pub(crate) kind: ObjectKind,
    pub(crate) listed: BTreeSet<String>,
}

impl Sink for OwnObjects {
    type Item = Value;

    fn begin_list(&mut self) {
        self.listed.clear();
        self.context
            .shared
            .with(|reconciler| reconciler.begin_list(self.kind));
    }

    fn apply(&mut self, object: Value) {
        self.listed.extend(object_name(&object));
        let result = self
            .context
            .shared
            .with(|reconciler| reconciler.observe_object(self.kind, object));
        if let Err(error) = result {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "ignoring an object that cannot be decoded"
            );
        }
    }

    fn delete(&mut self, object: Value) {
        self.context
            .shared
            .with(|reconciler| reconciler.remove_object(self.kind, &object));
    }

    fn finish_list(&mut self, version: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.context
            .shared
            .with(|reconciler| reconciler.finish_list(self.kind, &listed, version));
        self.context.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.context.mark_failing(message);
    }

    fn mark_recovered(&mut self) {
        self.context.set_state(SourceState::Ready);
    }
}

/// A sink for the objects of one kind that have our label.
pub(crate) struct Managed {
    pub(crate) context: SinkContext,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) listed: BTreeSet<ObjectId>,
}

impl Managed {
    fn id(&self, object: &Value) -> ObjectId {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        ObjectId {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }
}

impl Sink for Managed {
    type Item = Value;

    fn begin_list(&mut self) {
        self.listed.clear();
    }

    fn apply(&mut self, object: Value) {
        let id = self.id(&object);
        self.context
            .shared
            .with(|reconciler| reconciler.observe_managed(&id, object));
        self.listed.insert(id);
    }

    fn delete(&mut self, object: Value) {
        let id = self.id(&object);
        self.context
            .shared
            .with(|reconciler| reconciler.remove_managed(&id, &object));
    }

    fn finish_list(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.context
            .shared
            .with(|reconciler| reconciler.finish_managed_list(&self.group, &self.kind, &listed));
        self.context.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.context.mark_failing(message);
    }

    fn mark_recovered(&mut self) {
        self.context.set_state(SourceState::Ready);
    }
}

/// A sink for webhook configurations of injectors that neither Mainstay nor the Sail Operator installed.
pub(crate) struct ForeignInjectors {
    pub(crate) context: SinkContext,
    pub(crate) known: BTreeSet<String>,
    pub(crate) listed: BTreeSet<String>,
}

impl ForeignInjectors {
    fn observe(&self, name: &str, injects: bool) {
        let observation = Observation::ForeignInjector(name.to_owned(), injects);
        self.context
            .shared
            .with(|reconciler| reconciler.observe(observation));
    }
}

impl Sink for ForeignInjectors {
    type Item = Value;

    fn begin_list(&mut self) {
        self.listed.clear();
    }

    fn apply(&mut self, object: Value) {
        if let Some(name) = object_name(&object) {
            self.observe(&name, injects_enabled_namespaces(&object));
            self.listed.insert(name.clone());
            self.known.insert(name);
        }
    }

    fn delete(&mut self, object: Value) {
        if let Some(name) = object_name(&object) {
            self.observe(&name, false);
            self.known.remove(&name);
        }
    }

    fn finish_list(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        let known = std::mem::replace(&mut self.known, listed);
        for name in known.difference(&self.known) {
            self.observe(name, false);
        }
        self.context.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.context.mark_failing(message);
    }

    fn mark_recovered(&mut self) {}
}

/// A sink for namespaces.
pub(crate) struct Namespaces {
    pub(crate) context: SinkContext,
    pub(crate) known: BTreeSet<String>,
    pub(crate) listed: BTreeSet<String>,
}

impl Sink for Namespaces {
    type Item = PartialObject;

    fn begin_list(&mut self) {
        self.listed.clear();
    }

    fn apply(&mut self, object: PartialObject) {
        self.listed.insert(object.metadata.name.clone());
        self.known.insert(object.metadata.name.clone());
        self.context
            .shared
            .with(|reconciler| reconciler.observe_namespace(object));
    }

    fn delete(&mut self, PartialObject { metadata }: PartialObject) {
        self.known.remove(&metadata.name);
        self.context
            .shared
            .with(|reconciler| reconciler.remove_namespace(metadata.name));
    }

    fn finish_list(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        let known = std::mem::replace(&mut self.known, listed);
        for name in known.difference(&self.known) {
            self.context
                .shared
                .with(|reconciler| reconciler.remove_namespace(name.clone()));
        }
        self.context.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.context.mark_failing(message);
    }

    fn mark_recovered(&mut self) {
        self.context.set_state(SourceState::Ready);
    }
}

/// A sink for pods. The reconciler only keeps pods that refer to a revision.
pub(crate) struct Pods {
    pub(crate) context: SinkContext,
    pub(crate) listed: BTreeSet<(String, String)>,
    pub(crate) is_listing: bool,
}

impl Sink for Pods {
    type Item = PartialObject;

    fn begin_list(&mut self) {
        self.listed.clear();
        self.is_listing = true;
    }

    fn apply(&mut self, PartialObject { metadata }: PartialObject) {
        let workload = metadata.workload();
        self.context.shared.with(|reconciler| {
            reconciler.observe_referrer(Referrer::Pod {
                namespace: &metadata.namespace,
                name: &metadata.name,
                labels: &metadata.labels,
                annotations: &metadata.annotations,
                finished: false,
                terminating: metadata.is_deleting,
                workload: workload.as_ref(),
            });
        });
        let refers =
            pod_reference(&metadata.labels).is_some() || injected_revision(&metadata.annotations).is_some();
        if self.is_listing && refers {
            self.listed.insert((metadata.namespace, metadata.name));
        }
    }

    fn delete(&mut self, PartialObject { metadata }: PartialObject) {
        let key = ReferrerKey::Pod(metadata.namespace, metadata.name);
        self.context
            .shared
            .with(|reconciler| reconciler.remove_referrer(key));
    }

    fn finish_list(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.is_listing = false;
        self.context.shared.with(|reconciler| {
            let known = reconciler.snapshot().references().pods();
            let known = known.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
            let deleted: Vec<_> = known.filter(|pod| !listed.contains(pod)).collect();
            for (namespace, name) in deleted {
                reconciler.remove_referrer(ReferrerKey::Pod(namespace, name));
            }
        });
        self.context.set_state(SourceState::Ready);
    }

    fn mark_failing(&mut self, message: &str) {
        self.context.mark_failing(message);
    }

    fn mark_recovered(&mut self) {
        self.context.set_state(SourceState::Ready);
    }
}

fn object_name(object: &Value) -> Option<String> {
    object.pointer("/metadata/name")?.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use mainstay_mesh::{Library, Settings};
    use serde_json::json;
    use tokio::sync::watch::channel;

    use super::*;
    use crate::Reconciler;

    fn new_context(source: Source) -> (SinkContext, Arc<Shared>) {
        let settings = Arc::new(Settings::default());
        let reconciler = Reconciler::new(
            jiff::Timestamp::UNIX_EPOCH,
            settings,
            Arc::new(Library::default()),
            1,
        );
        let shared = Arc::new(Shared::new(reconciler, Arc::new(())));
        let context = SinkContext {
            shared: shared.clone(),
            source: Some(source),
            synced: channel(false).0,
        };
        (context, shared)
    }

    fn object(name: &str) -> PartialObject {
        let annotations = json!({"istio.io/rev": "r"});
        let labels = json!({"istio.io/rev": "r"});
        let metadata = json!({"name": name, "namespace": "n", "annotations": annotations, "labels": labels});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn running_pod_count(shared: &Shared) -> usize {
        shared.with(|reconciler| reconciler.snapshot().references().counts("r").running_pods)
    }

    #[test]
    fn pods_missing_from_a_new_list_are_removed() {
        let (context, shared) = new_context(Source::Pods);
        let mut pods = Pods {
            context,
            listed: BTreeSet::new(),
            is_listing: true,
        };
        pods.begin_list();
        pods.apply(object("a"));
        pods.apply(object("b"));
        pods.finish_list("1");
        pods.apply(object("c"));
        assert_eq!(running_pod_count(&shared), 3);
        pods.begin_list();
        pods.apply(object("b"));
        assert_eq!(running_pod_count(&shared), 3, "not before the list is complete");
        pods.finish_list("2");
        assert_eq!(running_pod_count(&shared), 1);
        pods.delete(object("b"));
        assert_eq!(running_pod_count(&shared), 0);
    }

    #[test]
    fn namespaces_missing_from_a_new_list_are_removed() {
        let (context, shared) = new_context(Source::Namespaces);
        let mut namespaces = Namespaces {
            context,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        let count = || shared.with(|reconciler| reconciler.snapshot().references().counts("r").namespaces);
        namespaces.begin_list();
        namespaces.apply(object("a"));
        namespaces.finish_list("1");
        namespaces.apply(object("b"));
        assert_eq!(count(), 2);
        namespaces.begin_list();
        namespaces.apply(object("b"));
        namespaces.finish_list("2");
        assert_eq!(count(), 1);
        assert!(shared.with(|reconciler| reconciler.snapshot().namespace("a").is_none()));
    }
}
