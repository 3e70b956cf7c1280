//! Tests remote control planes: times of probes, and results that are written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod support;

use std::sync::Arc;

use mainstay_api::{ObjectMeta, OwnerReference, names};
use mainstay_mesh::snapshot::{ProbeResult, ServiceReference, Webhook, WebhookClient};
use mainstay_mesh::{Action, Observation, Requeue, Subject};
use support::{World, actions, pairs, revision_spec};

const NAME: &str = "istio-sidecar-injector";

fn service(port: Option<u16>) -> ServiceReference {
    ServiceReference {
        namespace: "istio-system".into(),
        name: "istiod".into(),
        port,
    }
}

fn client(service: impl Into<Option<ServiceReference>>, bundle: &[u8]) -> WebhookClient {
    WebhookClient {
        service: service.into(),
        ca_bundle: Arc::from(bundle),
    }
}

/// Returns a world with the webhook configuration of a revision that has this profile.
fn world(profile: &str, annotations: &str, client: impl Into<Option<WebhookClient>>) -> World {
    let mut world = World::default();
    let mut spec = revision_spec("default");
    spec["values"]["profile"] = profile.into();
    let revision = world.revision("default", spec);
    observe_webhook(&mut world, annotations, client, vec![revision.owner_reference()]);
    world
}

fn observe_webhook(
    world: &mut World,
    annotations: &str,
    client: impl Into<Option<WebhookClient>>,
    owner_references: Vec<OwnerReference>,
) {
    world.observe(Observation::Webhook(Webhook {
        metadata: ObjectMeta {
            name: NAME.into(),
            uid: "uid-webhook".into(),
            resource_version: "1".into(),
            annotations: pairs(annotations),
            owner_references,
            ..ObjectMeta::default()
        },
        client: client.into(),
    }));
}

fn subject() -> Subject {
    Subject::Webhook(NAME.into())
}

fn observe_probe_result(world: &mut World, ready: bool, reason: &str) {
    let result = ProbeResult {
        at: world.snapshot.now,
        ready,
        reason: reason.into(),
    };
    world.observe(Observation::Probed(NAME.into(), result));
}

#[test]
fn only_webhooks_of_remote_revisions_are_probed() {
    let good = || client(service(None), b"pem");
    assert_eq!(
        actions(&world("remote", "", good()).plan(&subject())).len(),
        1,
        "IstioRevision uses remote profile"
    );
    assert!(
        world("default", "", good()).plan(&subject()).is_empty(),
        "IstioRevision not using remote profile"
    );
    let mut owners = vec![];
    for (case, kind, name) in [
        ("No owner references", "", ""),
        ("Owner reference not IstioRevision", "Deployment", "default"),
        ("IstioRevision not found", "IstioRevision", "gone"),
    ] {
        let mut world = world("remote", "", None);
        if !kind.is_empty() {
            owners = vec![OwnerReference {
                api_version: names::API_VERSION.into(),
                kind: kind.into(),
                name: name.into(),
                ..OwnerReference::default()
            }];
        }
        observe_webhook(&mut world, "", good(), owners.clone());
        assert!(world.plan(&subject()).is_empty(), "{case}");
    }
}

#[test]
fn a_webhook_that_cannot_be_probed_is_not_ready() {
    let check = |case: &str, client: Option<WebhookClient>, reason: &str| {
        let mut world = world("remote", "", client);
        assert_eq!(
            actions(&world.plan(&subject())),
            [format!("annotate false {reason}")],
            "{case}"
        );
        world.queue.retain(|one| *one == subject());
        world.settle();
        assert!(world.plan(&subject()).is_empty(), "{case}");
    };
    check(
        "No webhooks",
        None,
        "mutatingwebhookconfiguration contains no webhooks",
    );
    check(
        "No service in client config",
        Some(client(None, b"pem")),
        "missing webhooks[].clientConfig.service",
    );
    check(
        "Missing CA bundle",
        Some(client(service(None), b"")),
        "webhooks[].clientConfig.caBundle hasn't been set; check if the remote istiod can access this cluster",
    );
}

