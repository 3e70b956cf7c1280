//! `mainstay cluster add` and `check` against served clusters.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_cluster::remote::{AddressPolicy, Credential, Kubeconfig};
use serde_json::Value;

use crate::host::{Host, call, check, offline};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CLUSTERS: &str = "/apis/delivery.mainstay.dev/v1alpha1/namespaces/default/clusters";

/// Replaces paths, ports and times.
fn stable(host: &Host, member: &Host, text: &str) -> String {
    let mut text = text.to_owned();
    for (own, name) in [(host, "HOST"), (member, "MEMBER")] {
        for user in ["admin", "guest", "several"] {
            text = text.replace(
                &own.kubeconfig(user).display().to_string(),
                &format!("{name}/{user}"),
            );
        }
    }
    let port = |rest: &str| rest.chars().take_while(char::is_ascii_digit).count();
    while let Some((before, after)) = text.split_once("https://127.0.0.1:") {
        text = format!("{before}https://SERVER{}", &after[port(after)..]);
    }
    let lines = text.lines().map(|line| match line.split_once(" ms per call") {
        Some((before, _)) => format!("{} N ms per call\n", before.rsplit_once(' ').unwrap().0),
        None => format!("{line}\n"),
    });
    lines.collect()
}

async fn stored_kubeconfig(host: &Host, name: &str) -> (String, Kubeconfig) {
    let path = format!("{SECRETS}/kubeconfig-{name}");
    let secret = call(&host.client(), "GET", &path, &Value::Null).await.unwrap();
    let text = STANDARD
        .decode(secret["data"]["config"].as_str().unwrap())
        .unwrap();
    let read = Kubeconfig::parse(&text, AddressPolicy { allow_local: true }).unwrap();
    (String::from_utf8(text).unwrap(), read)
}

/// Writes a kubeconfig with several contexts, extensions and a user with an `exec` plugin.
fn several_contexts(member: &Host) -> PathBuf {
    let own = std::fs::read_to_string(member.kubeconfig("admin")).unwrap();
    let own: Value = serde_json::to_value(kube::config::Kubeconfig::from_yaml(&own).unwrap()).unwrap();
    let mut all = own.clone();
    let context = own["contexts"][0].clone();
    let mut chosen = context.clone();
    chosen["name"] = "chosen".into();
    chosen["context"]["extensions"] = serde_json::json!([{"name": "x", "extension": {"a": "b"}}]);
    let mut cloud = context;
    cloud["name"] = "cloud".into();
    cloud["context"]["user"] = "cloud".into();
    all["contexts"].as_array_mut().unwrap().extend([chosen, cloud]);
    let user = serde_json::json!({"name": "cloud", "user": {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never",
    }}});
    all["users"].as_array_mut().unwrap().push(user);
    all["apiVersion"] = "v1".into();
    all["kind"] = "Config".into();
    let path = member.kubeconfig("several");
    std::fs::write(&path, all.to_string()).unwrap();
    path
}

