//! Commands against a served cluster.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use mainstay_api::delivery::{ActionResult, ActionVerb, DeploymentPhase};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::host::{Host, call, check, command, offline};
use crate::state::{Shop, revision};

const ACTIONS: &str = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/deploymentactions";

#[tokio::test]
async fn documents_are_applied_once() {
    let host = Host::start().await;
    check(
        "apply-no-definitions",
        &host
            .run("admin", &["rollout", "apply", "-f", "proposal.yaml"])
            .await,
    );
    host.run("admin", &["crds", "install", "--only", "delivery"])
        .await;
    for (name, user, arguments) in [
        (
            "apply-forbidden",
            "guest",
            &["rollout", "apply", "-f", "proposal.yaml"][..],
        ),
        (
            "apply-server",
            "admin",
            &["rollout", "apply", "-f", "proposal.yaml", "--dry-run=server"],
        ),
        (
            "apply-created",
            "admin",
            &["rollout", "apply", "-f", "proposal.yaml"],
        ),
        (
            "apply-unchanged",
            "admin",
            &["rollout", "apply", "-f", "proposal.yaml"],
        ),
        (
            "apply-no-namespace",
            "admin",
            &["rollout", "apply", "-f", "new.yaml", "-n", "nowhere"],
        ),
        (
            "apply-half",
            "admin",
            &["rollout", "apply", "-f", "several", "-f", "invalid/port.yaml"],
        ),
        (
            "apply-oam-created",
            "admin",
            &["rollout", "apply", "-f", "appdeployment.yaml"],
        ),
        (
            "status-new",
            "admin",
            &["rollout", "status", "example-app-deploy"],
        ),
    ] {
        check(name, &host.run(user, arguments).await);
    }
    let path =
        "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/applicationdeployments/example-appdeploy";
    let stored = call(&host.client(), "GET", path, &Value::Null).await.unwrap();
    let weights: Vec<_> = stored["spec"]["traffic"]["http"][0]["weightedTargets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| target["weight"].as_u64())
        .collect();
    assert_eq!(weights, [Some(100), Some(0)]);
    // An invalid document keeps the valid ones before it from being written.
    let path = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/clusters/prod-1";
    assert!(call(&host.client(), "GET", path, &Value::Null).await.is_err());
}

/// Fields of another manager are taken over only on request.
#[tokio::test]
async fn conflicts_are_reported() {
    let host = Host::with_definitions().await;
    let path = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/clusters";
    let cluster = json!({
        "apiVersion": "delivery.mainstay.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": "prod-cluster-1"},
        "spec": {"kubeconfigSecretRef": {"name": "other"}},
    });
    call(
        &host.client(),
        "POST",
        &format!("{path}?fieldManager=other"),
        &cluster,
    )
    .await
    .unwrap();
    let arguments = ["rollout", "apply", "-f", "proposal.yaml"];
    check("apply-conflict", &host.run("admin", &arguments).await);
    let forced = host
        .run("admin", &[&arguments[..], &["--force-conflicts"]].concat())
        .await;
    assert!(forced.contains("cluster/prod-cluster-1 configured\n"), "{forced}");
}

#[tokio::test]
async fn status_is_read_from_the_conditions() {
    let host = Host::with_definitions().await;
    check("status-empty", &host.run("admin", &["rollout", "status"]).await);
    check(
        "status-unknown",
        &host.run("admin", &["rollout", "status", "shop"]).await,
    );
    let mut shop = Shop::paused();
    assert_eq!(shop.phase(), DeploymentPhase::Paused);
    host.store(&shop.object(1)).await;
    for (name, arguments) in [
        ("status-paused", &["rollout", "status", "shop"][..]),
        ("status-list", &["rollout", "status"]),
        ("status-all", &["rollout", "status", "-A"]),
        ("status-other", &["rollout", "status", "cart"]),
    ] {
        check(name, &host.run("admin", arguments).await);
    }
    let json = host
        .run("admin", &["rollout", "status", "shop", "-o", "json"])
        .await;
    let json = json.split_once('\n').unwrap().1.split("--- exit").next().unwrap();
    let printed: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        printed["status"]["conditions"],
        shop.object(1)["status"]["conditions"]
    );
    shop.request(ActionVerb::Abort);
    assert_eq!(shop.phase(), DeploymentPhase::Aborted);
    host.store(&shop.object(1)).await;
    check(
        "status-aborted",
        &host.run("admin", &["rollout", "status", "shop"]).await,
    );
    host.store(&Shop::deployed().object(1)).await;
    check(
        "status-healthy",
        &host.run("admin", &["rollout", "status", "shop"]).await,
    );
    check(
        "status-guest",
        &host.run("guest", &["rollout", "status", "shop"]).await,
    );
}