#[test]
fn probes_use_the_port_of_the_service() {
    let check = |case: &str, port: Option<u16>, url: &str| {
        let world = world("remote", "", client(service(port), b"pem"));
        assert_eq!(
            actions(&world.plan(&subject())),
            [format!("probe {url}")],
            "{case}"
        );
    };
    check("default port", None, "https://istiod.istio-system.svc:443/ready");
    check(
        "custom port",
        Some(15017),
        "https://istiod.istio-system.svc:15017/ready",
    );
}

#[test]
fn the_probe_timeout_is_configurable() {
    let check = |case: &str, annotations: &str, seconds: u32| {
        let world = world("remote", annotations, client(service(None), b"pem"));
        let plan = world.plan(&subject());
        let Action::Probe(request) = &plan.steps[0].action else {
            panic!("{plan:?}")
        };
        assert_eq!(request.timeout_seconds, seconds, "{case}");
    };
    check("Default probe timeout", "", 5);
    check(
        "Probe timeout annotation",
        "sailoperator.io/readinessProbe.timeoutSeconds=17",
        17,
    );
    check(
        "no number",
        "sailoperator.io/readinessProbe.timeoutSeconds=soon",
        5,
    );
    check(
        "at least one second",
        "sailoperator.io/readinessProbe.timeoutSeconds=0",
        1,
    );
}

/// Executes the webhook's plan until it is empty.
fn settle(world: &mut World) -> Vec<String> {
    world.queue.clear();
    world.queue.insert(subject());
    let mut executed = Vec::new();
    while let Some(plan) = Some(world.plan(&subject())).filter(|plan| !plan.is_empty()) {
        if actions(&plan).iter().any(|line| line.starts_with("probe")) {
            break;
        }
        executed.extend(actions(&plan));
        world.execute(&plan);
    }
    executed
}

#[test]
fn a_probe_result_is_written_when_it_differs_and_probed_again_when_due() {
    let mut world = world("remote", "", client(service(None), b"pem"));
    observe_probe_result(&mut world, true, "");
    assert_eq!(settle(&mut world), ["annotate true "], "ready");
    assert_eq!(
        world.plan(&subject()).requeue,
        Requeue::At(world.snapshot.now + jiff::SignedDuration::from_secs(3))
    );
    for _ in 0..1000 {
        world.advance(3);
        assert_eq!(actions(&world.plan(&subject())).len(), 1, "one probe");
        observe_probe_result(&mut world, true, "");
        assert_eq!(
            settle(&mut world),
            [""; 0],
            "no write while the result is unchanged"
        );
    }
    observe_probe_result(&mut world, false, "");
    assert_eq!(settle(&mut world), ["annotate false "], "not ready");
    observe_probe_result(&mut world, false, "connection refused");
    assert_eq!(
        settle(&mut world),
        ["annotate false connection refused"],
        "probe error"
    );
}

#[test]
fn the_probe_period_is_configurable() {
    let annotations = "sailoperator.io/readinessProbe.periodSeconds=42";
    let mut world = world("remote", annotations, client(service(None), b"pem"));
    observe_probe_result(&mut world, true, "");
    let requeue = world.plan(&subject()).requeue;
    assert_eq!(
        requeue,
        Requeue::At(world.snapshot.now + jiff::SignedDuration::from_secs(42)),
        "honors period annotation"
    );
}

#[test]
fn the_annotation_affects_the_revision() {
    let mut world = world("remote", "", client(service(None), b"pem"));
    world.queue.clear();
    observe_webhook(
        &mut world,
        "sailoperator.io/readinessProbe.status=true",
        client(service(None), b"pem"),
        vec![OwnerReference {
            controller: true,
            ..world_owner()
        }],
    );
    assert!(
        world.queue.contains(&Subject::revision("default")),
        "{:?}",
        world.queue
    );
}

fn world_owner() -> OwnerReference {
    OwnerReference {
        api_version: names::API_VERSION.into(),
        kind: "IstioRevision".into(),
        name: "default".into(),
        ..OwnerReference::default()
    }
}
