//! Helpers of tests: rendered charts of all versions and value sets, and a cluster on which they are
//! installed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    dead_code,
    unreachable_pub,
    reason = "helpers of tests, of which each program uses some"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use mainstay_api::OwnerReference;
use mainstay_chart::{Dialect, RenderEnvironment, RenderOptions, Request, load_path, load_values, template};
use mainstay_cluster::apply::{ApplyError, Change, Engine, PartialApply};
use mainstay_cluster::desired::{Desired, ObjectId};
use mainstay_cluster::kinds::installed_kinds;
use mainstay_cluster::live::Live;
use mainstay_mesh::plan::ReleaseKey;
use mainstay_template::NoHost;
use mainstay_yaml::{Budget, to_json};
use serde_json::{Value, json};

/// Namespace of all releases.
pub(crate) const NAMESPACE: &str = "istio-system";

/// Charts that the operator installs, with their release names.
pub(crate) const CHARTS: [(&str, &str); 5] = [
    ("istiod", "default-istiod"),
    ("base", "default-base"),
    ("cni", "istio-cni"),
    ("ztunnel", "ztunnel"),
    ("revisiontags", "prod-revisiontags"),
];

pub(crate) fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the directory of a chart as the operator installs it.
pub(crate) fn chart(version: &str, name: &str) -> PathBuf {
    repository_root().join(format!("resources/{version}/operator/charts/{name}"))
}

/// Returns every version with available charts.
pub(crate) fn versions() -> Vec<String> {
    names(&repository_root().join("resources"), Path::is_dir)
}

/// Returns the names of the value sets of the parity tests with Helm.
pub(crate) fn value_sets() -> Vec<String> {
    names(&repository_root().join("parity/values"), Path::is_file)
}

pub(crate) fn values(set: &str) -> String {
    std::fs::read_to_string(repository_root().join("parity/values").join(set)).unwrap()
}

fn names(directory: &Path, keep: fn(&Path) -> bool) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| keep(path))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Renders a chart. Returns the objects in install order, or `None` if the chart rejects the values.
pub(crate) fn render(version: &str, name: &str, release: &str, values: &str) -> Option<Vec<Value>> {
    let loaded = load_path(&chart(version, name), Dialect::Helm4).unwrap();
    let mut request = Request::new(Dialect::Helm4);
    request.values = load_values(values.as_bytes(), Dialect::Helm4).unwrap();
    request.render = RenderOptions::new(Dialect::Helm4);
    request.render.release.name = release.into();
    request.render.release.namespace = NAMESPACE.into();
    let environment = RenderEnvironment {
        host: &mut NoHost,
        warn: &mut |_| {},
        post_renderer: None,
    };
    let output = template(&loaded, &request, environment).ok()?;
    Some(documents(&String::from_utf8(output.text).unwrap()))
}

/// Parses the objects of a YAML stream.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let parsed = text
        .split("\n---")
        .map(|text| text.trim_start_matches("---"))
        .map(|text| mainstay_yaml::parse(text.as_bytes(), &Budget::default()).unwrap())
        .map(|value| serde_json::from_str::<Value>(&to_json(&value).unwrap()).unwrap());
    parsed.filter(|value| value["kind"].is_string()).collect()
}

/// A server with an owner and a namespace, an engine, and the cache of live objects.
pub(crate) struct Fixture {
    pub(crate) client: Client,
    pub(crate) engine: Engine,
    pub(crate) live: Live,
    pub(crate) owner: OwnerReference,
}

impl Fixture {
    /// Creates a fixture with namespaces and an owner. The owner must exist, because objects with a
    /// missing owner are garbage-collected.
    pub(crate) async fn new(client: Client) -> Self {
        let mut fixture = Self {
            engine: Engine::new(client.clone()),
            client,
            live: Live::default(),
            owner: OwnerReference::default(),
        };
        // Some value sets use another namespace.
        for name in [NAMESPACE, "mesh-control"] {
            fixture
                .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await;
        }
        fixture.owner = fixture.create_owner("owner").await;
        fixture
    }

