//! `mainstay operator run` as a process, against a simulated cluster served over HTTPS: endpoints, exit
//! codes, and logs without secrets.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod charts;
mod metrics;
mod process;
mod stage;

use std::time::{Duration, Instant};

use kube::api::PostParams;
use nix::sys::signal::Signal;
use serde_json::json;

use metrics::{METRICS, get, scrape, token};
use process::{EXIT_TIMEOUT, Operator, command};
use stage::Stage;

/// A secret string in Secrets and values, which must not occur in logs, metrics and events.
const CANARY: &str = "canary-5d1f0c";

#[tokio::test]
async fn the_operator_serves_reconciles_logs_no_secret_and_stops_on_signals() {
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
    // The chart rejects this value and quotes it.
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
        assert!(begun.elapsed() < EXIT_TIMEOUT, "not healthy\n{}", operator.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    assert_eq!(stage.state("Istio", "broken").await, "ReconcileError");
    assert_eq!(scrape(metrics, None).await, (401, "Unauthorized\n".into()));
    let token = token(&stage).await;
    let begun = Instant::now();
    let text = loop {
        let (status, text) = scrape(metrics, Some(token.clone())).await;
        assert_eq!(status, 200, "{text}");
        // Cache sizes are updated periodically.
        match METRICS.iter().find(|part| !text.contains(**part)) {
            None => break text,
            Some(part) => assert!(begun.elapsed() < EXIT_TIMEOUT, "{part} is not in\n{text}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };

    operator.signal(Signal::SIGTERM);
    let (code, log) = operator.wait_for_exit().await;
    assert_eq!(code, Some(0), "{log}");
    for part in [
        "\"msg\":\"reconciled\"",
        "Performing API request",
        "Object queued",
        "received signal",
        "stopped",
        "(a value)",
    ] {
        assert!(log.contains(part), "{part} is not in\n{log}");
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
        for (place, text) in [("log", &log), ("metrics", &text), ("events", &events)] {
            assert!(!text.contains(secret), "{secret} in {place}:\n{text}");
        }
    }
    let leases = stage.api("coordination.k8s.io/v1", "Lease", Some("sail-operator"));
    let lease = leases.get("sail-operator-lock").await.unwrap();
    assert_eq!(
        lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default(),
        "",
        "the Lease is released"
    );
}

/// Kind and name of the objects that the operator reconciles.
const OBJECTS: [(&str, &str); 6] = [
    ("Istio", "default"),
    ("Istio", "second"),
    ("Istio", "third"),
    ("IstioRevision", "own"),
    ("IstioCNI", "default"),
    ("ZTunnel", "default"),
];

async fn create_objects(stage: &Stage) {
    for (kind, name) in OBJECTS {
        let mut spec = json!({"version": "v1.29.1", "namespace": "istio-system"});
        if kind == "IstioRevision" {
            spec["values"] = json!({"revision": name, "global": {"istioNamespace": "istio-system"}});
        }
        if name == "second" {
            spec["updateStrategy"] = json!({"type": "RevisionBased"});
        }
        let object = json!({"metadata": {"name": name}, "spec": spec});
        stage.create("sailoperator.io/v1", kind, None, object).await;
    }
}

/// Whether every object has a state in its status.
async fn are_reported(stage: &Stage) -> bool {
    for (kind, name) in OBJECTS {
        if stage.state(kind, name).await.is_empty() {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn health_checks_and_shutdown_work_with_several_objects_and_reconciles() {
    let counts = ["1", "2", "5"];
    for count in counts {
        let stage = Stage::new().await;
        create_objects(&stage).await;
        let mut operator = Operator::start(&stage, &["--max-concurrent-reconciles", count]);
        let health = operator.address("serving /healthz").await;
        let begun = Instant::now();
        while !are_reported(&stage).await {
            let response = tokio::time::timeout(EXIT_TIMEOUT, get(health, "/healthz")).await;
            assert_eq!(response.unwrap(), (200, "ok".into()), "{count} at once");
            assert!(
                begun.elapsed() < EXIT_TIMEOUT,
                "{count} at once\n{}",
                operator.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        operator.signal(Signal::SIGTERM);
        let (code, log) = operator.wait_for_exit().await;
        assert_eq!(code, Some(0), "{count} at once: {log}");
    }
    println!(
        "harden concurrency: /healthz and SIGTERM with {} objects and {} at once",
        OBJECTS.len(),
        counts.join(", ")
    );
}

#[tokio::test]
async fn missing_definitions_are_reported() {
    let stage = Stage::bare().await;
    let mut operator = Operator::start(&stage, &["--leader-elect=false"]);
    let health = operator.address("serving /healthz").await;
    let hint = "custom resource definitions are missing; run `mainstay crds install`";
    operator
        .wait("the hint", |operator| operator.log().contains(hint))
        .await;
    assert_eq!(
        get(health, "/readyz").await,
        (500, "not every watch has been listed yet\n".into())
    );
    assert_eq!(get(health, "/healthz").await, (200, "ok".into()));
    operator.signal(Signal::SIGTERM);
    let (code, log) = operator.wait_for_exit().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn losing_the_lease_exits_with_1() {
    let stage = Stage::new().await;
    let mut operator = Operator::start(&stage, &[]);
    operator
        .wait("leading", |operator| operator.log().contains("became the leader"))
        .await;
    let leases = stage.api("coordination.k8s.io/v1", "Lease", Some("sail-operator"));
    let mut lease = leases.get("sail-operator-lock").await.unwrap();
    lease.data["spec"]["holderIdentity"] = "another-process".into();
    leases
        .replace("sail-operator-lock", &PostParams::default(), &lease)
        .await
        .unwrap();
    let (code, log) = operator.wait_for_exit().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains("Error: the Lease was lost: another process may be the leader\n"),
        "{log}"
    );
}

#[tokio::test]
async fn a_process_that_waits_for_the_lease_is_ready_and_stops_on_signals() {
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
        .wait("listed", |operator| operator.log().contains("caches synced"))
        .await;
    assert_eq!(get(health, "/readyz").await, (200, "ok".into()));
    assert!(!operator.log().contains("became the leader"));
    operator.signal(Signal::SIGINT);
    let (code, log) = operator.wait_for_exit().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Runs an operator that must not start; returns its exit code and stderr.
fn rejected(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = command(&[&["operator", "run", "--zap-log-level=panic"], arguments].concat());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn invalid_configurations_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let here = [
        ("POD_NAMESPACE", "sail-operator"),
        ("HOME", directory.path().to_str().unwrap()),
    ];
    let check = |arguments: &[&str], environment: &[(&str, &str)], expected: &str| {
        let (code, text) = rejected(arguments, environment);
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
        "Error: invalid argument \"xml\" for \"--zap-encoder\" flag: invalid encoder value \"xml\"\nhint: correct the value; run `mainstay operator run --help` for examples\n",
    );
    check(
        &["-metrics-bind-address", "8443"],
        &here,
        "Error: invalid argument \"8443\" for \"--metrics-bind-address\" flag: address 8443: missing port in address\nhint: correct the value; run `mainstay operator run --help` for examples\n",
    );
    check(
        &["--platform=nomad"],
        &here,
        "Error: invalid argument \"nomad\" for \"--platform\" flag: must be kubernetes or openshift\nhint: correct the value; run `mainstay operator run --help` for examples\n",
    );
    check(
        &["-no-such-flag"],
        &here,
        "Error: unknown flag: --no-such-flag\nhint: remove it; run `mainstay operator run --help` to list the flags\n",
    );
    let nowhere = path("charts");
    check(
        &["--resource-directory", &nowhere],
        &here,
        &format!(
            "Error: --resource-directory {nowhere}: no such directory\nhint: name a directory with VERSION/charts\n"
        ),
    );
    let (code, text) = rejected(&["--kubeconfig", &path("none")], &here);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("none") && text.contains("hint: select a cluster with --kubeconfig"),
        "{text}"
    );
}

#[test]
fn an_unreachable_cluster_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let kubeconfig = directory.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{token: {CANARY}}}}}]\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let (code, text) = rejected(
        &["--kubeconfig", kubeconfig.to_str().unwrap()],
        &[("POD_NAMESPACE", "x")],
    );
    assert_eq!(code, Some(1));
    assert!(
        text.starts_with("Error: unable to detect platform: ")
            && text.contains("hint: check that the cluster runs"),
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
