//! `install`, `verify`, `upgrade`, `tag`, `manifest diff`, `precheck`, `uninstall` and `adopt` of the
//! real binary on a simulated cluster and on a real API server, and SIGKILL during an installation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

mod install {
    pub(crate) mod addons;
    pub(crate) mod adopt;
    pub(crate) mod helm;
    pub(crate) mod host;
    pub(crate) mod kill;
    pub(crate) mod overlaps;
    pub(crate) mod revisions;
    pub(crate) mod tags;
}

use std::collections::BTreeSet;
use std::process::ExitCode;

use install::host::{Host, outcome};
use install::{addons, adopt, kill, overlaps, revisions, tags};
use mainstay_catalog::Catalog;
use mainstay_sim::script::Script;
use mainstay_testkit::SAMPLE;
use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::{suite, test_cases};
use serde_json::json;

fn main() -> ExitCode {
    if Catalog::embedded().unwrap().installable().is_empty() {
        println!("not tested: this build embeds no charts, run `cargo xtask charts` first");
        return ExitCode::FAILURE;
    }
    let mut peers = PARTS.to_vec();
    peers.extend(["istioctl", "helm3", "helm4"]);
    let mut cases = test_cases![
            "life_cycle_simulated" => async { life_cycle(Host::simulated().await, &["--profile", "demo"]).await },
            "life_cycle_real" => async { life_cycle(Host::real().await, &["--profile", "ambient"]).await },
            "revisions_simulated" => async { revisions::upgrade_tag_and_uninstall(Host::simulated().await).await },
            "a_failed_component_stops_its_children_real" => async { failed_component(Host::real().await).await },
            "overlapping_webhooks_prevent_an_upgrade_simulated" => async { overlaps::prevent_an_upgrade(Host::simulated().await).await },
            "addons_are_installed_and_uninstalled_simulated" => async { addons::life_cycle(Host::simulated().await).await },
            "addons_without_definitions_fail_alone_simulated" => async { addons::missing_definitions(Host::simulated().await).await },
            "differences_are_reported_simulated" => async { differences(Host::simulated().await).await },
            "a_foreign_object_is_not_taken_simulated" => async { foreign(Host::simulated().await).await },
            "checks_before_an_installation_simulated" => async { prechecks(Host::simulated().await).await },
            "manifests_are_compared_simulated" => async { manifest_diff(Host::simulated().await).await },
            "tags_equal_those_of_istioctl_simulated" => async { tags::equal_to_istioctl(Host::simulated().await).await },
            "adoptions_list_differences_real" => async { adopt::differences_are_listed_and_nothing_is_written(Host::audited().await).await },
            "releases_of_helm_are_converted_simulated" => async { adopt::releases_are_converted_from_every_source(Host::simulated().await).await },
            "a_dump_of_a_helm_installation_is_rehearsed_simulated" => async { adopt::a_dump_of_a_helm_installation_is_rehearsed(Host::simulated().await).await },
            "killed_installations_converge_simulated" => async { kill::kill_after_each_write().await },
        ]
        .to_vec();
    // These take minutes on a real server, so only the full proof runs them.
    if std::env::var_os(SAMPLE).is_none() {
        cases.extend(test_cases![
            "revisions_real" => async { revisions::upgrade_tag_and_uninstall(Host::real().await).await },
            "overlapping_webhooks_prevent_an_upgrade_real" => async { overlaps::prevent_an_upgrade(Host::audited().await).await },
            "killed_installations_converge_real" => async { kill::kill_after_each_write_real().await },
        ]);
    }
    suite::main(&peers, &cases)
}

