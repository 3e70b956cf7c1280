//! Tests the controller for `IstioOperator`s and its webhook on a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and values become parts of objects"
)]

#[path = "definition.rs"]
mod definition;
#[path = "scenarios.rs"]
mod scenarios;
#[path = "world.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod world;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mainstay_catalog::Catalog;
use mainstay_cluster::admission::{SECRET, SERVICE, WebhookAddress};
use mainstay_cluster::connect::Fence;
use mainstay_operator::Clock;
use mainstay_operator::istio_operator::webhook::{Webhook, WebhookOptions};
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::{suite, test_cases};
use serde_json::{Value, json};
use world::{CHART_NAMESPACE, CLIENT, NAMESPACE, World, operator};

fn main() -> ExitCode {
    if Catalog::embedded().unwrap().installable().is_empty() {
        println!("not tested: this build embeds no charts, run `cargo xtask charts` first");
        return ExitCode::FAILURE;
    }
    let cases = test_cases![
        "life_cycle_real" => life_cycle(),
        "life_cycle_with_the_charts_account_real" => life_cycle_with_the_charts_account(),
        "webhook_real" => webhook(),
        "webhook_with_the_charts_account_real" => webhook_with_the_charts_account(),
    ];
    let peers: Vec<&str> = PARTS.into_iter().chain(["helm4"]).collect();
    suite::main(&peers, &cases)
}

async fn start() -> World {
    let (cluster, kubelet) = start_cluster().await;
    World::real(cluster, kubelet).await
}

async fn start_cluster() -> (Cluster, Kubelet) {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let options = KubeletOptions {
        nodes: 1,
        backend: None,
    };
    let kubelet = Kubelet::start(&cluster, options).await.unwrap();
    (cluster, kubelet)
}

async fn life_cycle() {
    let mut world = start().await;
    let objects = scenarios::life_cycle(&mut world, "ambient").await;
    println!("istio operator life cycle real: {objects} installed, {objects} deleted");
}

/// Checks that the roles and admission policies of the operator's chart permit all actions of the
/// controller.
async fn life_cycle_with_the_charts_account() {
    let (cluster, kubelet) = start_cluster().await;
    let mut world = World::real_with_chart(cluster, kubelet).await;
    let objects = scenarios::life_cycle(&mut world, "ambient").await;
    println!("istio operator with the chart's account: {objects} installed, {objects} deleted");
}

/// Returns the webhook of a world with these options, in the namespace of its certificate.
fn webhook_of(world: &World, clock: &Clock, namespace: &str, options: &WebhookOptions) -> Webhook {
    Webhook {
        client: world.client(CLIENT),
        catalog: world.catalog.clone(),
        fence: Fence::open(),
        meter: Arc::new(|_, _| {}),
        clock: clock.clone(),
        namespace: namespace.into(),
        options: options.clone(),
    }
}

fn secret_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets/{SECRET}")
}

/// Checks that the API server accepts the rules of the definition, and that it rejects invalid resources with
/// a TLS connection to the webhook, before and after the certificate is renewed.
async fn webhook() {
    let mut world = start().await;
    definition::check_rules(&world).await;
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    // The first certificate is valid, and old enough to be due for renewal.
    let days = Arc::new(AtomicI64::new(-61));
    let offset = days.clone();
    let clock = Clock::new(move || {
        let days = SignedDuration::from_hours(24 * offset.load(Ordering::Relaxed));
        Timestamp::now().checked_add(days).unwrap()
    });
    let options = WebhookOptions {
        bind: format!("127.0.0.1:{port}").parse().unwrap(),
        address: WebhookAddress::Url(format!("https://127.0.0.1:{port}")),
    };
    let certificate = |object: &Value| object["data"]["tls.crt"].as_str().map(str::to_owned);
    let task = tokio::spawn(webhook_of(&world, &clock, NAMESPACE, &options).run());
    let first = world
        .until(&secret_path(NAMESPACE), "a certificate", |object| {
            certificate(object).is_some()
        })
        .await;
    rejects_invalid_resources(&world).await;
    // After a restart with the current time, the webhook renews the certificate immediately.
    days.store(0, Ordering::Relaxed);
    task.abort();
    let _ = task.await;
    let task = tokio::spawn(webhook_of(&world, &clock, NAMESPACE, &options).run());
    world
        .until(&secret_path(NAMESPACE), "another certificate", |object| {
            certificate(object) != certificate(&first)
        })
        .await;
    rejects_invalid_resources(&world).await;
    task.abort();
    println!("istio operator webhook real: 2 certificates, 2 served");
}

