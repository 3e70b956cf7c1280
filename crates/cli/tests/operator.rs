//! `mainstay operator run` as a process, against a simulated cluster served over HTTPS: what it answers, how it ends, what it never says.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, GroupVersionKind, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, Client};
use mainstay_sim::auth::User;
use mainstay_sim::serve::{ServeOptions, Server};
use mainstay_sim::{Cluster, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// A secret that is in Secrets, values and the kubeconfig, and nowhere else.
const CANARY: &str = "canary-5d1f0c";

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A served cluster with our definitions.
struct Stage {
    cluster: Cluster,
    server: Server,
    admin: Client,
    folder: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Cluster::new(Options::default());
        cluster.run_workloads(1);
        let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
        let admin = Client::new(cluster.connect("admin"), "default");
        let folder = tempfile::tempdir().unwrap();
        let stage = Self {
            cluster,
            server,
            admin,
            folder,
        };
        let text = stage.server.kubeconfig(User::admin()).unwrap();
        std::fs::write(stage.kubeconfig(), text).unwrap();
        for definition in definitions() {
            stage
                .create(
                    "apiextensions.k8s.io/v1",
                    "CustomResourceDefinition",
                    None,
                    definition,
                )
                .await;
        }
        for name in ["istio-system", "sail-operator"] {
            stage
                .create("v1", "Namespace", None, json!({"metadata": {"name": name}}))
                .await;
        }
        stage
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    async fn create(&self, version: &str, kind: &str, namespace: Option<&str>, mut body: Value) {
        body["apiVersion"] = version.into();
        body["kind"] = kind.into();
        let object: DynamicObject = serde_json::from_value(body).unwrap();
        let api = self.api(version, kind, namespace);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        }
    }

    async fn state(&self, kind: &str, name: &str) -> String {
        let object = self
            .api("sailoperator.io/v1", kind, None)
            .get_opt(name)
            .await
            .unwrap();
        let state = object.and_then(|object| object.data["status"]["state"].as_str().map(str::to_owned));
        state.unwrap_or_default()
    }
}