/// Installs, verifies, installs again, upgrades, tags and uninstalls; no object is left.
async fn life_cycle(host: Host, profile: &[&str]) {
    let before = host.inventory().await;
    let with = |arguments: &[&'static str]| -> Vec<&str> { [arguments, profile].concat() };
    let installed = host
        .ok(&with(&["install", "--istio-version=1.28.2", "-y", "--verify"]))
        .await;
    assert!(installed.contains("Istio core: ready"), "{installed}");
    assert!(installed.contains("No problems found: "), "{installed}");
    let again = host.ok(&with(&["install", "--istio-version=1.28.2", "-y"])).await;
    assert!(again.contains(" objects, 0 written, 0 pruned"), "{again}");
    let preview = host.ok(&["upgrade", "--istio-version=1.29.1", "--dry-run"]).await;
    assert!(preview.contains("~ Deployment istio-system/istiod"), "{preview}");
    let unchanged = host.run(&["verify", "--istio-version=1.28.2"]).await;
    assert_eq!(unchanged.code, 0, "a dry run wrote something: {unchanged:#?}");
    let skipped = host.run(&["upgrade", "--istio-version=1.27.9", "-y"]).await;
    assert!(
        skipped.stderr.contains("is older than the installed version"),
        "{skipped:#?}"
    );
    assert_eq!(skipped.code, 1);
    let upgraded = host.ok(&["upgrade", "--istio-version=1.29.1", "-y"]).await;
    assert!(upgraded.contains("Installation complete: "), "{upgraded}");
    let verified = host.ok(&["verify"]).await;
    assert!(verified.starts_with("No problems found: "), "{verified}");
    host.ok(&["tag", "set", "prod", "--revision=default", "-y"]).await;
    let tags = host.ok(&["tag", "list", "-o", "json"]).await;
    assert!(
        tags.contains("\"prod\"") && tags.contains("\"default\""),
        "{tags}"
    );
    let installed: BTreeSet<String> = host.inventory().await.difference(&before).cloned().collect();
    let used = host.run(&["uninstall", "--revision=default", "-y"]).await;
    assert!(used.stderr.contains("the revision is in use"), "{used:#?}");
    let purged = host.ok(&["uninstall", "--purge", "-y"]).await;
    assert!(purged.contains("Uninstall complete: "), "{purged}");
    host.until_inventory(&before).await;
    let left = host.inventory().await;
    let deleted = installed.iter().filter(|object| !left.contains(*object)).count();
    println!(
        "life cycle {}: {} run, {deleted} deleted",
        host.kind(),
        installed.len()
    );
}

/// The reason why a pod does not start is printed, and dependents of a failed component are not started.
async fn failed_component(host: Host) {
    host.set_script("istio-ingressgateway", Script::image_pull_error());
    let failed = host
        .run(&["install", "--profile=default", "-y", "--readiness-timeout=15s"])
        .await;
    assert_eq!(failed.code, 1, "{failed:#?}");
    let gateway = "Ingress gateways: not ready after 15 s\n  Deployment istio-system/istio-ingressgateway: ";
    assert!(failed.stdout.contains(gateway), "{failed:#?}");
    assert!(
        failed.stdout.contains("container istio-proxy: ErrImagePull")
            || failed.stdout.contains("ImagePullBackOff"),
        "{failed:#?}"
    );
    assert!(failed.stdout.contains("Istiod: ready"), "{failed:#?}");
    assert!(failed.stderr.contains("1 of 3 components failed"), "{failed:#?}");
    let verified = host.run(&["verify"]).await;
    assert_eq!(verified.code, 1);
    let unready = "Deployment istio-system/istio-ingressgateway: not ready: ";
    assert!(verified.stdout.contains(unready), "{verified:#?}");
    // If a Service already exists, its component is not applied, and dependents of the component are not
    // started.
    host.ok(&["uninstall", "--purge", "-y"]).await;
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "istiod", "annotations": {"meta.helm.sh/release-name": "istiod"}},
        "spec": {"ports": [{"port": 1}]}});
    host.send("POST", "/api/v1/namespaces/istio-system/services", Some(&service))
        .await;
    let stopped = host.run(&["install", "--profile=default", "-y"]).await;
    assert_eq!(stopped.code, 1, "{stopped:#?}");
    assert!(
        stopped
            .stdout
            .contains("it belongs to the Helm release \"istiod\""),
        "{stopped:#?}"
    );
    assert!(
        stopped
            .stdout
            .contains("Ingress gateways: skipped because Istiod failed"),
        "{stopped:#?}"
    );
}