/// Checks that the roles of the operator's chart permit the webhook to write its Secret and configuration,
/// and that the API server reaches it through the Service of the chart.
async fn webhook_with_the_charts_account() {
    let (cluster, kubelet) = start_cluster().await;
    let mut world = World::real_with_idle_chart(cluster, kubelet).await;
    let valid = operator("valid", json!({"profile": "minimal"}));
    // Resources are rejected while the webhook is not served.
    until_rejected(&world, &valid, "failed calling webhook").await;
    let options = WebhookOptions {
        bind: format!("{}:9443", operator_address(&mut world).await)
            .parse()
            .unwrap(),
        address: WebhookAddress::Service {
            namespace: CHART_NAMESPACE.into(),
            name: SERVICE.into(),
        },
    };
    let webhook = webhook_of(&world, &Clock::system(), CHART_NAMESPACE, &options);
    let task = tokio::spawn(webhook.run());
    let authorities = |object: &Value| object["data"]["ca.crt"].as_str().map(str::to_owned);
    let secret = world
        .until(&secret_path(CHART_NAMESPACE), "a certificate", |object| {
            authorities(object).is_some()
        })
        .await;
    world
        .until(&world::webhook_path(), "the authorities", |object| {
            let bundle = &object["webhooks"][0]["clientConfig"]["caBundle"];
            bundle.as_str() == authorities(&secret).as_deref()
        })
        .await;
    rejects_invalid_resources(&world).await;
    world.create(&valid).await.unwrap();
    writes_no_other_secret(&world).await;
    task.abort();
    println!("istio operator webhook with the chart's account: 2 rejected, 2 as expected");
}

/// Returns the address of the operator's pod, to which its Service forwards.
async fn operator_address(world: &mut World) -> String {
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{CHART_NAMESPACE}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{SERVICE}"
    );
    let address = |list: &Value| {
        let endpoint = &list["items"][0]["endpoints"][0];
        let address = endpoint["addresses"][0].as_str().map(str::to_owned);
        address.filter(|_| endpoint["conditions"]["ready"] == true)
    };
    let list = world
        .until(&slices, "a ready endpoint", |list| address(list).is_some())
        .await;
    address(&list).unwrap()
}

/// Checks that the account of the chart cannot write another Secret.
async fn writes_no_other_secret(world: &World) {
    let secrets = format!("/api/v1/namespaces/{CHART_NAMESPACE}/secrets");
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}});
    world.send("POST", &secrets, Some(&other)).await.unwrap();
    let change = json!({"stringData": {"a": "b"}});
    let path = format!("{secrets}/other");
    let denied = World::send_as(&world.client(CLIENT), "PATCH", &path, Some(&change)).await;
    let (code, message) = denied.unwrap_err();
    assert!(code == 403 && message.contains("mainstay"), "{code} {message}");
}

async fn rejects_invalid_resources(world: &World) {
    let invalid = operator(
        "invalid",
        json!({"meshConfig": {"connectTimeout": "soon"}, "profile": "minimal"}),
    );
    let message = until_rejected(world, &invalid, "denied the request: ").await;
    assert!(message.contains("spec.meshConfig.connectTimeout: "), "{message}");
}

/// Waits until a resource is rejected with this message, because the API server uses a new configuration
/// after a delay.
async fn until_rejected(world: &World, resource: &Value, expected: &str) -> String {
    let end = tokio::time::Instant::now() + Duration::from_mins(2);
    loop {
        match world.create(resource).await {
            Err((_, message)) if message.contains(expected) => return message,
            Ok(_) => {
                let path = world::operator_path(resource["metadata"]["name"].as_str().unwrap());
                let _ = world
                    .send("PATCH", &path, Some(&json!({"metadata": {"finalizers": null}})))
                    .await;
                let _ = world.send("DELETE", &path, None).await;
            }
            Err((_, message)) => assert!(tokio::time::Instant::now() < end, "{message}"),
        }
        assert!(tokio::time::Instant::now() < end, "never rejected");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
