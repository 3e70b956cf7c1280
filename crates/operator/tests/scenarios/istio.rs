//! An Istio by itself: what it creates, keeps, repairs and takes along.

use serde_json::{Value, json};

use mainstay_mesh::{Platform, TlsProfile, TlsVersion};

use crate::support::World;
use crate::support::at::{self, At};
use crate::support::made::{self, NEW, OLD};

pub async fn refuses_another_istio_namespace(world: World) -> World {
    let bad = made::istio(
        "default",
        NEW,
        json!({"values": {"global": {"istioNamespace": "elsewhere"}}}),
    );
    let refusal = world.try_create(bad).await.unwrap_err();
    assert!(
        refusal.contains("spec.values.global.istioNamespace must match spec.namespace"),
        "{refusal}"
    );
    assert!(refusal.starts_with("422 "), "{refusal}");
    world
}

pub async fn creates_its_revision(world: World) -> World {
    let istio = world.create(made::istio("default", NEW, json!({}))).await;
    let revision = world.until_there(&at::revision("default")).await;
    let owner = &revision["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "Istio");
    assert_eq!(owner["uid"], istio["metadata"]["uid"]);
    assert_eq!(owner["controller"], true);
    assert_eq!(owner["blockOwnerDeletion"], true);
    assert_eq!(revision["spec"]["version"], NEW);
    assert_eq!(revision["spec"]["namespace"], "istio-system");
    assert_eq!(
        revision["spec"]["values"]["global"]["istioNamespace"],
        "istio-system"
    );
    assert_eq!(
        revision["metadata"]["finalizers"],
        json!(["sailoperator.io/sail-operator"])
    );
    let istio = world.until_state(&at::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], "default");
    assert_eq!(
        istio["status"]["revisions"],
        json!({"total": 1, "ready": 1, "inUse": 0})
    );
    world
        .until_condition(&at::revision("default"), "InUse=False/NotReferencedByAnything")
        .await;
    let istiod = world
        .until_there(&At::inside("Deployment", "istio-system", "istiod"))
        .await;
    assert_eq!(istiod["metadata"]["labels"]["managed-by"], "sail-operator");
    assert_eq!(
        istiod["metadata"]["annotations"]["meta.helm.sh/release-name"],
        "default-istiod"
    );
    world
}

pub async fn updates_its_revision(world: World) -> World {
    world.create(made::istio("default", NEW, json!({}))).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    let values = json!({"spec": {"values": {"pilot": {"env": {"SCENARIO": "update"}}}}});
    world.patch(&at::istio("default"), values).await;
    world
        .until_object(&at::revision("default"), "has the value", |revision| {
            revision["spec"]["values"]["pilot"]["env"]["SCENARIO"] == "update"
        })
        .await;
    let at = At::inside("Deployment", "istio-system", "istiod");
    world
        .until_object(&at, "has the variable", |deployment| {
            deployment.to_string().contains("\"SCENARIO\"")
        })
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world
}

/// Upstream's Helm refuses to go on after a crash in the middle of a release; we keep no such state, and leave theirs alone.
pub async fn a_release_stuck_pending_stops_nothing(world: World) -> World {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": "sh.helm.release.v1.default-istiod.v1",
            "namespace": "istio-system",
            "labels": {"owner": "helm", "name": "default-istiod", "status": "pending-install", "version": "1"},
        },
        "data": {"release": "aGVsbQ=="},
    });
    let before = world.create(secret).await;
    world.create(made::istio("default", NEW, json!({}))).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    let at = At::of(&before);
    let after = world.get(&at).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    world.delete(&at).await;
    world
}

pub async fn recreates_a_deleted_revision(world: World) -> World {
    world.create(made::istio("default", NEW, json!({}))).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    let old = world.get(&at::revision("default")).await.unwrap();
    world.delete(&at::revision("default")).await;
    world
        .until_object(&at::revision("default"), "is a new one", |new| {
            new["metadata"]["uid"] != old["metadata"]["uid"]
        })
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world
}

pub async fn deletion_takes_everything_along(world: World) -> World {
    world.create(made::istio("default", NEW, json!({}))).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world.delete(&at::istio("default")).await;
    world.until_gone(&at::revision("default")).await;
    world
        .until_gone(&At::inside("Deployment", "istio-system", "istiod"))
        .await;
    world.until_gone(&at::injector("istio-sidecar-injector")).await;
    world.until_gone(&at::validator("istiod-default-validator")).await;
    world
}

pub async fn a_version_at_its_end_of_life_is_refused(world: World) -> World {
    world.create(made::istio("default", "v1.22.5", json!({}))).await;
    let istio = world
        .until_condition(&at::istio("default"), "Reconciled=False/ReconcileError")
        .await;
    assert_eq!(istio["status"]["state"], "ReconcileError");
    assert!(
        crate::support::world::brief(&istio).contains("end-of-life"),
        "{}",
        crate::support::world::brief(&istio)
    );
    assert!(world.get(&at::revision("default")).await.is_none());
    world
        .quiet("what cannot be right is not tried again", async |_| {})
        .await;
    world
        .patch(&at::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world
}

fn openshift(settings: &mut mainstay_mesh::Settings) {
    settings.platform = Platform::OpenShift;
    settings.tls = Some(TlsProfile {
        ciphers: vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".into()],
        min_version: Some(TlsVersion::V1_2),
        groups: Vec::new(),
    });
}

async fn revision_values(world: &World) -> Value {
    let revision = world.until_there(&at::revision("default")).await;
    revision["spec"]["values"].clone()
}

pub async fn the_clusters_tls_profile_is_applied(world: World) -> World {
    world.with_settings(openshift).await;
    world.create(made::istio("default", NEW, json!({}))).await;
    let values = revision_values(&world).await;
    let tls = &values["meshConfig"]["tlsDefaults"];
    assert_eq!(tls["minProtocolVersion"], "TLSV1_2", "{values}");
    assert!(values.to_string().contains("--tls-cipher-suites="), "{values}");
    world
}

pub async fn the_users_tls_settings_stay(world: World) -> World {
    world.with_settings(openshift).await;
    let own = json!({"values": {"meshConfig": {"tlsDefaults": {"minProtocolVersion": "TLSV1_3"}}}});
    world.create(made::istio("default", NEW, own)).await;
    let values = revision_values(&world).await;
    assert_eq!(
        values["meshConfig"]["tlsDefaults"]["minProtocolVersion"], "TLSV1_3",
        "{values}"
    );
    world
}

pub async fn default_validator_only_for_the_default_in_place(world: World) -> World {
    let validator = at::validator("istiod-default-validator");
    world.create(made::istio("prod", NEW, json!({}))).await;
    world.until_state(&at::istio("prod"), "Healthy").await;
    assert!(world.get(&validator).await.is_none());
    world.delete(&at::istio("prod")).await;
    world.until_gone(&at::revision("prod")).await;

    world
        .create(made::revision_based("default", OLD, world.grace(), &[]))
        .await;
    world.until_state(&at::istio("default"), "Healthy").await;
    assert!(world.get(&validator).await.is_none());
    world.delete(&at::istio("default")).await;
    world.until_gone(&at::revision("default-v1-28-2")).await;

    world.create(made::istio("default", NEW, json!({}))).await;
    world.until_there(&validator).await;
    world.until_state(&at::istio("default"), "Healthy").await;
    world
}