/// Every missing and different object is reported with its field.
async fn differences(host: Host) {
    host.ok(&["install", "--profile=minimal", "-y"]).await;
    let deployments = "/apis/apps/v1/namespaces/istio-system/deployments/istiod";
    let image = json!({"metadata": {"labels": {"app": "other"}}});
    host.send("PATCH", deployments, Some(&image)).await;
    host.send("DELETE", "/api/v1/namespaces/istio-system/configmaps/istio", None)
        .await;
    let found = host.run(&["verify"]).await;
    assert_eq!(found.code, 1, "{found:#?}");
    assert!(
        found.stdout.contains("ConfigMap istio-system/istio: missing"),
        "{found:#?}"
    );
    assert!(
        found
            .stdout
            .contains("metadata.labels.app is \"other\", configured is \"istiod\""),
        "{found:#?}"
    );
    assert!(found.stdout.contains("2 of "), "{found:#?}");
    let json = host.run(&["verify", "-o", "json"]).await;
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report["problems"].as_array().unwrap().len(), 2);
    let repaired = host.ok(&["install", "--profile=minimal", "-y"]).await;
    assert!(repaired.contains(" 2 written, 0 pruned"), "{repaired}");
    host.ok(&["verify"]).await;
}

/// A component is not written if one of its objects already exists and belongs to another tool.
async fn foreign(host: Host) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "istio", "labels": {"applyset.kubernetes.io/part-of": "other"}}, "data": {"a": "b"}});
    host.send("POST", "/api/v1/namespaces/istio-system/configmaps", Some(&map))
        .await;
    let failed = host.run(&["install", "--profile=minimal", "-y"]).await;
    assert_eq!(failed.code, 1, "{failed:#?}");
    assert!(
        failed.stdout.contains("it is a member of the set \"other\""),
        "{failed:#?}"
    );
    let kept = host
        .send("GET", "/api/v1/namespaces/istio-system/configmaps/istio", None)
        .await;
    assert_eq!(kept["data"], json!({"a": "b"}));
    let purged = host.ok(&["uninstall", "--purge", "-y"]).await;
    assert!(purged.contains("Uninstall complete"), "{purged}");
    let kept = host
        .send("GET", "/api/v1/namespaces/istio-system/configmaps/istio", None)
        .await;
    assert_eq!(kept["data"], json!({"a": "b"}));
}

/// Missing permissions are reported; without `-y` the command requires confirmation.
async fn prechecks(host: Host) {
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
    let metadata = json!({"name": "reader"});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}]});
    let collection = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    host.send("POST", collection, Some(&role)).await;
    host.send(
        "POST",
        &collection.replace("roles", "rolebindings"),
        Some(&binding),
    )
    .await;
    let mut command = host.command(&["precheck", "-o", "json"]);
    command.env("KUBECONFIG", host.file("guest"));
    let denied = outcome(command).await;
    assert_eq!(denied.code, 1, "{denied:#?}");
    assert!(
        denied
            .stdout
            .contains("missing permission to create deployments.apps"),
        "{denied:#?}"
    );
    let impersonated = [
        "precheck",
        "-o",
        "json",
        "--as=guest",
        "--as-group=system:authenticated",
    ];
    let impersonated = host.run(&impersonated).await;
    assert_eq!(
        (impersonated.code, &impersonated.stdout),
        (denied.code, &denied.stdout),
        "{impersonated:#?}"
    );
    let before = host.inventory().await;
    let canceled = host.run(&["install", "--profile=minimal"]).await;
    assert_eq!(canceled.code, 1, "{canceled:#?}");
    assert!(canceled.stderr.contains("Proceed? (y/N)"), "{canceled:#?}");
    let shown = host.ok(&["install", "--profile=minimal", "--dry-run"]).await;
    assert!(shown.contains("+ Deployment istio-system/istiod"), "{shown}");
    assert!(
        shown.contains(" objects to create, 0 to change, 0 unchanged"),
        "{shown}"
    );
    assert_eq!(host.inventory().await, before);
    let nothing = host.run(&["upgrade", "-y"]).await;
    assert!(
        nothing
            .stderr
            .contains("no control plane has the revision \"default\""),
        "{nothing:#?}"
    );
    assert_eq!(host.run(&["install", "--no-such-flag"]).await.code, 2);
    let checked = host.run(&["precheck", "--output-threshold=error"]).await;
    assert_eq!(checked.code, 0, "{checked:#?}");
    let cilium = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cilium-config"}, "data": {"cni-exclusive": "true"}});
    host.send("POST", "/api/v1/namespaces/kube-system/configmaps", Some(&cilium))
        .await;
    let warned = host.run(&["precheck", "--profile=ambient"]).await;
    let text = format!("{}{}", warned.stdout, warned.stderr);
    assert!(text.contains("Cilium has cni-exclusive=true"), "{warned:#?}");
    let without = host.run(&["precheck", "--profile=minimal"]).await;
    let text = format!("{}{}", without.stdout, without.stderr);
    assert!(!text.contains("Cilium"), "{without:#?}");
}

