//! Objects of the test mesh.

use mainstay_cluster::access::{Rule, delivery_rules, granted_rules, namespace_rules, operator_rules};
use mainstay_testkit::mesh::{APP_IMAGE, APP_PORT, HOLD_FILE, READY, UPSTREAM};
use serde_json::{Value, json};

pub const OPERATOR_NAMESPACE: &str = "sail-operator";
pub const OPERATOR: &str = "operator";
pub const OLD: &str = "default-v1-28-2";
pub const NEW: &str = "default-v1-29-1";
pub const OLD_VERSION: &str = "v1.28.2";
pub const NEW_VERSION: &str = "v1.29.1";

/// A workload. Each workload is called by the previous one, and their namespaces request injection in
/// different ways.
pub struct App {
    pub namespace: &'static str,
    pub name: &'static str,
    pub replicas: u32,
    /// Label of the namespace.
    pub label: Option<(&'static str, &'static str)>,
    /// Label of the template.
    pub pod_label: Option<(&'static str, &'static str)>,
}

/// The ingress gateway.
pub const GATEWAY: App = App {
    namespace: "ingress",
    name: "gateway",
    replicas: 1,
    label: Some(("istio.io/rev", OLD)),
    pod_label: None,
};

/// Applications that a request passes after the gateway, in order.
pub const APPS: [App; 4] = [
    App {
        namespace: "web",
        name: "front",
        replicas: 2,
        label: Some(("istio.io/rev", OLD)),
        pod_label: None,
    },
    App {
        namespace: "stock",
        name: "cart",
        replicas: 2,
        label: Some(("istio-injection", "enabled")),
        pod_label: None,
    },
    App {
        namespace: "plain",
        name: "price",
        replicas: 1,
        label: None,
        pod_label: Some(("istio.io/rev", OLD)),
    },
    App {
        namespace: "bank",
        name: "rate",
        replicas: 1,
        label: Some(("istio.io/rev", "prod")),
        pod_label: None,
    },
];

/// Returns the number of proxies, including the gateway's.
pub fn proxies() -> usize {
    let all = APPS.iter().chain([&GATEWAY]);
    all.map(|app| app.replicas as usize).sum()
}

pub fn namespace(name: &str, label: Option<(&str, &str)>) -> Value {
    let mut namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}});
    if let Some((key, value)) = label {
        namespace["metadata"]["labels"][key] = value.into();
    }
    namespace
}

/// Returns the mesh. Upstream's Envoy does not contain Istio's own filters, so istiod must not configure
/// them.
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

/// Returns a policy that requires mutual TLS in the complete mesh.
pub fn strict_mtls() -> Value {
    json!({
        "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
        "metadata": {"name": "default", "namespace": "istio-system"}, "spec": {"mtls": {"mode": "STRICT"}},
    })
}

/// Returns Deployment and Service of an application. It calls `upstream`, is unready while the file `hold`
/// exists, and sleeps before it stops, for a graceful shutdown.
pub fn app(app: &App, upstream: Option<&App>, hold: &str) -> Vec<Value> {
    let (namespace, name) = (app.namespace, app.name);
    let mut env = vec![json!({"name": HOLD_FILE, "value": hold})];
    if let Some(next) = upstream {
        let host = format!("{}.{}.svc.cluster.local:80", next.name, next.namespace);
        env.push(json!({"name": UPSTREAM, "value": host}));
    }
    let mut labels = json!({"app": name});
    if let Some((key, value)) = app.pod_label {
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
            app.replicas,
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

/// Returns the gateway and the route to the first application.
pub fn gateway_with_route() -> Vec<Value> {
    let (namespace, name) = (GATEWAY.namespace, GATEWAY.name);
    let first = &APPS[0];
    let host = format!("{}.{}.svc.cluster.local", first.name, first.namespace);
    let route = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name, "namespace": namespace},
        "spec": {"hosts": ["*"], "gateways": [name], "http": [
            {"route": [{"destination": {"host": host, "port": {"number": 80}}}]},
        ]},
    });
    gateway().into_iter().chain([route]).collect()
}

/// Returns a gateway as in Istio's documentation, with a proxy container that injection completes.
pub fn gateway() -> Vec<Value> {
    let (namespace, name) = (GATEWAY.namespace, GATEWAY.name);
    let metadata = json!({
        "labels": {"app": name, "sidecar.istio.io/inject": "true"},
        "annotations": {"inject.istio.io/templates": "gateway"},
    });
    let container = json!({"name": "istio-proxy", "image": "auto", "ports": [{"containerPort": 80}]});
    vec![
        deployment(namespace, name, GATEWAY.replicas, &metadata, &container),
        service(namespace, name, 80),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"app": name}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
            ]},
        }),
    ]
}

/// Returns the same gateway with a `Gateway` of Gateway API, which refers to the Service of the proxy.
pub fn gateway_of_gateway_api() -> Vec<Value> {
    let (namespace, name) = (GATEWAY.namespace, GATEWAY.name);
    let address = format!("{name}.{namespace}.svc.cluster.local");
    let mut objects = gateway();
    objects.retain(|object| object["kind"] != "Gateway");
    objects.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "gatewayClassName": "istio", "addresses": [{"type": "Hostname", "value": address}],
            "listeners": [{
                "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
            }],
        },
    }));
    objects
}

/// Returns the operator's roles, as in its chart with application delivery.
pub fn roles() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let rules = |rules: &[Rule]| -> Vec<Value> { rules.iter().map(rule).collect() };
    let everywhere = [operator_rules(), granted_rules(), delivery_rules()].concat();
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
