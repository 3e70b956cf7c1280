//! From watches to the reconciler: takes what a watch shows, tells it in the reconciler's words. Keeps only what a list needs to find out
//! what is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_api::ObjectKind;
use mainstay_cluster::desired::ObjectId;
use mainstay_mesh::references::{Referrer, ReferrerKey, injected_revision, pod_reference};
use mainstay_mesh::snapshot::{Source, SourceState};
use serde_json::Value;
use tokio::sync::watch::Sender;

use super::Sink;
use super::light::Light;
use crate::run::Shared;

/// What all sinks share: the reconciler, what the watch is a source of, and whoever waits for its first list.
pub(crate) struct Outlet {
    pub(crate) shared: Arc<Shared>,
    pub(crate) source: Option<Source>,
    pub(crate) synced: Sender<bool>,
}

impl Outlet {
    fn state(&self, state: SourceState) {
        if let Some(source) = self.source {
            self.shared
                .with(|reconciler| reconciler.set_source_state(source, state));
        }
        // Nobody may be waiting any more.
        let _ = self.synced.send(true);
    }

    fn failing(&self, message: &str) {
        self.state(SourceState::Failing(message.to_owned()));
    }
}

/// Our own objects.
pub(crate) struct Own {
    pub(crate) outlet: Outlet,
    pub(crate) kind: ObjectKind,
    pub(crate) listed: BTreeSet<String>,
}

impl Sink for Own {
    type Item = Value;

    fn begin(&mut self) {
        self.listed.clear();
        self.outlet
            .shared
            .with(|reconciler| reconciler.begin_list(self.kind));
    }

    fn seen(&mut self, object: Value) {
        self.listed.extend(name(&object));
        let read = self
            .outlet
            .shared
            .with(|reconciler| reconciler.observe_object(self.kind, object));
        if let Err(error) = read {
            tracing::error!(error = &error as &dyn std::error::Error, "an object is left out");
        }
    }

    fn gone(&mut self, object: Value) {
        self.outlet
            .shared
            .with(|reconciler| reconciler.remove_object(self.kind, &object));
    }

    fn listed(&mut self, version: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.outlet
            .shared
            .with(|reconciler| reconciler.finish_list(self.kind, &listed, version));
        self.outlet.state(SourceState::Ready);
    }

    fn failing(&mut self, message: &str) {
        self.outlet.failing(message);
    }

    fn recovered(&mut self) {
        self.outlet.state(SourceState::Ready);
    }
}

/// Objects that carry our mark, of one kind.
pub(crate) struct Managed {
    pub(crate) outlet: Outlet,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) listed: BTreeSet<ObjectId>,
}