/// A plan of a stored deployment continues at the step of its status.
#[tokio::test]
async fn a_stored_deployment_is_planned_from_its_status() {
    let host = Host::with_definitions().await;
    let at = "--at=2027-01-15T08:10:00Z";
    check(
        "plan-live-unknown",
        &host.run("admin", &["rollout", "plan", "shop", at]).await,
    );
    host.store(&Shop::paused().object(1)).await;
    for name in ["shop-v1", "shop-v2"] {
        let object = serde_json::to_value(revision(name)).unwrap();
        let path = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/applicationrevisions";
        call(&host.client(), "POST", path, &object).await.unwrap();
    }
    let cluster = json!({
        "apiVersion": "delivery.mainstay.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "prod-1", "namespace": "default"},
        "spec": {"kubeconfigSecretRef": {"name": "prod-1"}},
        "status": {},
    });
    host.store(&cluster).await;
    let live = host.run("admin", &["rollout", "plan", "shop", at]).await;
    check("plan-live", &live);
    check_snapshot(&host, at, &live).await;
    let arguments = ["rollout", "plan", "-f", "back.yaml", "--live", at];
    check("plan-live-change", &host.run("admin", &arguments).await);
    let down = json!([{"type": "Ready", "status": "False", "reason": "ClusterUnreachable", "message": "",
        "lastTransitionTime": "2027-01-15T08:09:00Z"}]);
    let mut cluster = cluster;
    cluster["status"] = json!({"conditions": down});
    host.store(&cluster).await;
    let text = host.run("admin", &["rollout", "plan", "shop", at]).await;
    assert!(
        text.contains("unreachable: prod-1") && text.contains("--- exit 2"),
        "{text}"
    );
    assert!(!text.contains("(host), prod-1"), "{text}");
}