    /// Creates an object and returns an owner reference to it.
    pub(crate) async fn create_owner(&self, name: &str) -> OwnerReference {
        let api_version = "rbac.authorization.k8s.io/v1";
        let made = self
            .create(&json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": name}}))
            .await;
        OwnerReference {
            api_version: api_version.into(),
            kind: "ClusterRole".into(),
            name: name.into(),
            uid: made["metadata"]["uid"].as_str().unwrap().into(),
            controller: true,
            block_owner_deletion: true,
        }
    }

    pub(crate) fn api(&self, object: &Value) -> Api<DynamicObject> {
        let version = object["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
        let mut resource = ApiResource::from_gvk(&kind);
        if let Some(known) = installed_kinds().find(|known| known.kind == kind.kind) {
            resource.plural = known.plural.into();
        }
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Value {
        let parsed = serde_json::from_value(object.clone()).unwrap();
        let made = self.api(object).create(&PostParams::default(), &parsed).await;
        serde_json::to_value(made.unwrap_or_else(|error| panic!("{error}: {object}"))).unwrap()
    }

    /// Sends a JSON patch as another field manager. Returns the changed object.
    pub(crate) async fn patch_as(&self, object: &Value, patch: &Value, manager: &str) -> Value {
        let params = PatchParams {
            field_manager: Some(manager.into()),
            ..PatchParams::default()
        };
        let name = object["metadata"]["name"].as_str().unwrap();
        let patched = self
            .api(object)
            .patch(
                name,
                &params,
                &Patch::Json::<()>(serde_json::from_value(patch.clone()).unwrap()),
            )
            .await;
        serde_json::to_value(patched.unwrap_or_else(|error| panic!("{error}: {patch} on {object}"))).unwrap()
    }

    pub(crate) async fn get(&self, object: &Value) -> Option<Value> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = self.api(object).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(found).unwrap())
    }

    pub(crate) fn key(&self, release: &str) -> ReleaseKey {
        ReleaseKey {
            owner: self.owner.uid.clone(),
            namespace: NAMESPACE.into(),
            name: release.into(),
        }
    }

    pub(crate) async fn desired(&self, release: &str, rendered: Vec<Value>) -> Desired {
        let desired = self
            .engine
            .desired(self.key(release), self.owner.clone(), rendered)
            .await;
        desired.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Installs a release, and records the changes in the cache.
    pub(crate) async fn install(&mut self, desired: &Desired) -> Result<Vec<Change>, ApplyError> {
        let known = self.live.extract(desired);
        match self.engine.install(desired, known).await {
            Ok(changes) => {
                self.live.record_all(&changes);
                Ok(changes)
            }
            Err(PartialApply { changes, error }) => {
                self.live.record_all(&changes);
                Err(error)
            }
        }
    }

    /// Whether the server also rejects the object if it is created with a POST request, as Helm does.
    pub(crate) async fn is_rejected(&self, desired: &Desired, error: &ApplyError) -> bool {
        let ApplyError::Rejected { id, .. } = error else {
            return false;
        };
        let mut body = desired.get(id).unwrap().body.clone();
        body["metadata"]["name"] = json!(format!("{}-again", id.name));
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let Ok(parsed) = serde_json::from_value(body.clone()) else {
            return true;
        };
        self.api(&body).create(&params, &parsed).await.is_err()
    }

    pub(crate) async fn uninstall(&mut self, release: &str) -> Vec<Change> {
        let key = self.key(release);
        let done = self.engine.uninstall(&key, self.live.release(&key)).await;
        let changes = done.unwrap_or_else(|stopped| panic!("{}", stopped.error));
        self.live.record_all(&changes);
        changes
    }

    /// Simulates a restart: clears the cache and records the objects with our label, as watches do.
    pub(crate) async fn restart(&mut self) {
        self.live = Live::default();
        for object in self.list_all().await {
            if object["metadata"]["labels"]["managed-by"] == "sail-operator" {
                self.observe(&object);
            }
        }
    }

    /// Records a changed object in the cache, as a watch does.
    pub(crate) fn observe(&mut self, object: &Value) {
        let id = ObjectId::from_object(object).unwrap();
        if object["metadata"]["labels"]["managed-by"] == "sail-operator" {
            self.live.record(id, Some(Arc::new(object.clone())));
        } else {
            self.live.remove(&id, object);
        }
    }

    /// Lists every object of the kinds that charts install.
    pub(crate) async fn list_all(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for kind in installed_kinds() {
            let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let Ok(list) = api.list(&ListParams::default()).await else {
                continue;
            };
            all.extend(list.items.into_iter().map(|item| {
                let mut item = serde_json::to_value(item).unwrap();
                item["apiVersion"] = json!(kind.api_version());
                item["kind"] = json!(kind.kind);
                item
            }));
        }
        all
    }

    /// Returns the objects of a release by kind and name, without fields that differ between installations.
    pub(crate) async fn state(&self, release: &str) -> BTreeMap<String, Value> {
        let is_of_release = |object: &Value| {
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] == json!(release)
                && object["metadata"]["labels"]["applyset.kubernetes.io/id"].is_null()
        };
        let all = self.list_all().await.into_iter().filter(is_of_release);
        all.map(|object| {
            let name = format!(
                "{} {}",
                object["kind"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap()
            );
            (name, without_volatile_fields(object))
        })
        .collect()
    }

    /// Returns the resource version of every object of a release. They are equal if nothing was written
    /// in between.
    pub(crate) async fn versions(&self, release: &str) -> BTreeMap<String, Value> {
        let all = self.list_all().await.into_iter().filter(|object| {
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] == json!(release)
        });
        all.map(|object| {
            let name = format!(
                "{} {}",
                object["kind"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap()
            );
            (name, object["metadata"]["resourceVersion"].clone())
        })
        .collect()
    }
}

/// Removes fields that differ between installations.
pub(crate) fn without_volatile_fields(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for name in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generation",
    ] {
        metadata.remove(name);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("deprecated.daemonset.template.generation");
        annotations.remove("deployment.kubernetes.io/revision");
    }
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        labels.remove("applyset.kubernetes.io/part-of");
    }
    if object["kind"] == "Service" {
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    for list in ["containers", "initContainers"] {
        let containers = object
            .pointer_mut(&format!("/spec/template/spec/{list}"))
            .and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            // The server derives the pull policy from the tag of the first image, and does not change it
            // later.
            container.as_object_mut().unwrap().remove("imagePullPolicy");
        }
    }
    object.as_object_mut().unwrap().remove("status");
    object
}

/// Formats each change in one line.
pub(crate) fn summaries(changes: &[Change]) -> Vec<String> {
    let summarize = |change: &Change| {
        let why = change
            .reason
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        format!("{:?} {} {}: {why}", change.kind, change.id.kind, change.id.name)
    };
    changes.iter().map(summarize).collect()
}

/// Returns the definition of the only kind in the charts that is not built into Kubernetes.
pub(crate) fn attachment_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
        "spec": {
            "group": "k8s.cni.cncf.io",
            "scope": "Namespaced",
            "names": {
                "kind": "NetworkAttachmentDefinition", "plural": "network-attachment-definitions",
                "singular": "network-attachment-definition",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
