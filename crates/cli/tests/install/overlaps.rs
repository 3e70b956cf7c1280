//! A second injector for the same pods prevents an upgrade before anything is written.

use serde_json::{Value, json};

use super::host::Host;

const INJECTORS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const NAME: &str = "other-injector";

/// Returns a webhook configuration that handles the pods of the default tag.
fn injector() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"istio.io/rev": "other"}},
        "webhooks": [{
            "name": "namespace.sidecar-injector.istio.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/inject"},
            "namespaceSelector": {"matchLabels": {"istio-injection": "enabled"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    })
}

/// Without `--force` a command writes nothing; with it, the upgrade continues.
pub(crate) async fn prevent_an_upgrade(host: Host) {
    let before = host.inventory().await;
    host.ok(&["install", "--profile=minimal", "--istio-version=1.28.2", "-y"])
        .await;
    let created = host.send("POST", INJECTORS, Some(&injector())).await;
    assert_eq!(created["metadata"]["name"], NAME, "{created}");
    let installed = host.inventory().await;
    let commands: [&[&str]; 3] = [
        &["upgrade"],
        &["upgrade", "--dry-run"],
        &["install", "--profile=minimal"],
    ];
    for command in commands {
        let requests = host.requests();
        let rejected = host
            .run(&[command, &["--istio-version=1.29.1", "-y"]].concat())
            .await;
        assert_eq!(rejected.code, 1, "{rejected:#?}");
        check_message(&rejected.stderr);
        assert!(
            rejected.stderr.contains("Error: the cluster is not eligible"),
            "{rejected:#?}"
        );
        let since = host.requests().since(requests);
        assert!(since.writes == 0 && since.reads > 0, "{command:?}: {since:?}");
        assert_eq!(host.inventory().await, installed, "{command:?}");
    }
    let forced = host
        .run(&["upgrade", "--istio-version=1.29.1", "-y", "--force"])
        .await;
    assert_eq!(forced.code, 0, "{forced:#?}");
    check_message(&forced.stderr);
    assert!(forced.stdout.contains("Installation complete: "), "{forced:#?}");
    host.ok(&["verify", "--istio-version=1.29.1"]).await;
    host.send("DELETE", &format!("{INJECTORS}/{NAME}"), None).await;
    host.ok(&["uninstall", "--purge", "-y"]).await;
    host.until_inventory(&before).await;
    let (kind, count) = (host.kind(), commands.len());
    println!("commands with overlapping webhooks {kind}: {count} run, {count} without a write");
}

fn check_message(stderr: &str) {
    let line = stderr.lines().find(|line| line.starts_with("error: webhooks "));
    let line = line.unwrap_or_else(|| panic!("no overlap: {stderr}"));
    assert!(
        line.contains("other-injector/namespace.sidecar-injector.istio.io")
            && line.contains(" handle the same pods (namespace istio-injection=enabled"),
        "{line}"
    );
    assert!(
        stderr.contains("hint: remove one of them, or move the default tag"),
        "{stderr}"
    );
}
