//! Three real API servers: a host and two member clusters, each with a few controllers and a hollow
//! kubelet. The tests of the program share them, and each test has its own namespace.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use kube::Client;
use mainstay_api::crd::delivery_definitions;
use mainstay_catalog::Catalog;
use mainstay_cluster::access::{Rule, delivery_rules, member_rules, operator_rules};
use mainstay_cluster::definitions::{self, istio_definitions};
use mainstay_sim::script::Script;
use mainstay_testkit::cluster::{Access, Audit, Cluster, Options, User};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::support::calls::OPERATOR;

/// Name of the host cluster: the empty string.
pub(crate) const HOST: &str = "";
/// Names of the member clusters.
pub(crate) const MEMBERS: [&str; 2] = ["east", "west"];

/// Service account of the operator in member clusters, and its user name.
const SERVICE_ACCOUNT: &str = "mainstay";
const ACCOUNT_USER: &str = "system:serviceaccount:kube-system:mainstay";

/// Controllers of each control plane: only those that rollouts need, because three control planes share the
/// machine.
const CONTROLLERS: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
];

const POD_START_STOP_TIME: Duration = Duration::from_millis(300);

/// Istio kinds that routes need.
const ROUTE_KINDS: [&str; 2] = ["VirtualService", "DestinationRule"];

/// A control plane.
pub(crate) struct Server {
    pub(crate) cluster: Mutex<Cluster>,
    pub(crate) client: Client,
    access: Access,
    kubeconfig: PathBuf,
    audit: Audit,
    /// The operator's user name.
    user: &'static str,
    _kubelet: Kubelet,
}

/// The three control planes by name.
pub(crate) struct Servers(BTreeMap<&'static str, Server>);

thread_local! {
    static SHARED: RefCell<Option<Rc<Servers>>> = const { RefCell::new(None) };
}

impl Servers {
    /// Returns the servers of this program; the first call starts them.
    pub(crate) async fn shared() -> Rc<Self> {
        if let Some(servers) = SHARED.with_borrow(Clone::clone) {
            return servers;
        }
        let names = [HOST].into_iter().chain(MEMBERS);
        let started = join_all(names.map(async |name| (name, Server::start(name).await))).await;
        let servers = Rc::new(Self(started.into_iter().collect()));
        SHARED.set(Some(Rc::clone(&servers)));
        servers
    }

    pub(crate) fn get(&self, name: &str) -> &Server {
        &self.0[name]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Server)> {
        self.0.iter().map(|(name, server)| (*name, server))
    }

    /// Returns the operator's kubeconfig for the host.
    pub(crate) fn operator_kubeconfig(&self) -> &PathBuf {
        &self.get(HOST).kubeconfig
    }

    /// Returns the operator's writes to all clusters since the start, one line each.
    pub(crate) fn writes(&self) -> Vec<String> {
        let mut writes = Vec::new();
        for (name, server) in self.iter() {
            let entries = server.audit.entries().unwrap();
            let own = entries
                .iter()
                .filter(|entry| entry.user == server.user && !entry.is_read());
            writes.extend(own.map(|entry| format!("{name}: {} {} {}", entry.verb, entry.uri, entry.code)));
        }
        writes
    }
}

impl Server {
    async fn start(name: &'static str) -> Self {
        let options = Options {
            controllers: CONTROLLERS.to_vec(),
            users: vec![
                User::new("tester", "system:masters"),
                // The role below grants its permissions.
                User::new(OPERATOR, "operators"),
            ],
            audit: true,
            ..Options::default()
        };
        let cluster = Cluster::start(options).await.unwrap();
        let options = KubeletOptions {
            nodes: 1,
            ..KubeletOptions::default()
        };
        let kubelet = Kubelet::start(&cluster, options).await.unwrap();
        let script = Script::ready_after(POD_START_STOP_TIME).stopping_after(POD_START_STOP_TIME);
        kubelet.change_scripts(|scripts| scripts.set_default(script));
        let is_host = name == HOST;
        let server = Self {
            client: cluster.client("tester").unwrap(),
            access: cluster.access(),
            kubeconfig: cluster.kubeconfig(OPERATOR),
            audit: cluster.audit(),
            user: if is_host { OPERATOR } else { ACCOUNT_USER },
            cluster: Mutex::new(cluster),
            _kubelet: kubelet,
        };
        server.install(is_host).await;
        server
    }

    /// Installs the definitions and grants the operator's permissions.
    async fn install(&self, is_host: bool) {
        let catalog = Catalog::embedded().unwrap();
        let version = catalog.installable()[0].version.clone();
        let mut all = istio_definitions(&catalog, &version).unwrap();
        all.retain(|definition| {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
            ROUTE_KINDS.contains(&kind)
        });
        let (rules, subject) = if is_host {
            all.extend(delivery_definitions());
            let rules = [operator_rules(), delivery_rules()].concat();
            (rules, json!({"kind": "User", "name": OPERATOR}))
        } else {
            let account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT}});
            self.post("/api/v1/namespaces/kube-system/serviceaccounts", &account)
                .await;
            let subject =
                json!({"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": "kube-system"});
            (member_rules(), subject)
        };
        definitions::install(&self.client, &all, |_, _| {}).await.unwrap();
        self.grant(&rules, &subject).await;
    }

    async fn grant(&self, rules: &[Rule], subject: &Value) {
        let group = "rbac.authorization.k8s.io";
        let root = format!("/apis/{group}/v1");
        let metadata = json!({"name": SERVICE_ACCOUNT});
        let policy =
            |rule: &Rule| json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs});
        let rules: Vec<Value> = rules
            .iter()
            .filter(|one| one.names.is_empty())
            .map(policy)
            .collect();
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules});
        self.post(&format!("{root}/clusterroles"), &role).await;
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": SERVICE_ACCOUNT},
            "subjects": [subject],
        });
        self.post(&format!("{root}/clusterrolebindings"), &binding).await;
    }

    /// Sends a request with the permissions of an administrator.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let format = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", format);
        self.client.request(request.body(bytes).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Value {
        let response = self.call("POST", path, Some(object)).await;
        response.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.call("GET", path, None).await.ok()
    }

    /// Returns a kubeconfig with a token of the operator's account. The token is valid while the Secret
    /// `session` exists.
    pub(crate) async fn member_kubeconfig(&self, session: &str) -> Value {
        let secrets = "/api/v1/namespaces/kube-system/secrets";
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": session}});
        let secret = self.post(secrets, &secret).await;
        let bound =
            json!({"apiVersion": "v1", "kind": "Secret", "name": session, "uid": secret["metadata"]["uid"]});
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200, "boundObjectRef": bound, "audiences": null},
        });
        let path = format!("/api/v1/namespaces/kube-system/serviceaccounts/{SERVICE_ACCOUNT}/token");
        let token = self.post(&path, &request).await["status"]["token"].clone();
        let authority = STANDARD.encode(std::fs::read(&self.access.authority).unwrap());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "main",
            "clusters": [{"name": "c", "cluster": {
                "server": self.access.server, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        })
    }

    /// Revokes the token of a session.
    pub(crate) async fn revoke(&self, session: &str) {
        let path = format!("/api/v1/namespaces/kube-system/secrets/{session}");
        self.call("DELETE", &path, None).await.unwrap();
    }
}
