//! `adopt`, `manifest migrate` and `rehearse` for meshes that the real Helm installed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;

use mainstay_yaml::{Budget, parse, to_json};
use serde_json::{Value, json};

use super::helm::Helm;
use super::host::Host;

/// Path of the Deployment of the control plane.
const ISTIOD: &str = "/apis/apps/v1/namespaces/istio-system/deployments/istiod";
/// JSON pointer of a field that no value of the chart sets.
const WITHOUT_VALUE: &str = "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem";

/// Sets the field without a value.
async fn set_field(host: &Host, value: bool) {
    let mut istiod = host.send("GET", ISTIOD, None).await;
    *istiod.pointer_mut(WITHOUT_VALUE).unwrap() = json!(value);
    let stored = host.send("PUT", ISTIOD, Some(&istiod)).await;
    assert_eq!(stored.pointer(WITHOUT_VALUE), Some(&json!(value)), "{stored}");
}

/// Waits until the control plane is rolled out; returns the UIDs of its pods and `ReplicaSet`s by name.
async fn pods(host: &Host) -> BTreeMap<String, String> {
    host.until("a ready control plane", async || {
        let istiod = host.send("GET", ISTIOD, None).await;
        let (status, replicas) = (&istiod["status"], &istiod["spec"]["replicas"]);
        status["observedGeneration"] == istiod["metadata"]["generation"]
            && status["updatedReplicas"] == *replicas
            && status["readyReplicas"] == *replicas
            && status["replicas"] == *replicas
    })
    .await;
    let mut found = BTreeMap::new();
    for path in [
        "/api/v1/namespaces/istio-system/pods?labelSelector=app%3Distiod",
        "/apis/apps/v1/namespaces/istio-system/replicasets?labelSelector=app%3Distiod",
    ] {
        let list = host.send("GET", path, None).await;
        let items = list["items"].as_array().unwrap().iter();
        // Pods of an earlier rollout may still terminate.
        for item in items.filter(|item| item["metadata"]["deletionTimestamp"].is_null()) {
            let text = |key: &str| item["metadata"][key].as_str().unwrap().to_owned();
            found.insert(text("name"), text("uid"));
        }
    }
    found
}

