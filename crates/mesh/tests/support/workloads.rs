//! Workloads of a world, which are created, restarted, rolled out and injected as in a cluster.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use mainstay_api::names;
use mainstay_mesh::plan::{Move, Relabel};
use mainstay_mesh::references::{Labels, ReferrerKey};
use mainstay_mesh::workload::{Workload, WorkloadKey, WorkloadKind};
use mainstay_mesh::{Observation, Subject};
use serde_json::{Value, json};

use super::{World, pairs};

/// Number of pods of each workload.
pub const REPLICAS: i64 = 2;

pub fn deployment(namespace: &str, name: &str) -> WorkloadKey {
    WorkloadKey::new(namespace, WorkloadKind::Deployment, name)
}

impl World {
    /// Adds a Deployment with running pods, which are injected according to the current labels.
    pub fn app(&mut self, namespace: &str, name: &str, template: &str, annotations: &str) -> WorkloadKey {
        self.workload(deployment(namespace, name), template, annotations)
    }

    /// Adds a running workload of any kind.
    pub fn workload(&mut self, key: WorkloadKey, template: &str, annotations: &str) -> WorkloadKey {
        let object = json!({
            "metadata": {"name": key.name(), "namespace": key.namespace(), "uid": format!("uid-{key}"), "generation": 1,
                "annotations": pairs(annotations)},
            "spec": {"replicas": REPLICAS, "template": {"metadata": {"labels": pairs(template)}}},
            "status": {},
        });
        self.workloads.insert(key.clone(), object);
        self.complete_rollout(&key);
        key
    }

    /// Edits a workload as its owner would.
    pub fn change_workload(&mut self, key: &WorkloadKey, edit: impl FnOnce(&mut Value)) {
        let version = self.next_serial();
        let Some(object) = self.workloads.get_mut(key) else {
            panic!("no {key}");
        };
        edit(object);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let (_, workload) = Workload::from_object(key.kind(), object).expect("a workload");
        self.observe(Observation::Workload(key.clone(), Some(workload)));
    }

    pub fn delete_workload(&mut self, key: &WorkloadKey) {
        self.workloads.remove(key);
        self.observe(Observation::Workload(key.clone(), None));
        self.remove_pods(key);
    }

    pub fn remove_pods(&mut self, key: &WorkloadKey) {
        for index in 0..REPLICAS {
            self.pod_gone(key.namespace(), &pod_name(key, index));
        }
    }

    /// Completes the rollout of a workload. All pods are new, ready, and injected according to the current
    /// labels.
    pub fn complete_rollout(&mut self, key: &WorkloadKey) {
        let revision = self.injecting_revision(key);
        self.replace_pods(key, revision.as_deref());
        self.finish_rollout(key);
    }

    /// Completes the rollout of a workload with pods that have no proxy.
    pub fn complete_rollout_uninjected(&mut self, key: &WorkloadKey) {
        self.replace_pods(key, None);
        self.finish_rollout(key);
    }

    /// Stalls the rollout of a workload. One additional pod has the new template and is not ready; the old
    /// pods keep running.
    pub fn stall_rollout(&mut self, key: &WorkloadKey) {
        self.change_workload(key, |object| {
            let generation = object["metadata"]["generation"].clone();
            object["status"] = json!({"observedGeneration": generation, "replicas": REPLICAS + 1, "updatedReplicas": 1,
                "readyReplicas": REPLICAS, "availableReplicas": REPLICAS,
                "conditions": [{"type": "Progressing", "reason": "ReplicaSetUpdated"}]});
        });
    }

    fn finish_rollout(&mut self, key: &WorkloadKey) {
        self.change_workload(key, |object| {
            let (generation, replicas) = (object["metadata"]["generation"].clone(), object["spec"]["replicas"].clone());
            object["status"] = json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
                "conditions": [{"type": "Progressing", "reason": "NewReplicaSetAvailable"}]});
            if object["kind"] != "Deployment" {
                object["status"]["currentRevision"] = generation.clone().to_string().into();
                object["status"]["updateRevision"] = generation.to_string().into();
            }
        });
    }

    fn replace_pods(&mut self, key: &WorkloadKey, revision: Option<&str>) {
        let replicas = self
            .workloads
            .get(key)
            .map(|object| object["spec"]["replicas"].as_i64().unwrap_or(1));
        for index in 0..REPLICAS {
            let name = pod_name(key, index);
            if index >= replicas.unwrap_or_default() {
                self.observe(Observation::ReferrerGone(ReferrerKey::Pod(
                    key.namespace().to_owned(),
                    name,
                )));
                continue;
            }
            let annotations =
                revision.map(|revision| pairs(&format!("{}={revision}", names::REVISION_LABEL)));
            self.observe(Observation::Pod {
                namespace: key.namespace().to_owned(),
                name,
                labels: self.template(key),
                annotations: annotations.unwrap_or_default(),
                finished: false,
                terminating: false,
                workload: Some(key.clone()),
            });
        }
    }

    fn template(&self, key: &WorkloadKey) -> Labels {
        let labels = &self.workloads[key]["spec"]["template"]["metadata"]["labels"];
        serde_json::from_value(labels.clone()).expect("labels")
    }

    /// Returns the revision that injects new pods of a workload: the one that its namespace selects,
    /// otherwise the one that its template requests. Tags are resolved.
    fn injecting_revision(&self, key: &WorkloadKey) -> Option<String> {
        let template = self.template(key);
        let references = self.snapshot.references();
        let requested = mainstay_mesh::references::pod_reference(&template);
        let opted_out = template.get(names::INJECT_LABEL).map(String::as_str) == Some("false");
        let name = references
            .selected_by_namespace(key.namespace())
            .or(requested)
            .filter(|_| !opted_out)?;
        let revision = self
            .snapshot
            .revisions()
            .get(name)
            .map(mainstay_api::Resource::name);
        let tag = self
            .snapshot
            .tags()
            .get(name)
            .map(|tag| tag.status.istio_revision.as_str());
        revision
            .or(tag)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
    }

    pub(super) fn relabel(&mut self, relabel: &Relabel) {
        let name = relabel.object.name().to_owned();
        let known = self.last_observations.get(&format!("namespace/{name}")).cloned();
        let Some(Observation::Namespace {
            mut labels,
            annotations,
            ..
        }) = known
        else {
            panic!("no namespace {name}");
        };
        let patch = relabel.patch();
        for (key, value) in patch["metadata"]["labels"].as_object().expect("labels") {
            match value.as_str() {
                Some(value) => labels.insert(key.clone(), value.to_owned()),
                None => labels.remove(key),
            };
        }
        self.put_namespace(&name, labels, annotations);
    }

    pub(super) fn move_workload(&mut self, step: &Move) {
        let Subject::Workload(key) = &step.object.subject else {
            panic!("{} is no workload", step.object.subject);
        };
        let patch = step.patch();
        self.change_workload(key, |object| {
            merge(object, &patch);
            object["metadata"]["generation"] =
                json!(object["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        });
    }

    /// Formats the labels of a namespace as `key=value`, sorted by key.
    pub fn namespace_labels(&self, namespace: &str) -> String {
        match self.last_observations.get(&format!("namespace/{namespace}")) {
            Some(Observation::Namespace { labels, .. }) => {
                let pairs: Vec<String> = labels
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                pairs.join(" ")
            }
            _ => panic!("no namespace {namespace}"),
        }
    }
}

fn pod_name(key: &WorkloadKey, index: i64) -> String {
    format!("{}-{index}", key.name())
}

fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        object.clone_from(patch);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().expect("an object").remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}
