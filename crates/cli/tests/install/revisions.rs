//! Two revisions side by side: an upgrade that prunes, tags, and the uninstallation of one revision.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::host::Host;

const INJECTORS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Installs two revisions, upgrades one, moves a tag between them and uninstalls both; no object is left.
pub(crate) async fn upgrade_tag_and_uninstall(host: Host) {
    let before = host.inventory().await;
    host.ok(&["install", "--profile=minimal", "-y"]).await;
    let canary = [
        "install",
        "--profile=demo",
        "--revision=canary",
        "--istio-version=1.28.2",
        "-y",
    ];
    host.ok(&canary).await;
    // The first revision keeps the default tag.
    assert_eq!(list_tags(&host).await, [["default", "default"]]);
    prune_across_versions(&host).await;
    move_and_remove_a_tag(&host).await;
    uninstall_one_revision(&host).await;
    host.ok(&["uninstall", "--purge", "-y"]).await;
    host.until_inventory(&before).await;
    assert_eq!(
        host.ok(&["uninstall", "--purge", "-y"]).await,
        "No installations found\n"
    );
}

/// Returns the rows of `tag list` without namespaces.
async fn list_tags(host: &Host) -> Vec<[String; 2]> {
    let text = host.ok(&["tag", "list"]).await;
    let rows = text.lines().skip(1).map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        [words.next().unwrap(), words.next().unwrap()]
    });
    rows.collect()
}

/// The objects of a component that a newer version disables are deleted, and nothing else.
async fn prune_across_versions(host: &Host) {
    let installed = host.inventory().await;
    let upgraded = host
        .ok(&[
            "upgrade",
            "--profile=demo",
            "--revision=canary",
            "--istio-version=1.29.1",
            "--set=components.egressGateways.[0].enabled=false",
            "-y",
        ])
        .await;
    host.until_no_pods("istio-egressgateway").await;
    let left = host.inventory().await;
    let deleted: BTreeSet<&String> = installed.difference(&left).collect();
    let pruned: Vec<&str> = upgraded
        .lines()
        .filter_map(|line| line.strip_prefix("pruned "))
        .collect();
    for object in ["Deployment", "Service"] {
        let name = format!("{object} istio-egressgateway");
        assert!(pruned.contains(&name.as_str()), "{upgraded}");
    }
    assert_eq!(pruned.len(), deleted.len(), "{upgraded}\ndeleted: {deleted:#?}");
    let summary = format!(" {} pruned\n", pruned.len());
    assert!(upgraded.ends_with(&summary), "{upgraded}");
    let is_deleted = |object: &&&str| {
        let (kind, name) = object.split_once(' ').unwrap();
        let (kind, name) = (format!(" {kind} "), format!("/{name}"));
        deleted
            .iter()
            .any(|one| one.contains(&kind) && one.ends_with(&name))
    };
    let count = pruned.iter().filter(is_deleted).count();
    println!(
        "pruned objects {}: {} run, {count} deleted",
        host.kind(),
        pruned.len()
    );
    assert_eq!(count, pruned.len(), "{upgraded}\ndeleted: {deleted:#?}");
}

/// A tag moves only with `--overwrite`, and its removal leaves no object.
async fn move_and_remove_a_tag(host: &Host) {
    let before = host.inventory().await;
    host.ok(&["tag", "set", "prod", "--revision=default", "-y"]).await;
    let created: Vec<String> = host.inventory().await.difference(&before).cloned().collect();
    let rejected = host.run(&["tag", "set", "prod", "--revision=canary", "-y"]).await;
    assert_eq!(rejected.code, 1, "{rejected:#?}");
    assert!(
        rejected.stderr.contains("tag \"prod\" already exists")
            && rejected.stderr.contains("move it with --overwrite"),
        "{rejected:#?}"
    );
    assert_eq!(
        list_tags(host).await,
        [["default", "default"], ["prod", "default"]]
    );
    host.ok(&["tag", "set", "prod", "--revision=canary", "--overwrite", "-y"])
        .await;
    assert_eq!(
        list_tags(host).await,
        [["default", "default"], ["prod", "canary"]]
    );
    let webhook = host
        .send("GET", &format!("{INJECTORS}/istio-revision-tag-prod"), None)
        .await;
    let service = &webhook["webhooks"][0]["clientConfig"]["service"]["name"];
    assert_eq!(service, "istiod-canary", "{webhook}");
    let moved: Vec<String> = host.inventory().await.difference(&before).cloned().collect();
    assert_eq!(moved, created);
    remove_the_tag(host).await;
    let left = host.inventory().await;
    let deleted = created.iter().filter(|object| !left.contains(*object)).count();
    println!(
        "tag objects {}: {} run, {deleted} deleted",
        host.kind(),
        created.len()
    );
    host.until_inventory(&before).await;
}

/// A tag that a namespace uses is removed only after confirmation.
async fn remove_the_tag(host: &Host) {
    let namespace = "/api/v1/namespaces/default";
    let label = |value: Value| json!({"metadata": {"labels": {"istio.io/rev": value}}});
    host.send("PATCH", namespace, Some(&label(json!("prod")))).await;
    let canceled = host.run(&["tag", "remove", "prod"]).await;
    assert_eq!(canceled.code, 1, "{canceled:#?}");
    let prompt = "Injection stops in the namespaces that use tag prod: default. Remove it?";
    assert!(canceled.stderr.contains(prompt), "{canceled:#?}");
    let removed = host.ok(&["tag", "remove", "prod", "-y"]).await;
    assert_eq!(removed, "Tag prod removed: 2 objects deleted\n");
    assert_eq!(list_tags(host).await, [["default", "default"]]);
    host.send("PATCH", namespace, Some(&label(Value::Null))).await;
}

async fn uninstall_one_revision(host: &Host) {
    assert_eq!(host.run(&["uninstall"]).await.code, 2);
    let listed = host.ok(&["uninstall", "--revision=canary", "--dry-run"]).await;
    assert!(
        listed.contains("would delete Deployment istio-system/istiod-canary"),
        "{listed}"
    );
    assert!(!listed.contains("CustomResourceDefinition"), "{listed}");
    let unknown = host.run(&["uninstall", "--revision=other", "-y"]).await;
    assert!(
        unknown
            .stderr
            .contains("no installation has the revision \"other\""),
        "{unknown:#?}"
    );
    uninstall_by_file(host, &listed).await;
    host.ok(&["verify"]).await;
}

/// A file selects its revision; a file that is not an `IstioOperator` selects nothing.
async fn uninstall_by_file(host: &Host, listed: &str) {
    let (file, other) = (host.file("canary.yaml"), host.file("other.yaml"));
    let operator = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {profile: demo, revision: canary}\n";
    std::fs::write(&file, operator).unwrap();
    std::fs::write(&other, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").unwrap();
    let uninstall = |path: &Path, flag: &'static str| {
        let path = path.to_string_lossy().into_owned();
        async move { host.run(&["uninstall", "-f", &path, flag]).await }
    };
    let rejected = uninstall(&other, "-y").await;
    assert_eq!(rejected.code, 1, "{rejected:#?}");
    let previewed = uninstall(&file, "--dry-run").await;
    assert_eq!((previewed.code, previewed.stdout.as_str()), (0, listed));
    let deleted = uninstall(&file, "-y").await;
    assert_eq!(deleted.code, 0, "{deleted:#?}");
}
