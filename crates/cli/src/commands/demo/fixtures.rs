//! Objects that the demo applies: a mesh, five namespaces and twelve workloads with different injection
//! labels.

use std::time::Duration;

use mainstay_cluster::deploy::document;
use serde_json::{Map, Value, json};

use crate::error::{CliError, Kind};

/// Versions of the upgrade.
pub(super) const OLD_VERSION: &str = "v1.28.2";
pub(super) const NEW_VERSION: &str = "v1.29.1";
/// Revisions of these versions.
pub(super) const OLD: &str = "default-v1-28-2";
pub(super) const NEW: &str = "default-v1-29-1";

/// An image that is no longer in the registry, and its replacement.
const MISSING_IMAGE: &str = "registry.example/billing:2.4.0";
pub(super) const NEW_IMAGE: &str = "registry.example/billing:2.4.1";
/// The workload with the missing image.
pub(super) const FAILING: (&str, &str) = ("payments", "billing");
/// The workload with the skip annotation.
pub(super) const SKIPPED: (&str, &str) = ("platform", "audit");

const SKIP: &str = "sailoperator.io/skip-migration";
const REVISION: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
const INJECT: &str = "sidecar.istio.io/inject";

/// A namespace with the label that selects its revision.
pub(super) struct Namespace {
    pub(super) name: &'static str,
    label: Option<(&'static str, &'static str)>,
    pub(super) selected_by: &'static str,
}

/// One namespace for each way to select a revision.
pub(super) const NAMESPACES: [Namespace; 5] = [
    Namespace {
        name: "analytics",
        label: None,
        selected_by: "istio.io/rev on each pod template",
    },
    Namespace {
        name: "catalog",
        label: Some((INJECTION, "enabled")),
        selected_by: "istio-injection=enabled",
    },
    Namespace {
        name: "payments",
        label: Some((REVISION, "prod")),
        selected_by: "istio.io/rev=prod, a tag",
    },
    Namespace {
        name: "platform",
        label: Some((INJECTION, "enabled")),
        selected_by: "istio-injection=enabled",
    },
    Namespace {
        name: "shop",
        label: Some((REVISION, OLD)),
        selected_by: "istio.io/rev=default-v1-28-2",
    },
];

/// A workload of the demo.
pub(super) struct Workload {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    replicas: u32,
    /// Readiness time in seconds.
    seconds: u64,
    label: Option<(&'static str, &'static str)>,
    annotation: Option<(&'static str, &'static str)>,
    pub(super) remark: &'static str,
}

const PLAIN: Workload = Workload {
    namespace: "",
    name: "",
    kind: "Deployment",
    replicas: 2,
    seconds: 4,
    label: None,
    annotation: None,
    remark: "",
};

/// All workloads by namespace.
pub(super) const WORKLOADS: [Workload; 12] = [
    Workload {
        namespace: "analytics",
        name: "queries",
        label: Some((REVISION, OLD)),
        ..PLAIN
    },
    Workload {
        namespace: "analytics",
        name: "reports",
        label: Some((REVISION, OLD)),
        replicas: 1,
        ..PLAIN
    },
    Workload {
        namespace: "catalog",
        name: "products",
        replicas: 3,
        ..PLAIN
    },
    Workload {
        namespace: "catalog",
        name: "search",
        kind: "StatefulSet",
        ..PLAIN
    },
    Workload {
        namespace: "payments",
        name: "fraud",
        seconds: 7,
        ..PLAIN
    },
    Workload {
        namespace: "payments",
        name: "gateway",
        replicas: 3,
        ..PLAIN
    },
    Workload {
        namespace: "payments",
        name: "billing",
        remark: "its image is no longer in the registry: new pods cannot start",
        ..PLAIN
    },
    Workload {
        namespace: "platform",
        name: "audit",
        annotation: Some((SKIP, "true")),
        remark: "sailoperator.io/skip-migration: restarted manually",
        ..PLAIN
    },
    Workload {
        namespace: "platform",
        name: "backup",
        label: Some((INJECT, "false")),
        remark: "sidecar.istio.io/inject=false: not in the mesh",
        ..PLAIN
    },
    Workload {
        namespace: "shop",
        name: "cart",
        ..PLAIN
    },
    Workload {
        namespace: "shop",
        name: "checkout",
        seconds: 6,
        ..PLAIN
    },
    Workload {
        namespace: "shop",
        name: "web",
        replicas: 4,
        ..PLAIN
    },
];