/// Checks that the plan of a snapshot equals the plan of the cluster.
async fn check_snapshot(host: &Host, at: &str, live: &str) {
    let mut items = Vec::new();
    for plural in ["applicationdeployments", "applicationrevisions", "clusters"] {
        let path = format!("/apis/delivery.mainstay.dev/v1alpha1/{plural}");
        let list = call(&host.client(), "GET", &path, &Value::Null).await.unwrap();
        items.extend(list["items"].as_array().unwrap().clone());
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("now.yaml");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&file, list.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    let planned = offline(&["rollout", "plan", "shop", "--snapshot", file, at]);
    assert_eq!(body(&planned), body(live));
    let unknown = offline(&["rollout", "plan", "cart", "--snapshot", file]);
    assert!(
        unknown.contains("hint: name one of shop\n") && unknown.ends_with("--- exit 1\n"),
        "{unknown}"
    );
}

/// Runs an action command, passes the created actions to the planner, and deletes them.
async fn act(host: &Host, shop: &mut Shop, arguments: &[&str]) -> String {
    host.store(&shop.object(1)).await;
    let printed = host.run("admin", arguments).await;
    let list = call(&host.client(), "GET", ACTIONS, &Value::Null).await.unwrap();
    for action in list["items"].as_array().unwrap() {
        let handled = shop.handle(action);
        assert_eq!(handled.status.result, Some(ActionResult::Accepted), "{printed}");
        let name = action["metadata"]["name"].as_str().unwrap();
        call(
            &host.client(),
            "DELETE",
            &format!("{ACTIONS}/{name}"),
            &Value::Null,
        )
        .await
        .unwrap();
    }
    without_suffix(&printed)
}

/// Replaces the random end of generated names.
fn without_suffix(printed: &str) -> String {
    let line = |line: &str| match line
        .strip_prefix("deploymentaction/")
        .and_then(|rest| rest.split_once('-'))
    {
        Some((verb, rest)) => {
            let word = rest.split_once(' ').map(|(_, word)| word).unwrap_or_default();
            format!("deploymentaction/{verb}-xxxxx {word}\n")
        }
        None => format!("{line}\n"),
    };
    printed.lines().map(line).collect()
}

#[tokio::test]
async fn actions_are_accepted_by_the_planner() {
    let host = Host::with_definitions().await;
    let mut shop = Shop::paused();
    let mut printed = String::new();
    for arguments in [
        &["rollout", "promote", "shop", "--dry-run"][..],
        &["rollout", "pause", "shop"],
        &["rollout", "resume", "shop"],
        &["rollout", "promote", "shop", "--step", "2"],
    ] {
        printed.push_str(&act(&host, &mut shop, arguments).await);
    }
    assert_eq!(shop.phase(), DeploymentPhase::Healthy);
    printed.push_str(&act(&host, &mut shop, &["rollout", "undo", "shop"]).await);
    assert_eq!(shop.phase(), DeploymentPhase::Aborted);
    let mut shop = Shop::paused();
    printed.push_str(&act(&host, &mut shop, &["rollout", "promote", "shop", "--full"]).await);
    assert_eq!(shop.phase(), DeploymentPhase::Healthy);
    let mut shop = Shop::paused();
    printed.push_str(&act(&host, &mut shop, &["rollout", "abort", "shop"]).await);
    assert_eq!(shop.phase(), DeploymentPhase::Aborted);
    printed.push_str(&act(&host, &mut shop, &["rollout", "retry", "shop"]).await);
    assert_eq!(shop.phase(), DeploymentPhase::Paused, "at its first pause again");
    check("actions", &printed);
}

#[tokio::test]
async fn actions_that_the_phase_does_not_allow_are_rejected() {
    let host = Host::with_definitions().await;
    let mut printed = String::new();
    let mut states = [
        (
            Shop::paused(),
            &["resume", "promote --step 3", "pause --wait 1ms"][..],
        ),
        (
            Shop::deployed(),
            &["promote", "pause", "resume", "abort", "retry", "undo"],
        ),
    ];
    for (shop, commands) in &mut states {
        host.store(&shop.object(1)).await;
        for text in *commands {
            let words: Vec<&str> = text.split(' ').collect();
            let arguments = [&["rollout", words[0], "shop"], &words[1..]].concat();
            let text = host.run("admin", &arguments).await;
            assert!(text.ends_with("--- exit 1\n"), "{text}");
            printed.push_str(&replace_names(&text));
        }
    }
    let text = host.run("admin", &["rollout", "promote", "cart"]).await;
    printed.push_str(&text);
    check("actions-rejected", &printed);
    let list = call(&host.client(), "GET", ACTIONS, &Value::Null).await.unwrap();
    // Only `pause --wait` is valid, and it is not handled before its timeout.
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

/// Replaces the random end of generated names anywhere in a line.
fn replace_names(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("deploymentaction/pause-") {
        out.push_str(before);
        out.push_str("deploymentaction/pause-xxxxx");
        rest = after.find(' ').map_or("", |at| &after[at..]);
    }
    out + rest
}

#[tokio::test]
async fn undo_replaces_the_revision() {
    let host = Host::with_definitions().await;
    host.store(&Shop::paused().object(1)).await;
    let undo = |revision: &'static str| ["rollout", "undo", "shop", "--to-revision", revision];
    check("undo-unknown", &host.run("admin", &undo("shop-v9")).await);
    for name in ["shop-v1", "shop-v2"] {
        let object = serde_json::to_value(revision(name)).unwrap();
        let path = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/applicationrevisions";
        call(&host.client(), "POST", path, &object).await.unwrap();
    }
    check("undo-unknown-of", &host.run("admin", &undo("shop-v9")).await);
    check("undo-same", &host.run("admin", &undo("shop-v2")).await);
    let dry = host
        .run("admin", &[&undo("shop-v1")[..], &["--dry-run"]].concat())
        .await;
    check("undo-dry", &dry);
    check("undo", &host.run("admin", &undo("shop-v1")).await);
    let path = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/applicationdeployments/shop";
    let stored = call(&host.client(), "GET", path, &Value::Null).await.unwrap();
    assert_eq!(stored["spec"]["appRevisions"][0]["revisionName"], "shop-v1");
    assert_eq!(
        stored["spec"]["traffic"]["http"][0]["weightedTargets"][0]["revisionName"],
        "shop-v1"
    );
    host.run("admin", &["rollout", "apply", "-f", "proposal.yaml"])
        .await;
    let arguments = [
        "rollout",
        "undo",
        "example-app-deploy",
        "--to-revision",
        "shop-v1",
    ];
    check("undo-several", &host.run("admin", &arguments).await);
}

/// Without a terminal, one line is printed per change, and the command exits when the rollout ends.
#[tokio::test]
async fn watch_prints_changes_until_the_end() {
    let host = Host::with_definitions().await;
    let mut shop = Shop::paused();
    host.store(&shop.object(1)).await;
    let mut child = command(&["rollout", "watch", "shop", "--keep", "--kubeconfig"])
        .arg(host.kubeconfig("admin"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = tokio::task::spawn_blocking(move || {
        let first = lines.next().unwrap().unwrap();
        (first, lines)
    });
    let (first, lines) = first.await.unwrap();
    shop.request(ActionVerb::Promote);
    host.store(&shop.object(1)).await;
    let rest = tokio::task::spawn_blocking(move || {
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        (rest, child.wait().unwrap().code())
    });
    let (rest, code) = rest.await.unwrap();
    let text = format!("{first}\n{}\n--- exit {code:?}\n", rest.join("\n"));
    check("watch", &text);
    check("watch-paused", &{
        host.store(&Shop::paused().object(1)).await;
        host.run("admin", &["rollout", "watch", "shop"]).await
    });
}

/// Ctrl-C ends the command without an error and without leaving objects in the cluster.
#[tokio::test]
async fn an_interrupted_watch_leaves_nothing() {
    let host = Host::with_definitions().await;
    host.store(&Shop::paused().object(1)).await;
    let mut child = command(&["rollout", "watch", "shop", "--keep", "--kubeconfig"])
        .arg(host.kubeconfig("admin"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let (mut child, reader) = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (child, reader)
    })
    .await
    .unwrap();
    let id = i32::try_from(child.id()).unwrap();
    kill(Pid::from_raw(id), Signal::SIGINT).unwrap();
    let (code, error) = tokio::task::spawn_blocking(move || {
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        let code = child.wait().unwrap().code();
        drop(reader);
        (code, error)
    })
    .await
    .unwrap();
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let list = call(&host.client(), "GET", ACTIONS, &Value::Null).await.unwrap();
    assert!(list["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn clusters_are_listed_with_their_health() {
    let host = Host::with_definitions().await;
    check("cluster-none", &host.run("admin", &["cluster", "list"]).await);
    let cluster = |name: &str, usage: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "delivery.mainstay.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name, "namespace": "default", "labels": {"usage": usage}},
            "spec": spec, "status": status,
        })
    };
    let secret = |name: &str| json!({"kubeconfigSecretRef": {"name": name}});
    let ready = |status: &str, reason: &str| {
        json!([{"type": "Ready", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-15T12:00:00Z"}])
    };
    let mut drained = secret("b");
    drained["unschedulable"] = json!(true);
    host.store(&cluster(
        "prod-1",
        "production",
        secret("a"),
        json!({"conditions": ready("True", "Ready"), "version": "v1.36.0"}),
    ))
    .await;
    host.store(&cluster(
        "prod-2",
        "production",
        drained,
        json!({"conditions": ready("False", "ClusterUnreachable")}),
    ))
    .await;
    host.store(&cluster("test", "testing", secret("c"), json!({})))
        .await;
    check("cluster-list", &host.run("admin", &["cluster", "list"]).await);
    check(
        "cluster-label",
        &host
            .run("admin", &["cluster", "list", "-l", "usage=testing", "-A"])
            .await,
    );
    check("cluster-guest", &host.run("guest", &["cluster", "list"]).await);
}
