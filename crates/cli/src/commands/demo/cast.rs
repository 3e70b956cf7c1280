//! The cast, as tables: takes nothing, gives the objects that the demo applies: a mesh, five namespaces, twelve workloads with labels of every
//! kind.

use std::time::Duration;

use mainstay_cluster::deploy::document;
use serde_json::{Map, Value, json};

use crate::error::{CliError, Kind};

/// From where to where.
pub(super) const OLD_VERSION: &str = "v1.28.2";
pub(super) const NEW_VERSION: &str = "v1.29.1";
/// The revisions that follow from these.
pub(super) const OLD: &str = "default-v1-28-2";
pub(super) const NEW: &str = "default-v1-29-1";

/// An image that was in the registry when its pods started, and is not any more; and the one that is.
const LOST_IMAGE: &str = "registry.example/ledger:2.4.0";
pub(super) const NEW_IMAGE: &str = "registry.example/ledger:2.4.1";
/// Who notices.
pub(super) const FAILING: (&str, &str) = ("payments", "ledger");
/// Who asks to be left alone.
pub(super) const SKIPPED: (&str, &str) = ("platform", "audit");

const SKIP: &str = "sailoperator.io/skip-migration";
const REVISION: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
const INJECT: &str = "sidecar.istio.io/inject";

/// A namespace: its name, the label that chooses its revision, and in words.
pub(super) struct Space {
    pub(super) name: &'static str,
    label: Option<(&'static str, &'static str)>,
    pub(super) chosen_by: &'static str,
}

/// One of each kind.
pub(super) const SPACES: [Space; 5] = [
    Space {
        name: "analytics",
        label: None,
        chosen_by: "istio.io/rev on each pod template",
    },
    Space {
        name: "catalog",
        label: Some((INJECTION, "enabled")),
        chosen_by: "istio-injection=enabled",
    },
    Space {
        name: "payments",
        label: Some((REVISION, "prod")),
        chosen_by: "istio.io/rev=prod, a tag",
    },
    Space {
        name: "platform",
        label: Some((INJECTION, "enabled")),
        chosen_by: "istio-injection=enabled",
    },
    Space {
        name: "shop",
        label: Some((REVISION, OLD)),
        chosen_by: "istio.io/rev=default-v1-28-2",
    },
];

/// A workload.
pub(super) struct Actor {
    pub(super) space: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    replicas: u32,
    /// From its start to ready, in seconds.
    seconds: u64,
    label: Option<(&'static str, &'static str)>,
    annotation: Option<(&'static str, &'static str)>,
    pub(super) remark: &'static str,
}

const PLAIN: Actor = Actor {
    space: "",
    name: "",
    kind: "Deployment",
    replicas: 2,
    seconds: 4,
    label: None,
    annotation: None,
    remark: "",
};

/// Everybody, by namespace.
pub(super) const ACTORS: [Actor; 12] = [
    Actor {
        space: "analytics",
        name: "queries",
        label: Some((REVISION, OLD)),
        ..PLAIN
    },
    Actor {
        space: "analytics",
        name: "reports",
        label: Some((REVISION, OLD)),
        replicas: 1,
        ..PLAIN
    },
    Actor {
        space: "catalog",
        name: "products",
        replicas: 3,
        ..PLAIN
    },
    Actor {
        space: "catalog",
        name: "search",
        kind: "StatefulSet",
        ..PLAIN
    },
    Actor {
        space: "payments",
        name: "fraud",
        seconds: 7,
        ..PLAIN
    },
    Actor {
        space: "payments",
        name: "gateway",
        replicas: 3,
        ..PLAIN
    },
    Actor {
        space: "payments",
        name: "ledger",
        remark: "its image has vanished from the registry: it cannot start anew",
        ..PLAIN
    },
    Actor {
        space: "platform",
        name: "audit",
        annotation: Some((SKIP, "true")),
        remark: "sailoperator.io/skip-migration: its owner restarts it",
        ..PLAIN
    },
    Actor {
        space: "platform",
        name: "backup",
        label: Some((INJECT, "false")),
        remark: "sidecar.istio.io/inject=false: not in the mesh",
        ..PLAIN
    },
    Actor {
        space: "shop",
        name: "cart",
        ..PLAIN
    },
    Actor {
        space: "shop",
        name: "checkout",
        seconds: 6,
        ..PLAIN
    },
    Actor {
        space: "shop",
        name: "web",
        replicas: 4,
        ..PLAIN
    },
];

impl Actor {
    /// From its start to ready.
    pub(super) fn readiness(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Whether its pods never get a proxy.
    pub(super) fn is_outside(&self) -> bool {
        self.label == Some((INJECT, "false"))
    }

    /// Where its object is served.
    pub(super) fn path(&self) -> String {
        let plural = format!("{}s", self.kind.to_lowercase());
        format!("/apis/apps/v1/namespaces/{}/{plural}/{}", self.space, self.name)
    }

    fn image(&self) -> String {
        if (self.space, self.name) == FAILING {
            return LOST_IMAGE.to_owned();
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
        let mut metadata = json!({"name": self.name, "namespace": self.space});
        if let (Value::Object(fields), Some(_)) = (&mut metadata, self.annotation) {
            fields.insert("annotations".into(), with(&json!({}), self.annotation));
        }
        json!({"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": spec})
    }
}

/// A map with one entry more.
fn with(map: &Value, entry: Option<(&str, &str)>) -> Value {
    let mut map: Map<String, Value> = map.as_object().cloned().unwrap_or_default();
    map.extend(entry.map(|(key, value)| (key.to_owned(), json!(value))));
    Value::Object(map)
}

/// The mesh.
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

/// A namespace of this name.
pub(super) fn namespace(name: &str, label: Option<(&str, &str)>) -> Value {
    let mut metadata = json!({"name": name});
    if let (Value::Object(fields), Some(_)) = (&mut metadata, label) {
        fields.insert("labels".into(), with(&json!({}), label));
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// Namespaces, then workloads.
pub(super) fn workloads() -> Vec<Value> {
    let spaces = SPACES.iter().map(|space| namespace(space.name, space.label));
    spaces.chain(ACTORS.iter().map(Actor::object)).collect()
}

/// An object as a person would write it.
pub(super) fn text(object: &Value) -> Result<String, CliError> {
    document(object).map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))
}

/// Everything, to be applied in this order.
pub(super) fn manifests() -> Result<String, CliError> {
    let mut out = text(&namespace("istio-system", None))?;
    for object in std::iter::once(istio()).chain(workloads()) {
        out.extend(["---\n", &text(&object)?]);
    }
    Ok(out)
}