impl Managed {
    fn id(&self, object: &Value) -> ObjectId {
        let text = |at: &str| {
            object
                .pointer(at)
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

    fn begin(&mut self) {
        self.listed.clear();
    }

    fn seen(&mut self, object: Value) {
        let id = self.id(&object);
        self.outlet
            .shared
            .with(|reconciler| reconciler.observe_managed(&id, object));
        self.listed.insert(id);
    }

    fn gone(&mut self, object: Value) {
        let id = self.id(&object);
        self.outlet
            .shared
            .with(|reconciler| reconciler.remove_managed(&id, &object));
    }

    fn listed(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.outlet
            .shared
            .with(|reconciler| reconciler.finish_managed_list((&self.group, &self.kind), &listed));
        self.outlet.state(SourceState::Ready);
    }

    fn failing(&mut self, message: &str) {
        self.outlet.failing(message);
    }

    fn recovered(&mut self) {
        self.outlet.state(SourceState::Ready);
    }
}

/// Namespaces.
pub(crate) struct Namespaces {
    pub(crate) outlet: Outlet,
    pub(crate) known: BTreeSet<String>,
    pub(crate) listed: BTreeSet<String>,
}

impl Sink for Namespaces {
    type Item = Light;

    fn begin(&mut self) {
        self.listed.clear();
    }

    fn seen(&mut self, light: Light) {
        self.listed.insert(light.metadata.name.clone());
        self.known.insert(light.metadata.name.clone());
        self.outlet
            .shared
            .with(|reconciler| reconciler.observe_namespace(light));
    }

    fn gone(&mut self, Light { metadata }: Light) {
        self.known.remove(&metadata.name);
        self.outlet
            .shared
            .with(|reconciler| reconciler.remove_namespace(metadata.name));
    }

    fn listed(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        let known = std::mem::replace(&mut self.known, listed);
        for name in known.difference(&self.known) {
            self.outlet
                .shared
                .with(|reconciler| reconciler.remove_namespace(name.clone()));
        }
        self.outlet.state(SourceState::Ready);
    }

    fn failing(&mut self, message: &str) {
        self.outlet.failing(message);
    }

    fn recovered(&mut self) {
        self.outlet.state(SourceState::Ready);
    }
}

/// Pods. Which of them are known the reconciler can tell, as far as they refer to anything.
pub(crate) struct Pods {
    pub(crate) outlet: Outlet,
    pub(crate) listed: BTreeSet<(String, String)>,
    pub(crate) is_listing: bool,
}

impl Sink for Pods {
    type Item = Light;

    fn begin(&mut self) {
        self.listed.clear();
        self.is_listing = true;
    }

    fn seen(&mut self, Light { metadata }: Light) {
        let workload = metadata.workload();
        self.outlet.shared.with(|reconciler| {
            reconciler.observe_referrer(Referrer::Pod {
                namespace: &metadata.namespace,
                name: &metadata.name,
                labels: &metadata.labels,
                annotations: &metadata.annotations,
                finished: false,
                leaving: metadata.is_deleting,
                workload: workload.as_ref(),
            });
        });
        let refers =
            pod_reference(&metadata.labels).is_some() || injected_revision(&metadata.annotations).is_some();
        if self.is_listing && refers {
            self.listed.insert((metadata.namespace, metadata.name));
        }
    }

    fn gone(&mut self, Light { metadata }: Light) {
        let key = ReferrerKey::Pod(metadata.namespace, metadata.name);
        self.outlet
            .shared
            .with(|reconciler| reconciler.remove_referrer(key));
    }

    fn listed(&mut self, _: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.is_listing = false;
        self.outlet.shared.with(|reconciler| {
            let known = reconciler.snapshot().references().pods();
            let known = known.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
            let lost: Vec<_> = known.filter(|pod| !listed.contains(pod)).collect();
            for (namespace, name) in lost {
                reconciler.remove_referrer(ReferrerKey::Pod(namespace, name));
            }
        });
        self.outlet.state(SourceState::Ready);
    }

    fn failing(&mut self, message: &str) {
        self.outlet.failing(message);
    }

    fn recovered(&mut self) {
        self.outlet.state(SourceState::Ready);
    }
}

fn name(object: &Value) -> Option<String> {
    object.pointer("/metadata/name")?.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use mainstay_mesh::{Library, Settings};
    use serde_json::json;
    use tokio::sync::watch::channel;

    use super::*;
    use crate::Reconciler;

    fn outlet(source: Source) -> (Outlet, Arc<Shared>) {
        let settings = Arc::new(Settings::default());
        let reconciler = Reconciler::new(
            jiff::Timestamp::UNIX_EPOCH,
            settings,
            Arc::new(Library::default()),
            1,
        );
        let shared = Arc::new(Shared::new(reconciler, Arc::new(())));
        let outlet = Outlet {
            shared: shared.clone(),
            source: Some(source),
            synced: channel(false).0,
        };
        (outlet, shared)
    }

    fn light(name: &str) -> Light {
        let annotations = json!({"istio.io/rev": "r"});
        let labels = json!({"istio.io/rev": "r"});
        let metadata = json!({"name": name, "namespace": "n", "annotations": annotations, "labels": labels});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn running(shared: &Shared) -> usize {
        shared.with(|reconciler| reconciler.snapshot().references().counts("r").running_pods)
    }

    #[test]
    fn pods_that_a_new_list_lacks_are_gone() {
        let (outlet, shared) = outlet(Source::Pods);
        let mut pods = Pods {
            outlet,
            listed: BTreeSet::new(),
            is_listing: true,
        };
        pods.begin();
        pods.seen(light("a"));
        pods.seen(light("b"));
        pods.listed("1");
        pods.seen(light("c"));
        assert_eq!(running(&shared), 3);
        pods.begin();
        pods.seen(light("b"));
        assert_eq!(running(&shared), 3, "not before the list is complete");
        pods.listed("2");
        assert_eq!(running(&shared), 1);
        pods.gone(light("b"));
        assert_eq!(running(&shared), 0);
    }

    #[test]
    fn namespaces_that_a_new_list_lacks_are_gone() {
        let (outlet, shared) = outlet(Source::Namespaces);
        let mut namespaces = Namespaces {
            outlet,
            known: BTreeSet::new(),
            listed: BTreeSet::new(),
        };
        let count = || shared.with(|reconciler| reconciler.snapshot().references().counts("r").namespaces);
        namespaces.begin();
        namespaces.seen(light("a"));
        namespaces.listed("1");
        namespaces.seen(light("b"));
        assert_eq!(count(), 2);
        namespaces.begin();
        namespaces.seen(light("b"));
        namespaces.listed("2");
        assert_eq!(count(), 1);
        assert!(shared.with(|reconciler| reconciler.snapshot().namespace("a").is_none()));
    }
}
