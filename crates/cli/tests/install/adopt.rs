//! `adopt`, `manifest migrate` and `rehearse` for meshes that the real Helm installed.

use std::io::Write as _;
use std::process::Stdio;

use mainstay_yaml::{Budget, parse, to_json};
use serde_json::{Value, json};

use super::helm::Helm;
use super::host::Host;

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