/// Compares files, directories and the live cluster.
async fn manifest_diff(host: Host) {
    let file = |name: &str| host.file(name).to_string_lossy().into_owned();
    let (old, new) = (file("old.yaml"), file("new.yaml"));
    std::fs::write(
        &old,
        host.ok(&["manifest", "generate", "--profile=minimal"]).await,
    )
    .unwrap();
    let set = "--set=meshConfig.accessLogFile=/dev/stdout";
    std::fs::write(
        &new,
        host.ok(&["manifest", "generate", "--profile=minimal", set]).await,
    )
    .unwrap();
    assert_eq!(
        host.ok(&["manifest", "diff", &old, &old]).await,
        "No differences found\n"
    );
    let found = host.run(&["manifest", "diff", &old, &new]).await;
    assert_eq!(found.code, 1, "{found:#?}");
    assert!(
        found
            .stdout
            .contains("data.mesh.accessLogFile: \"/dev/stdout\" (ADDED)"),
        "{found:#?}"
    );
    let ignored = ["manifest", "diff", &old, &new, "--ignore=ConfigMap::"];
    host.ok(&ignored).await;
    assert_eq!(
        host.run(&["manifest", "diff", &old, "missing.yaml"]).await.code,
        2
    );
    let directory = file("out");
    host.ok(&[
        "manifest",
        "generate",
        "--profile=minimal",
        "-o",
        "dir",
        "--output-dir",
        &directory,
    ])
    .await;
    assert_eq!(
        host.ok(&["manifest", "diff", &directory, &old]).await,
        "No differences found\n"
    );
    let operator = file("operator.yaml");
    std::fs::write(
        &operator,
        "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {profile: minimal}\n",
    )
    .unwrap();
    assert_eq!(
        host.ok(&["manifest", "diff", &operator, &old]).await,
        "No differences found\n"
    );
    host.ok(&["install", "--profile=minimal", "-y"]).await;
    let service = "--select=Service::istiod";
    host.ok(&["manifest", "diff", &old, "--live", service]).await;
    let changed = json!({"data": {"mesh": "accessLogFile: /x\n"}});
    host.send(
        "PATCH",
        "/api/v1/namespaces/istio-system/configmaps/istio",
        Some(&changed),
    )
    .await;
    let live = host
        .run(&["manifest", "diff", &new, "--live", "--select=ConfigMap::istio"])
        .await;
    assert_eq!(live.code, 1, "{live:#?}");
    assert!(
        live.stdout
            .contains("data.mesh.accessLogFile: \"/x\" -> \"/dev/stdout\""),
        "{live:#?}"
    );
}
