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
use mainstay_cluster::admission::{SECRET, WebhookAddress};
use mainstay_cluster::connect::Fence;
use mainstay_operator::Clock;
use mainstay_operator::istio_operator::webhook::{Webhook, WebhookOptions};
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use mainstay_testkit::{suite, test_cases};
use serde_json::{Value, json};
use world::{NAMESPACE, World, operator};

fn main() -> ExitCode {
    if Catalog::embedded().unwrap().installable().is_empty() {
        println!("not tested: this build embeds no charts, run `cargo xtask charts` first");
        return ExitCode::FAILURE;
    }
    let cases = test_cases![
        "life_cycle_real" => life_cycle(),
        "life_cycle_with_the_charts_account_real" => life_cycle_with_the_charts_account(),
        "webhook_real" => webhook(),
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
    let (client, catalog) = (world.client("webhook"), world.catalog.clone());
    let webhook = || Webhook {
        client: client.clone(),
        catalog: catalog.clone(),
        fence: Fence::open(),
        meter: Arc::new(|_, _| {}),
        clock: clock.clone(),
        namespace: NAMESPACE.into(),
        options: WebhookOptions {
            bind: format!("127.0.0.1:{port}").parse().unwrap(),
            address: WebhookAddress::Url(format!("https://127.0.0.1:{port}")),
        },
    };
    let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}");
    let certificate = |object: &Value| object["data"]["tls.crt"].as_str().map(str::to_owned);
    let task = tokio::spawn(webhook().run());
    let first = world
        .until(&secret, "a certificate", |object| certificate(object).is_some())
        .await;
    rejects_invalid_resources(&world).await;
    // After a restart with the current time, the webhook renews the certificate immediately.
    days.store(0, Ordering::Relaxed);
    task.abort();
    let _ = task.await;
    let task = tokio::spawn(webhook().run());
    world
        .until(&secret, "another certificate", |object| {
            certificate(object) != certificate(&first)
        })
        .await;
    rejects_invalid_resources(&world).await;
    task.abort();
    println!("istio operator webhook real: 2 certificates, 2 served");
}

/// Waits until invalid resources are rejected, because the API server uses a new configuration after a
/// delay.
async fn rejects_invalid_resources(world: &World) {
    let spec = json!({"meshConfig": {"connectTimeout": "soon"}, "profile": "minimal"});
    let invalid = operator("invalid", spec);
    let end = tokio::time::Instant::now() + Duration::from_mins(2);
    loop {
        match world.create(&invalid).await {
            Err((_, message)) if message.contains("denied the request: ") => {
                assert!(message.contains("spec.meshConfig.connectTimeout: "), "{message}");
                break;
            }
            Ok(_) => {
                let path = world::operator_path("invalid");
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