#[tokio::test]
async fn clusters_are_added_and_checked() {
    let (host, member) = (Host::with_definitions().await, Host::start().await);
    let admin = member.kubeconfig("admin").display().to_string();
    let several = several_contexts(&member).display().to_string();
    let token = match Kubeconfig::parse(
        &std::fs::read(&admin).unwrap(),
        AddressPolicy { allow_local: true },
    ) {
        Ok(Kubeconfig {
            credential: Credential::Token(token),
            ..
        }) => String::from_utf8(token.expose().to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    let from = |file: &'static str| -> Vec<String> {
        let file = match file {
            "several" => several.clone(),
            user => member.kubeconfig(user).display().to_string(),
        };
        vec!["--cluster-kubeconfig".to_owned(), file]
    };
    let local = "--allow-local-clusters";
    let mut printed = String::new();
    for (words, file, more) in [
        ("cluster add prod-1", "admin", vec![]),
        (
            "cluster add prod-1",
            "several",
            vec![local, "--cluster-context", "nowhere"],
        ),
        (
            "cluster add prod-1",
            "several",
            vec![local, "--cluster-context", "cloud"],
        ),
        ("cluster add prod-1", "guest", vec![local]),
        ("cluster add prod-1", "admin", vec![local, "--dry-run"]),
        (
            "cluster add prod-1",
            "admin",
            vec![local, "--dry-run", "-o", "yaml", "-l", "usage=production"],
        ),
        (
            "cluster add prod-1",
            "several",
            vec![local, "--cluster-context", "chosen", "-l", "usage=production"],
        ),
        ("cluster add prod-1", "admin", vec![local]),
        (
            "cluster add prod-1",
            "admin",
            vec![local, "--overwrite", "--skip-check"],
        ),
        (
            "cluster add prod-2",
            "admin",
            vec!["--server", "https://10.0.0.7:6443", "--skip-check"],
        ),
        ("cluster check", "guest", vec![local]),
    ] {
        let mut arguments: Vec<String> = words.split(' ').map(str::to_owned).collect();
        arguments.extend(from(file));
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let text = host.run("admin", &arguments).await;
        assert!(!text.contains(&token), "the credential is printed: {text}");
        printed.push_str(&stable(&host, &member, &text));
        printed.push('\n');
    }
    let (text, read) = stored_kubeconfig(&host, "prod-1").await;
    assert!(!text.contains("extensions") && !text.contains("exec"), "{text}");
    assert!(matches!(read.credential, Credential::Token(_)));
    let (_, second) = stored_kubeconfig(&host, "prod-2").await;
    assert_eq!(second.server, "https://10.0.0.7:6443");
    let path = format!("{CLUSTERS}/prod-2");
    call(&host.client(), "DELETE", &path, &Value::Null).await.unwrap();
    for words in [
        "cluster check prod-1 --allow-local-clusters",
        "cluster check prod-1",
        "cluster check prod-9",
        "cluster list",
    ] {
        let arguments: Vec<&str> = words.split(' ').collect();
        let text = host.run("admin", &arguments).await;
        printed.push_str(&stable(&host, &member, &text));
        printed.push('\n');
    }
    let path = format!("{SECRETS}/kubeconfig-prod-1");
    call(&host.client(), "DELETE", &path, &Value::Null).await.unwrap();
    let text = host.run("admin", &["cluster", "check", "-o", "yaml"]).await;
    printed.push_str(&stable(&host, &member, &text));
    check("cluster-add", &printed);
}

/// The account has exactly the member role, and the operator accepts the stored kubeconfig.
#[tokio::test]
async fn an_account_is_created_in_the_other_cluster() {
    let (host, member) = (Host::with_definitions().await, Host::start().await);
    let admin = member.kubeconfig("admin").display().to_string();
    let mut printed = String::new();
    for more in [&["--dry-run"][..], &[]] {
        let arguments = [
            &[
                "cluster",
                "add",
                "prod-1",
                "--create-account",
                "--allow-local-clusters",
                "--cluster-kubeconfig",
                &admin,
            ],
            more,
        ];
        let text = host.run("admin", &arguments.concat()).await;
        printed.push_str(&stable(&host, &member, &text));
        printed.push('\n');
    }
    let text = host
        .run(
            "admin",
            &[
                "cluster",
                "check",
                "prod-1",
                "--allow-local-clusters",
                "-o",
                "json",
            ],
        )
        .await;
    let json = text.split_once('\n').unwrap().1.split("--- exit").next().unwrap();
    let report: Value = serde_json::from_str(json).unwrap();
    let permissions = report[0]["permissions"].as_array().unwrap();
    assert!(
        permissions.len() >= 30 && permissions.iter().all(|one| one["isAllowed"] == true),
        "{report}"
    );
    assert_eq!(report[0]["findings"], serde_json::json!([]));
    let (_, read) = stored_kubeconfig(&host, "prod-1").await;
    let Credential::Token(token) = read.credential else {
        panic!("no token");
    };
    let claims = String::from_utf8(token.expose().to_vec()).unwrap();
    let claims = claims.split('.').nth(1).unwrap().to_owned();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        claims["sub"],
        "system:serviceaccount:mainstay-system:mainstay-member"
    );
    let script = offline(&[
        "cluster",
        "add",
        "prod-1",
        "--print-commands",
        "--cluster-kubeconfig",
        "member.yaml",
        "--cluster-context",
        "a b",
    ]);
    printed.push_str(&script);
    check("cluster-account", &printed);
}

/// A kubeconfig that the operator would reject for its content is not added, and no secret is printed.
#[tokio::test]
async fn hostile_kubeconfigs_are_not_added() {
    let host = Host::with_definitions().await;
    let file = crate::host::directory().join("../../../cluster/tests/kubeconfigs/kubeconfigs.txt");
    let file = std::fs::read_to_string(file).unwrap();
    let body = STANDARD.encode("CANARY in a block");
    let pem = |label: &str| {
        STANDARD.encode(format!(
            "-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"
        ))
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile.yaml");
    let (mut rejected, mut harmless) = (0, Vec::new());
    for block in file.split("\n--- ").skip(1) {
        let (head, text) = block.split_once('\n').unwrap();
        if !head.starts_with("rejected ") || text.contains("@INVALID@") {
            continue;
        }
        let text = text
            .replace("@CA@", &pem("CERTIFICATE"))
            .replace("@CERT@", &pem("CERTIFICATE"));
        std::fs::write(&path, text.replace("@KEY@", &pem("PRIVATE KEY"))).unwrap();
        let arguments = [
            "cluster",
            "add",
            "x",
            "--skip-check",
            "--cluster-kubeconfig",
            path.to_str().unwrap(),
        ];
        let printed = host.run("admin", &arguments).await;
        assert!(!printed.contains("CANARY"), "{head}: {printed}");
        if printed.ends_with("--- exit 1\n") {
            assert!(printed.contains("\nhint: "), "{head}: {printed}");
            rejected += 1;
        } else {
            // The rejected part is an extension or outside the selected context, and is not stored.
            let (stored, _) = stored_kubeconfig(&host, "x").await;
            harmless.push((head.to_owned(), stored));
            for path in [format!("{SECRETS}/kubeconfig-x"), format!("{CLUSTERS}/x")] {
                call(&host.client(), "DELETE", &path, &Value::Null).await.unwrap();
            }
        }
    }
    assert!(rejected >= 40, "{rejected}");
    for (head, stored) in &harmless {
        for key in [
            "exec",
            "tokenFile",
            "proxy",
            "insecure",
            "extensions",
            "auth-provider",
            "as:",
            "as-",
        ] {
            assert!(!stored.contains(key), "{head}: {stored}");
        }
    }
    println!(
        "kubeconfigs not added: {rejected}, added without the rejected part: {}",
        harmless.len()
    );
}