fn definitions() -> Vec<Value> {
    let catalog = mainstay_catalog::Catalog::embedded().unwrap();
    let all: Vec<&str> = catalog.names().iter().map(|name| name.name.as_str()).collect();
    let concrete: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| name.matches('.').count() == 2)
        .collect();
    let default = catalog.default_version().unwrap().name();
    mainstay_api::crd::definitions(&mainstay_api::crd::VersionNames {
        all: &all,
        concrete: &concrete,
        ambient: &all,
        default: &default,
    })
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("POD_NAMESPACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// An operator as a process; ended at the latest when it is dropped.
struct Operator {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Operator {
    fn start(stage: &Stage, arguments: &[&str]) -> Self {
        let fixed = [
            "operator",
            "run",
            "-metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address",
            "127.0.0.1:0",
            "-zap-encoder=json",
        ];
        let mut child = command(&[&fixed, arguments].concat())
            .env("KUBECONFIG", stage.kubeconfig())
            .env("POD_NAMESPACE", "sail-operator")
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (stderr, heard) = (child.stderr.take().unwrap(), said.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut heard = heard.lock().unwrap();
                heard.push_str(&line);
                heard.push('\n');
            }
        });
        Self {
            child,
            said,
            reader: Some(reader),
        }
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The address in the line that says this.
    async fn address(&mut self, message: &str) -> SocketAddr {
        let mut found = None;
        self.wait(message, |operator| {
            let said = operator.said();
            let lines = said
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut lines =
                lines.filter(|line| line["msg"].as_str().is_some_and(|said| said.starts_with(message)));
            found = lines
                .next()
                .and_then(|line| line["address"].as_str()?.parse().ok());
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Waits until something holds.
    async fn wait(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "{what}: {ended:?}\n{}",
                self.said()
            );
            // The other end is a process: only the wall clock tells.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for its end; gives the exit code and everything it said.
    async fn ended(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(begun.elapsed() < PATIENCE, "it does not end\n{}", self.said()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.reader.take().unwrap().join().unwrap();
        (status.code(), self.said())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the metrics hold after an Istio became healthy.
const METRICS: [&str; 7] = [
    "mainstay_leader 1\n",
    "mainstay_synced 1\n",
    "mainstay_reconciles_total{kind=\"Istio\",result=\"success\"}",
    "mainstay_writes_total{action=\"create\",reason=\"Absent\"}",
    "mainstay_api_calls_total{verb=\"create\",code=\"201\"}",
    "mainstay_cache_objects{cache=\"Istio\"} 2\n",
    "mainstay_revision_referrers{revision=\"default\",by=\"namespace\"} 0\n",
];

/// Status and body of a question in plain HTTP.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let path = path.to_owned();
    let ask = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// Status and body of a scrape with this token.
async fn scrape(address: SocketAddr, token: Option<String>) -> (u16, String) {
    let ask = move || {
        let tls = ureq::tls::TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .disable_verification(true)
            .build();
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .build()
            .into();
        let mut question = agent.get(format!("https://localhost:{}/metrics", address.port()));
        if let Some(token) = token {
            question = question.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = question.call().unwrap();
        (
            answer.status().as_u16(),
            answer.body_mut().read_to_string().unwrap(),
        )
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

/// A token of a service account that may read metrics.
async fn token(stage: &Stage) -> String {
    stage
        .create(
            "v1",
            "ServiceAccount",
            Some("default"),
            json!({"metadata": {"name": "prometheus"}}),
        )
        .await;
    let role = json!({"metadata": {"name": "reader"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    stage
        .create("rbac.authorization.k8s.io/v1", "ClusterRole", None, role)
        .await;
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "prometheus"}],
    });
    stage
        .create(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            None,
            binding,
        )
        .await;
    let path = "/api/v1/namespaces/default/serviceaccounts/prometheus/token";
    let body =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .unwrap();
    let answer: Value = stage.admin.request(request).await.unwrap();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn it_serves_works_says_no_secret_and_ends_as_told() {
    let stage = Stage::new().await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": CANARY}});
    stage.create("v1", "Secret", Some("istio-system"), secret).await;
    let istio = json!({
        "metadata": {"name": "default"},
        "spec": {
            "version": "v1.29.1", "namespace": "istio-system",
            "values": {"pilot": {"env": {"PASSWORD": CANARY}}},
        },
    });
    stage.create("sailoperator.io/v1", "Istio", None, istio).await;
    // The chart refuses this one, and quotes the value.
    let broken = json!({
        "metadata": {"name": "broken"},
        "spec": {"version": "v1.29.1", "namespace": "istio-system", "values": {"global": {"platform": CANARY}}},
    });
    stage.create("sailoperator.io/v1", "Istio", None, broken).await;

    let mut operator = Operator::start(
        &stage,
        &[
            "--log-api-requests",
            "--log-enqueue-events",
            "-zap-log-level=debug",
        ],
    );
    let health = operator.address("serving /healthz").await;
    let metrics = operator.address("serving /metrics").await;
    assert_eq!(get(health, "/healthz").await, (200, "ok".into()));
    let begun = Instant::now();
    while get(health, "/readyz").await.0 != 200 || stage.state("Istio", "default").await != "Healthy" {
        assert!(begun.elapsed() < PATIENCE, "not healthy\n{}", operator.said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    assert_eq!(stage.state("Istio", "broken").await, "ReconcileError");
    assert_eq!(scrape(metrics, None).await, (401, "Unauthorized\n".into()));
    let token = token(&stage).await;
    let begun = Instant::now();
    let text = loop {
        let (status, text) = scrape(metrics, Some(token.clone())).await;
        assert_eq!(status, 200, "{text}");
        // Sizes are told now and then.
        match METRICS.iter().find(|part| !text.contains(**part)) {
            None => break text,
            Some(part) => assert!(begun.elapsed() < PATIENCE, "{part} is not in\n{text}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };

    operator.signal(Signal::SIGTERM);
    let (code, said) = operator.ended().await;
    assert_eq!(code, Some(0), "{said}");
    for part in [
        "\"msg\":\"reconciled\"",
        "Performing API request",
        "Object queued",
        "told to stop",
        "ended as asked",
        "(a value)",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let kubeconfig = std::fs::read_to_string(stage.kubeconfig()).unwrap();
    let password = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "))
        .unwrap_or(CANARY);
    let events = stage
        .api("events.k8s.io/v1", "Event", None)
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    let events = serde_json::to_string(&events.items).unwrap();
    for secret in [CANARY, password.trim_matches('"')] {
        for (place, text) in [("log", &said), ("metrics", &text), ("events", &events)] {
            assert!(!text.contains(secret), "{secret} in {place}:\n{text}");
        }
    }
    let leases = stage.api("coordination.k8s.io/v1", "Lease", Some("sail-operator"));
    let lease = leases.get("sail-operator-lock").await.unwrap();
    assert_eq!(
        lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default(),
        "",
        "given back"
    );
    drop(stage.cluster);
}

#[tokio::test]
async fn missing_definitions_are_said() {
    let cluster = Cluster::new(Options::default());
    let server = Server::start(&cluster, &ServeOptions::default()).await.unwrap();
    let stage = Stage {
        admin: Client::new(cluster.connect("admin"), "default"),
        folder: tempfile::tempdir().unwrap(),
        cluster,
        server,
    };
    std::fs::write(
        stage.kubeconfig(),
        stage.server.kubeconfig(User::admin()).unwrap(),
    )
    .unwrap();
    let mut operator = Operator::start(&stage, &["--leader-elect=false"]);
    let health = operator.address("serving /healthz").await;
    let hint = "lacks our custom resource definitions: `mainstay crds install` brings them";
    operator
        .wait("the hint", |operator| operator.said().contains(hint))
        .await;
    assert_eq!(
        get(health, "/readyz").await,
        (500, "not everything was listed yet\n".into())
    );
    assert_eq!(get(health, "/healthz").await, (200, "ok".into()));
    operator.signal(Signal::SIGTERM);
    let (code, said) = operator.ended().await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn losing_the_lease_ends_it_with_1() {
    let stage = Stage::new().await;
    let mut operator = Operator::start(&stage, &[]);
    operator
        .wait("leading", |operator| {
            operator.said().contains("leading: this process")
        })
        .await;
    let leases = stage.api("coordination.k8s.io/v1", "Lease", Some("sail-operator"));
    let mut lease = leases.get("sail-operator-lock").await.unwrap();
    lease.data["spec"]["holderIdentity"] = "somebody-else".into();
    leases
        .replace("sail-operator-lock", &PostParams::default(), &lease)
        .await
        .unwrap();
    let (code, said) = operator.ended().await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("Error: the Lease was lost: another process may lead now\n"),
        "{said}"
    );
}

#[tokio::test]
async fn a_process_that_waits_for_the_lease_is_alive_and_ends_as_told() {
    let stage = Stage::new().await;
    let now = "2999-01-01T00:00:00.000000Z";
    let lease = json!({
        "metadata": {"name": "sail-operator-lock"},
        "spec": {"holderIdentity": "sail", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now},
    });
    stage
        .create("coordination.k8s.io/v1", "Lease", Some("sail-operator"), lease)
        .await;
    let mut operator = Operator::start(&stage, &[]);
    let health = operator.address("serving /healthz").await;
    operator
        .wait("listed", |operator| {
            operator.said().contains("everything was listed")
        })
        .await;
    assert_eq!(get(health, "/readyz").await, (200, "ok".into()));
    assert!(!operator.said().contains("leading: this process"));
    operator.signal(Signal::SIGINT);
    let (code, said) = operator.ended().await;
    assert_eq!(code, Some(0), "{said}");
}

/// Exit code and stderr of an operator that must not start.
fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = command(&[&["operator", "run", "--zap-log-level=panic"], arguments].concat());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let here = [
        ("POD_NAMESPACE", "sail-operator"),
        ("HOME", folder.path().to_str().unwrap()),
    ];
    let check = |arguments: &[&str], environment: &[(&str, &str)], expected: &str| {
        let (code, text) = refused(arguments, environment);
        assert_eq!((code, text.as_str()), (Some(1), expected), "{arguments:?}");
    };
    check(
        &[],
        &[],
        "Error: can't determine namespace this operator is running in; if running outside of a pod, please set the POD_NAMESPACE environment variable\n",
    );
    let missing = path("missing.properties");
    let expected =
        format!("Error: unable to read config file at {missing}: No such file or directory (os error 2)\n");
    check(&["-config-file", &missing], &here, &expected);
    let bad = path("bad.properties");
    std::fs::write(&bad, "a=b\n  = c\n").unwrap();
    let expected = format!(
        "Error: a value without a key\n --> {bad}:2:3 (configuration error)\n  |\n2 |   = c\n  |   ^\n"
    );
    check(&["--config-file", &bad], &here, &expected);
    check(
        &["--zap-encoder=xml"],
        &here,
        "Error: invalid argument \"xml\" for \"--zap-encoder\" flag: invalid encoder value \"xml\"\n",
    );
    check(
        &["-metrics-bind-address", "8443"],
        &here,
        "Error: invalid argument \"8443\" for \"--metrics-bind-address\" flag: address 8443: missing port in address\n",
    );
    check(
        &["--platform=nomad"],
        &here,
        "Error: invalid argument \"nomad\" for \"--platform\" flag: must be kubernetes or openshift\n",
    );
    check(
        &["-no-such-flag"],
        &here,
        "Error: unknown flag: --no-such-flag\nhint: --help lists the flags\n",
    );
    let nowhere = path("charts");
    check(
        &["--resource-directory", &nowhere],
        &here,
        &format!("Error: --resource-directory {nowhere}: no such folder\n"),
    );
    let (code, text) = refused(&["--kubeconfig", &path("none")], &here);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("none") && text.contains("hint: name a cluster with --kubeconfig"),
        "{text}"
    );
}

#[test]
fn a_cluster_that_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let kubeconfig = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{token: {CANARY}}}}}]\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let (code, text) = refused(
        &["--kubeconfig", kubeconfig.to_str().unwrap()],
        &[("POD_NAMESPACE", "x")],
    );
    assert_eq!(code, Some(1));
    assert!(
        text.starts_with("Error: unable to detect platform: ") && text.contains("hint: is the cluster there"),
        "{text}"
    );
    assert!(!text.contains(CANARY), "{text}");
}

#[test]
fn version_and_help_need_no_cluster() {
    let output = command(&["operator", "run", "-version"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), text),
        (Some(0), format!("mainstay {}\n", env!("CARGO_PKG_VERSION")))
    );
    let output = command(&["operator", "run", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for flag in [
        "--metrics-bind-address",
        "--leader-elect",
        "--zap-time-encoding",
        "Examples:",
    ] {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}
