//! Tests the webhook: rejected resources, and the renewal of its certificate in virtual time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use mainstay_cluster::admission::{CONFIGURATION, SECRET, WebhookAddress, configuration};
use mainstay_cluster::connect::Fence;
use mainstay_operator::Clock;
use mainstay_operator::istio_operator::webhook::{Webhook, WebhookOptions, review};
use mainstay_sim::context::{Destination, WebhookReply};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::definition::check_rules;
use crate::virtual_time::run;
use crate::world::{NAMESPACE, World, operator, operator_path};

fn address() -> WebhookAddress {
    WebhookAddress::Url("https://127.0.0.1:9443".into())
}

/// Registers the webhook with the simulator. The handler runs in this process without TLS.
async fn register(world: &World) {
    let body = configuration(&address(), Some(&STANDARD.encode("ca")));
    let destination = Destination::parse(&body["webhooks"][0]["clientConfig"]);
    let catalog = world.catalog.clone();
    let handler = move |body: &Value| WebhookReply::Response(200, review(&catalog, body).to_string());
    world.simulator().sim().with(|state| {
        state
            .webhooks
            .handlers
            .set(&destination, Arc::new(Mutex::new(handler)));
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    world.send("POST", path, Some(&body)).await.unwrap();
}

async fn rejection_message(world: &World, name: &str, spec: Value) -> String {
    world.create(&operator(name, spec)).await.unwrap_err().1
}

#[test]
fn resources_that_validate_rejects_are_rejected() {
    run(async {
        let world = World::without_definition().await;
        world.install_definition().await;
        register(&world).await;
        let spec = json!({"meshConfig": {"connectTimeout": "soon"}, "componentz": {}});
        let message = rejection_message(&world, "a", spec).await;
        assert!(message.contains("denied the request: "), "{message}");
        assert!(
            message.contains("spec.componentz: ") && message.contains("did you mean"),
            "{message}"
        );
        let message = rejection_message(&world, "b", json!({"profile": "unknown"})).await;
        assert!(message.contains("\"unknown\""), "{message}");
        let overlay = json!({"components": {"pilot": {"k8s": {"overlays": [
            {"kind": "Deployment", "name": "absent", "patches": [{"path": "spec.replicas", "value": 2}]}]}}}});
        let message = rejection_message(&world, "c", overlay).await;
        assert!(message.contains("absent"), "{message}");
        let moved = json!({"components": {"pilot": {"k8s": {"overlays": [
            {"kind": "Deployment", "name": "istiod", "patches": [{"path": "metadata.namespace", "value": "kube-system"}]}]}}}});
        let message = rejection_message(&world, "c", moved).await;
        assert!(
            message.contains("Deployment kube-system/istiod is outside the namespace"),
            "{message}"
        );
        let mut unknown = operator("d", json!({}));
        unknown["metadata"]["annotations"] = json!({"install.mainstay.dev/istio-version": "1.2.3"});
        let message = world.create(&unknown).await.unwrap_err().1;
        assert!(message.contains("1.2.3"), "{message}");
        world
            .create(&operator("good", json!({"profile": "demo"})))
            .await
            .unwrap();
        let change = json!({"spec": {"meshConfig": {"connectTimeout": "soon"}}});
        let rejected = world.send("PATCH", &operator_path("good"), Some(&change)).await;
        assert!(
            rejected
                .unwrap_err()
                .1
                .contains("spec.meshConfig.connectTimeout: ")
        );
        println!("istio operator webhook simulated: 5 run, 5 rejected");
    });
}

/// The rules of the definition apply even without the webhook.
#[test]
fn the_definition_rejects_violations_of_its_rules() {
    run(async {
        let world = World::without_definition().await;
        world.install_definition().await;
        let message = rejection_message(&world, "a", json!({"revision": "Not-A-Label"})).await;
        assert!(message.contains("revision must be a DNS label"), "{message}");
        let message = rejection_message(&world, "b", json!({"installPackagePath": "/charts"})).await;
        assert!(message.contains("installPackagePath"), "{message}");
        world
            .create(&operator(
                "c",
                json!({"revision": "canary", "values": {"global": {"istioNamespace": "a"}}}),
            ))
            .await
            .unwrap();
        let check = async |change: Value, expected: &str| {
            let rejected = world.send("PATCH", &operator_path("c"), Some(&change)).await;
            let message = rejected.unwrap_err().1;
            assert!(message.contains(expected), "{message}");
        };
        check(
            json!({"spec": {"revision": "other"}}),
            "revision cannot be changed",
        )
        .await;
        check(json!({"spec": {"revision": null}}), "revision cannot be changed").await;
        check(
            json!({"spec": {"values": {"global": {"istioNamespace": "b"}}}}),
            "Value is immutable",
        )
        .await;
        let unchanged = json!({"spec": {"anything": {"else": 1}}});
        world.patch(&operator_path("c"), unchanged).await;
        check_rules(&world).await;
    });
}

/// The metadata of an invalid stored resource can be changed, so that its finalizer can be removed.
#[test]
fn metadata_of_an_invalid_resource_can_be_changed() {
    run(async {
        let world = World::without_definition().await;
        world.install_definition().await;
        world
            .create(&operator("a", json!({"meshConfig": {"connectTimeout": "soon"}})))
            .await
            .unwrap();
        register(&world).await;
        let labeled = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x.example.com/y"]}});
        world.patch(&operator_path("a"), labeled).await;
        world.delete(&operator_path("a")).await;
        let released = json!({"metadata": {"finalizers": null}});
        world.patch(&operator_path("a"), released).await;
        assert!(world.get(&operator_path("a")).await.is_none());
    });
}

/// Number of days that are added to the clock of the webhook.
type ClockOffsetDays = Arc<AtomicI64>;

fn start_webhook(world: &World, fence: Fence, days: &ClockOffsetDays) -> JoinHandle<()> {
    let (clock, days) = (world.clock(), days.clone());
    let now_with_offset = move || {
        let days = SignedDuration::from_hours(24 * days.load(Ordering::Relaxed));
        clock.now().checked_add(days).unwrap()
    };
    let webhook = Webhook {
        client: world.client("webhook"),
        catalog: world.catalog.clone(),
        fence,
        meter: Arc::new(|_, _| {}),
        clock: Clock::new(now_with_offset),
        namespace: NAMESPACE.into(),
        options: WebhookOptions {
            bind: "127.0.0.1:0".parse().unwrap(),
            address: address(),
        },
    };
    tokio::spawn(webhook.run())
}

struct StoredCertificate {
    certificate: String,
    authorities: String,
    bundle: String,
}

async fn stored_certificate(world: &World) -> Option<StoredCertificate> {
    let secret = world
        .get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"))
        .await?;
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let configuration = world.get(&format!("{configurations}/{CONFIGURATION}")).await?;
    let decode =
        |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
    Some(StoredCertificate {
        certificate: decode(&secret["data"]["tls.crt"]),
        authorities: decode(&secret["data"]["ca.crt"]),
        bundle: decode(&configuration["webhooks"][0]["clientConfig"]["caBundle"]),
    })
}

#[test]
fn the_certificate_is_created_kept_and_renewed() {
    run(async {
        let mut world = World::without_definition().await;
        let days = ClockOffsetDays::default();
        // An operator that is not the leader writes nothing.
        let follower = start_webhook(&world, Fence::closed(), &days);
        world.sleep(Duration::from_mins(5)).await;
        assert!(stored_certificate(&world).await.is_none());
        follower.abort();
        let task = start_webhook(&world, Fence::open(), &days);
        world.sleep(Duration::from_mins(5)).await;
        assert!(
            stored_certificate(&world).await.is_none(),
            "no certificate before the definition is installed"
        );
        world.install_definition().await;
        world.sleep(Duration::from_mins(3)).await;
        let first = stored_certificate(&world).await.unwrap();
        assert_eq!(first.authorities, first.bundle);
        // A restart does not change the certificate.
        task.abort();
        let task = start_webhook(&world, Fence::open(), &days);
        days.store(59, Ordering::Relaxed);
        world.sleep(Duration::from_mins(3)).await;
        let unchanged = stored_certificate(&world).await.unwrap();
        assert_eq!(unchanged.certificate, first.certificate);
        days.store(61, Ordering::Relaxed);
        world.sleep(Duration::from_mins(3)).await;
        let second = stored_certificate(&world).await.unwrap();
        assert_ne!(second.certificate, first.certificate);
        assert_eq!(second.authorities, second.bundle);
        assert!(
            second.bundle.contains(first.authorities.trim()),
            "old and new are trusted"
        );
        // If another client deletes the configuration, the bundle is written again.
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{CONFIGURATION}");
        world.delete(&path).await;
        world.sleep(Duration::from_mins(3)).await;
        assert_eq!(stored_certificate(&world).await.unwrap().bundle, second.bundle);
        task.abort();
    });
}
