//! The objects of the town: takes the few words that matter, gives whole objects.

use mainstay_cluster::access::{Rule, granted_rules, namespace_rules, operator_rules};
use mainstay_testkit::mesh::{APP_IMAGE, APP_PORT, HELD_BY, READY, UPSTREAM};
use serde_json::{Value, json};

pub const OPERATOR_NAMESPACE: &str = "sail-operator";
pub const OPERATOR: &str = "operator";
pub const OLD: &str = "default-v1-28-2";
pub const NEW: &str = "default-v1-29-1";
pub const OLD_VERSION: &str = "v1.28.2";
pub const NEW_VERSION: &str = "v1.29.1";

/// A workload of ours: each is reached through the one before it, and its namespace asks for injection in its own way.
pub struct Shop {
    pub namespace: &'static str,
    pub name: &'static str,
    pub replicas: u32,
    /// The namespace's label.
    pub label: Option<(&'static str, &'static str)>,
    /// The template's.
    pub pod_label: Option<(&'static str, &'static str)>,
}

/// Where requests come in.
pub const GATEWAY: Shop = Shop {
    namespace: "ingress",
    name: "gateway",
    replicas: 1,
    label: Some(("istio.io/rev", OLD)),
    pod_label: None,
};

/// The way of a request behind the gateway.
pub const SHOPS: [Shop; 4] = [
    Shop {
        namespace: "shop",
        name: "front",
        replicas: 2,
        label: Some(("istio.io/rev", OLD)),
        pod_label: None,
    },
    Shop {
        namespace: "stock",
        name: "cart",
        replicas: 2,
        label: Some(("istio-injection", "enabled")),
        pod_label: None,
    },
    Shop {
        namespace: "plain",
        name: "price",
        replicas: 1,
        label: None,
        pod_label: Some(("istio.io/rev", OLD)),
    },
    Shop {
        namespace: "bank",
        name: "rate",
        replicas: 1,
        label: Some(("istio.io/rev", "prod")),
        pod_label: None,
    },
];

/// How many proxies there are, the gateway's among them.
pub fn proxies() -> usize {
    let all = SHOPS.iter().chain([&GATEWAY]);
    all.map(|shop| shop.replicas as usize).sum()
}

pub fn namespace(name: &str, label: Option<(&str, &str)>) -> Value {
    let mut namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}});
    if let Some((key, value)) = label {
        namespace["metadata"]["labels"][key] = value.into();
    }
    namespace
}

/// The mesh. Upstream's Envoy lacks Istio's own filters, so istiod must leave them out.
pub fn istio(envoy: &str) -> Value {
    json!({
        "apiVersion": "sailoperator.io/v1", "kind": "Istio", "metadata": {"name": "default"},
        "spec": {
            "version": OLD_VERSION, "namespace": "istio-system",
            "updateStrategy": {
                "type": "RevisionBased", "inactiveRevisionDeletionGracePeriodSeconds": 3, "revisionTags": ["default", "prod"],
                "workloadMigration": {"strategy": "Batched", "batched": {"batchSize": 2, "delayBetweenBatches": "1s"}},
            },
            "values": {
                "telemetry": {"enabled": false},
                "pilot": {"autoscaleEnabled": false, "env": {
                    "PILOT_ENABLE_METADATA_EXCHANGE": "false", "PILOT_ENABLE_ALPN_FILTER": "false",
                }},
                "meshConfig": {"accessLogFile": "/dev/stdout", "defaultConfig": {"binaryPath": envoy}},
            },
        },
    })
}

/// Nothing but mTLS, everywhere.
pub fn strict() -> Value {
    json!({
        "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
        "metadata": {"name": "default", "namespace": "istio-system"}, "spec": {"mtls": {"mode": "STRICT"}},
    })
}

/// A Deployment and its Service: whom it asks, and the file that keeps it from coming up. It pauses before it ends, as a cautious owner has it.
pub fn app(shop: &Shop, upstream: Option<&Shop>, hold: &str) -> Vec<Value> {
    let (namespace, name) = (shop.namespace, shop.name);
    let mut env = vec![json!({"name": HELD_BY, "value": hold})];
    if let Some(next) = upstream {
        let host = format!("{}.{}.svc.cluster.local:80", next.name, next.namespace);
        env.push(json!({"name": UPSTREAM, "value": host}));
    }
    let mut labels = json!({"app": name});
    if let Some((key, value)) = shop.pod_label {
        labels[key] = value.into();
    }
    let container = json!({
        "name": "app", "image": APP_IMAGE, "env": env, "ports": [{"name": "http", "containerPort": APP_PORT}],
        "readinessProbe": {"httpGet": {"path": READY, "port": APP_PORT}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
    });
    vec![
        deployment(
            namespace,
            name,
            shop.replicas,
            &json!({"labels": labels}),
            &container,
        ),
        service(namespace, name, APP_PORT),
    ]
}

pub fn deployment(namespace: &str, name: &str, replicas: u32, metadata: &Value, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": 30, "containers": [container]}},
        },
    })
}

pub fn service(namespace: &str, name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": port}]},
    })
}

/// A gateway as Istio's documentation has it: an empty proxy that injection fills in, and the way to the first application.
pub fn gateway() -> Vec<Value> {
    let (namespace, name) = (GATEWAY.namespace, GATEWAY.name);
    let metadata = json!({
        "labels": {"app": name, "sidecar.istio.io/inject": "true"},
        "annotations": {"inject.istio.io/templates": "gateway"},
    });
    let container = json!({"name": "istio-proxy", "image": "auto", "ports": [{"containerPort": 80}]});
    let first = &SHOPS[0];
    let host = format!("{}.{}.svc.cluster.local", first.name, first.namespace);
    vec![
        deployment(namespace, name, GATEWAY.replicas, &metadata, &container),
        service(namespace, name, 80),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
            ]},
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name, "namespace": namespace},
            "spec": {"hosts": ["*"], "gateways": [name], "http": [
                {"route": [{"destination": {"host": host, "port": {"number": 80}}}]},
            ]},
        }),
    ]
}

/// The operator's roles, as the chart that ships them has them.
pub fn roles() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let rules = |rules: &[Rule]| -> Vec<Value> { rules.iter().map(rule).collect() };
    let everywhere = [operator_rules(), granted_rules()].concat();
    let object = |kind: &str, namespace: Option<&str>, rest: Value| {
        let mut object =
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": OPERATOR}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        object
    };
    let bound = |kind: &str| {
        json!({
            "subjects": [{"kind": "User", "apiGroup": group, "name": OPERATOR}],
            "roleRef": {"apiGroup": group, "kind": kind, "name": OPERATOR},
        })
    };
    let home = Some(OPERATOR_NAMESPACE);
    vec![
        object("ClusterRole", None, json!({"rules": rules(&everywhere)})),
        object("ClusterRoleBinding", None, bound("ClusterRole")),
        object("Role", home, json!({"rules": rules(&namespace_rules())})),
        object("RoleBinding", home, bound("Role")),
    ]
}

fn rule(rule: &Rule) -> Value {
    let mut value = json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs});
    if !rule.names.is_empty() {
        value["resourceNames"] = json!(rule.names);
    }
    value
}