/// Adopts a mesh with a field that the operator would change, and hands it back to Helm.
pub(crate) async fn differences_are_listed_and_nothing_is_written(host: Host) {
    let helm = Helm::new(&host, "helm4", "1.29.1");
    helm.install("istio-base", "base", &[]).await;
    helm.install("istiod", "istiod", &["--set", "autoscaleMin=2"])
        .await;
    host.ok(&["crds", "install"]).await;
    set_field(&host, false).await;
    let mut audit = host.audit();
    let writes = |audit: &mainstay_testkit::cluster::Audit| {
        let entries = audit.entries().unwrap().into_iter();
        let own = entries.filter(|entry| entry.user == "admin" && !entry.is_read());
        own.map(|entry| format!("{} {}", entry.verb, entry.uri))
            .collect::<Vec<_>>()
    };
    audit.reset().unwrap();
    let shown = host.run(&["adopt"]).await;
    assert_eq!(shown.code, 1, "{shown:#?}");
    let mut lines = shown.stdout.lines();
    let line = lines.find(|line| line.contains(".securityContext.readOnlyRootFilesystem"));
    let words = line
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(words.starts_with("Deployment istio-system/istiod "), "{shown:#?}");
    let note = "false true restarts pods; no value sets this field";
    assert!(words.ends_with(note), "{words}");
    let rejected = host.run(&["adopt", "--apply"]).await;
    assert_eq!(rejected.code, 1, "{rejected:#?}");
    assert!(
        rejected.stderr.contains(
            "the operator would change the control plane default in namespace istio-system; it was not adopted"
        ),
        "{rejected:#?}"
    );
    assert_eq!(writes(&audit), Vec::<String>::new());
    let before = host.send("GET", ISTIOD, None).await;
    let applied = host.run(&["adopt", "--apply", "--allow-differences"]).await;
    assert_eq!(applied.code, 0, "{applied:#?}");
    assert!(!writes(&audit).is_empty());
    let adopted = host.send("GET", ISTIOD, None).await;
    assert_eq!(adopted["spec"], before["spec"]);
    assert_eq!(
        adopted["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    set_field(&host, true).await;
    hand_over(&host, &helm).await;
}

/// Hands the adopted mesh to Helm; the next upgrade with the written charts keeps every pod.
async fn hand_over(host: &Host, helm: &Helm<'_>) {
    let before = pods(host).await;
    assert!(!helm.run(&["list", "-q"]).await.contains("istiod"));
    let charts = host.file("handed-over").display().to_string();
    let command = ["adopt", "--to", "helm", "--apply", "--write-charts", &charts];
    let handed = host.ok(&command).await;
    assert!(handed.contains("Created 2 Helm releases"), "{handed}");
    let listed = helm.run(&["list", "-q"]).await;
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["istio-base", "istiod"]);
    let transferred = host.send("GET", ISTIOD, None).await;
    for release in ["istio-base", "istiod"] {
        let chart = format!("{charts}/{release}");
        helm.run(&[
            "upgrade",
            release,
            &chart,
            "--reuse-values",
            "--server-side=false",
        ])
        .await;
    }
    let upgraded = host.send("GET", ISTIOD, None).await;
    assert_eq!(upgraded["spec"], transferred["spec"]);
    let values = helm.run(&["get", "values", "istiod", "-o", "json"]).await;
    let values: Value = serde_json::from_str(&values).unwrap();
    assert_eq!(values["autoscaleMin"].as_f64(), Some(2.0), "{values}");
    assert_eq!(pods(host).await, before);
}

/// Converts the releases of a cluster, given as a file, standard input, directory or cluster.
pub(crate) async fn releases_are_converted_from_every_source(host: Host) {
    let helm = Helm::new(&host, "helm3", "1.29.1");
    helm.install("istio-base", "base", &[]).await;
    let values = host.file("istiod.yaml");
    std::fs::write(
        &values,
        "autoscaleMin: 2\nmeshConfig:\n  accessLogFile: /dev/stdout\n",
    )
    .unwrap();
    let values = values.display().to_string();
    helm.install("istiod", "istiod", &["-f", &values]).await;
    helm.install("istio-cni", "cni", &["--set", "logging.level=debug"])
        .await;
    // Older versions of a release are ignored.
    let chart = host.file("charts-1.29.1/istiod").display().to_string();
    helm.run(&[
        "upgrade",
        "istiod",
        &chart,
        "--reuse-values",
        "--set",
        "autoscaleMax=7",
    ])
    .await;
    let path = "/api/v1/secrets?labelSelector=owner%3Dhelm";
    let mut dump = host.send("GET", path, None).await;
    let secrets = dump["items"].as_array_mut().unwrap();
    assert_eq!(secrets.len(), 4);
    let directory = host.file("secrets");
    std::fs::create_dir_all(&directory).unwrap();
    for secret in secrets {
        secret["apiVersion"] = json!("v1");
        secret["kind"] = json!("Secret");
        let file = directory.join(format!("{}.json", secret["metadata"]["name"].as_str().unwrap()));
        std::fs::write(file, secret.to_string()).unwrap();
    }
    let file = host.file("secrets.yaml");
    std::fs::write(&file, dump.to_string()).unwrap();
    for (to, word) in [
        ("istio-operator", "kind: IstioOperator\n"),
        ("sail", "kind: IstioCNI\n"),
    ] {
        let migrate = |source: &[&str]| -> Vec<String> {
            let command = ["manifest", "migrate", "--to", to, "--istio-version", "1.29.1"];
            command
                .iter()
                .chain(source)
                .map(|word| (*word).to_owned())
                .collect()
        };
        let from_file = run(
            &host,
            &migrate(&["--helm-release", &file.display().to_string()]),
            "",
        )
        .await;
        assert!(
            from_file.contains(word) && from_file.contains("autoscaleMin: 2\n"),
            "{from_file}"
        );
        assert!(from_file.contains("autoscaleMax: 7\n"), "{from_file}");
        let from_stdin = run(&host, &migrate(&["--helm-release", "-"]), &dump.to_string()).await;
        let place = directory.display().to_string();
        let from_directory = run(&host, &migrate(&["--helm-release", &place]), "").await;
        let from_cluster = run(&host, &migrate(&["--from-cluster"]), "").await;
        for other in [from_stdin, from_directory, from_cluster] {
            assert_eq!(other, from_file, "{to}");
        }
        let umbrella = umbrella(&host);
        let from_umbrella = run(&host, &migrate(&["--helm-release", &umbrella]), "").await;
        assert_eq!(resources(&from_umbrella), resources(&from_file), "{to}");
    }
}

/// Runs the binary, which must succeed, with an input.
async fn run(host: &Host, arguments: &[String], input: &str) -> String {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = host.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let input = input.to_owned();
    let output = tokio::task::spawn_blocking(move || {
        // A command that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a chart that depends on the charts of the releases, with their values; returns its directory.
fn umbrella(host: &Host) -> String {
    let directory = host.file("umbrella");
    std::fs::create_dir_all(&directory).unwrap();
    let chart = "apiVersion: v2\nname: mesh\nversion: 1.0.0\ndependencies:\n- {name: base, version: 1.29.1}\n\
                 - {name: istiod, version: 1.29.1, alias: plane}\n- {name: cni, version: 1.29.1}\n";
    let values = "plane:\n  autoscaleMin: 2\n  autoscaleMax: 7\n  meshConfig: {accessLogFile: /dev/stdout}\n\
                  cni:\n  logging: {level: debug}\n";
    std::fs::write(directory.join("Chart.yaml"), chart).unwrap();
    std::fs::write(directory.join("values.yaml"), values).unwrap();
    directory.display().to_string()
}

/// Returns the resources of an output, without the comments about the conversion.
fn resources(text: &str) -> Vec<Value> {
    let documents = text.split("---\n").skip(1);
    let documents = documents.map(|text| parse(text.as_bytes(), &Budget::default()).unwrap());
    documents
        .map(|value| serde_json::from_str(&to_json(&value).unwrap()).unwrap())
        .collect()
}

/// Rehearses the upgrade of a mesh from the dump of a cluster on which Helm installed it.
pub(crate) async fn a_dump_of_a_helm_installation_is_rehearsed(host: Host) {
    let helm = Helm::new(&host, "helm3", "1.28.2");
    helm.install("istio-base", "base", &[]).await;
    helm.install("istiod", "istiod", &["--set", "autoscaleMin=2"])
        .await;
    let shop = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"istio-injection": "enabled"}}});
    host.send("POST", "/api/v1/namespaces", Some(&shop)).await;
    let template = json!({"metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let cart = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "cart"}}, "template": template}});
    host.send("POST", "/apis/apps/v1/namespaces/shop/deployments", Some(&cart))
        .await;
    host.until("ready pods", async || {
        let path = "/apis/apps/v1/namespaces/shop/deployments/cart";
        host.send("GET", path, None).await["status"]["readyReplicas"] == 2
    })
    .await;
    let file = host.file("dump.json");
    std::fs::write(&file, dump(&host).await.to_string()).unwrap();
    let file = file.display().to_string();
    let command = [
        "rehearse",
        "--to",
        "v1.29.1",
        "--snapshot",
        &file,
        "--fail-on",
        "never",
    ];
    let rehearsed = host.ok(&command).await;
    let first = rehearsed.lines().next().unwrap_or_default();
    let expected = "Istio default from v1.28.2 to v1.29.1, 1 of 1 workload migrated";
    assert!(first.contains(expected), "{rehearsed}");
    let finding = "no operator manages the control plane default in namespace istio-system, installed by Helm release \
                   istio-system/istiod";
    assert!(rehearsed.contains(finding), "{rehearsed}");
}

/// Returns the objects of a cluster as `kubectl get -A -o json` does.
async fn dump(host: &Host) -> Value {
    const KINDS: [(&str, &str, &str); 8] = [
        ("/api/v1", "Namespace", "namespaces"),
        ("/api/v1", "ConfigMap", "configmaps"),
        ("/api/v1", "Service", "services"),
        ("/api/v1", "Pod", "pods"),
        ("/apis/apps/v1", "Deployment", "deployments"),
        ("/apis/apps/v1", "ReplicaSet", "replicasets"),
        ("/apis/policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        (
            "/apis/admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
    ];
    let mut items = Vec::new();
    for (root, kind, plural) in KINDS {
        let list = host.send("GET", &format!("{root}/{plural}"), None).await;
        for item in list["items"].as_array().unwrap() {
            let mut item = item.clone();
            item["apiVersion"] = list["apiVersion"].clone();
            item["kind"] = json!(kind);
            items.push(item);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