impl Workload {
    /// Returns its readiness time.
    pub(super) fn readiness(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Whether its pods get no proxy.
    pub(super) fn is_outside(&self) -> bool {
        self.label == Some((INJECT, "false"))
    }

    /// Returns the API path.
    pub(super) fn path(&self) -> String {
        let plural = format!("{}s", self.kind.to_lowercase());
        format!(
            "/apis/apps/v1/namespaces/{}/{plural}/{}",
            self.namespace, self.name
        )
    }

    fn image(&self) -> String {
        if (self.namespace, self.name) == FAILING {
            return MISSING_IMAGE.to_owned();
        }
        format!("registry.example/{}:1.0.0", self.name)
    }

    fn object(&self) -> Value {
        let app = json!({"app": self.name});
        let mut spec = json!({
            "replicas": self.replicas, "selector": {"matchLabels": app}, "template": {
                "metadata": {"labels": with(&app, self.label)},
                "spec": {"containers": [{"name": self.name, "image": self.image()}]},
            },
        });
        if let (Value::Object(fields), "StatefulSet") = (&mut spec, self.kind) {
            fields.insert("serviceName".into(), json!(self.name));
        }
        let mut metadata = json!({"name": self.name, "namespace": self.namespace});
        if let (Value::Object(fields), Some(_)) = (&mut metadata, self.annotation) {
            fields.insert("annotations".into(), with(&json!({}), self.annotation));
        }
        json!({"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": spec})
    }
}

/// Returns a map with an additional entry.
fn with(map: &Value, entry: Option<(&str, &str)>) -> Value {
    let mut map: Map<String, Value> = map.as_object().cloned().unwrap_or_default();
    map.extend(entry.map(|(key, value)| (key.to_owned(), json!(value))));
    Value::Object(map)
}

/// Returns the Istio.
pub(super) fn istio() -> Value {
    json!({
        "apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"},
        "spec": {
            "version": OLD_VERSION, "namespace": "istio-system",
            "updateStrategy": {
                "type": "RevisionBased", "revisionTags": ["default", "prod"],
                "workloadMigration": {
                    "strategy": "Batched", "kinds": ["Deployment", "StatefulSet"],
                    "batched": {"batchSize": 3, "delayBetweenBatches": "10s", "readinessTimeout": "1m"},
                },
            },
        },
    })
}

/// Returns a namespace.
pub(super) fn namespace(name: &str, label: Option<(&str, &str)>) -> Value {
    let mut metadata = json!({"name": name});
    if let (Value::Object(fields), Some(_)) = (&mut metadata, label) {
        fields.insert("labels".into(), with(&json!({}), label));
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// Returns the namespaces and workloads.
pub(super) fn workloads() -> Vec<Value> {
    let namespaces = NAMESPACES.iter().map(|one| namespace(one.name, one.label));
    namespaces.chain(WORKLOADS.iter().map(Workload::object)).collect()
}

/// Formats an object as YAML.
pub(super) fn text(object: &Value) -> Result<String, CliError> {
    document(object).map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))
}

/// Formats all objects in the order in which they are applied.
pub(super) fn manifests() -> Result<String, CliError> {
    let mut out = text(&namespace("istio-system", None))?;
    for object in std::iter::once(istio()).chain(workloads()) {
        out.extend(["---\n", &text(&object)?]);
    }
    Ok(out)
}
