//! Scenarios of a single Istio: validation, and creation, update, repair and deletion of its objects.

use serde_json::{Value, json};

use mainstay_mesh::{Platform, TlsProfile, TlsVersion};

use crate::support::World;
use crate::support::fixtures::{self, NEW, OLD};
use crate::support::path::{self, ObjectPath};

pub async fn another_istio_namespace_is_rejected(world: World) -> World {
    let bad = fixtures::istio(
        "default",
        NEW,
        json!({"values": {"global": {"istioNamespace": "elsewhere"}}}),
    );
    let rejection = world.try_create(bad).await.unwrap_err().to_string();
    assert!(
        rejection.contains("spec.values.global.istioNamespace must match spec.namespace"),
        "{rejection}"
    );
    assert!(rejection.starts_with("422 "), "{rejection}");
    world
}

pub async fn creates_its_revision(world: World) -> World {
    let istio = world.create(fixtures::istio("default", NEW, json!({}))).await;
    let revision = world.until_exists(&path::revision("default")).await;
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
    let istio = world.until_state(&path::istio("default"), "Healthy").await;
    assert_eq!(istio["status"]["activeRevisionName"], "default");
    assert_eq!(
        istio["status"]["revisions"],
        json!({"total": 1, "ready": 1, "inUse": 0})
    );
    world
        .until_condition(&path::revision("default"), "InUse=False/NotReferencedByAnything")
        .await;
    let istiod = world
        .until_exists(&ObjectPath::namespaced("Deployment", "istio-system", "istiod"))
        .await;
    assert_eq!(istiod["metadata"]["labels"]["managed-by"], "sail-operator");
    assert_eq!(
        istiod["metadata"]["annotations"]["meta.helm.sh/release-name"],
        "default-istiod"
    );
    world
}

pub async fn updates_its_revision(world: World) -> World {
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let values = json!({"spec": {"values": {"pilot": {"env": {"SCENARIO": "update"}}}}});
    world.patch(&path::istio("default"), values).await;
    world
        .until_object(&path::revision("default"), "has the value", |revision| {
            revision["spec"]["values"]["pilot"]["env"]["SCENARIO"] == "update"
        })
        .await;
    let at = ObjectPath::namespaced("Deployment", "istio-system", "istiod");
    world
        .until_object(&at, "has the variable", |deployment| {
            deployment.to_string().contains("\"SCENARIO\"")
        })
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
}

/// Helm rejects upgrades of a release that is pending after a crash. The operator has no release state and
/// ignores that of Helm.
pub async fn a_pending_helm_release_does_not_block_installation(world: World) -> World {
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
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let at = ObjectPath::from_object(&before);
    let after = world.get(&at).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    world.delete(&at).await;
    world
}

pub async fn recreates_a_deleted_revision(world: World) -> World {
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    let old = world.get(&path::revision("default")).await.unwrap();
    world.delete(&path::revision("default")).await;
    world
        .until_object(&path::revision("default"), "has a new UID", |new| {
            new["metadata"]["uid"] != old["metadata"]["uid"]
        })
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
}

pub async fn deletion_removes_all_objects(world: World) -> World {
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world.delete(&path::istio("default")).await;
    world.until_gone(&path::revision("default")).await;
    world
        .until_gone(&ObjectPath::namespaced("Deployment", "istio-system", "istiod"))
        .await;
    world.until_gone(&path::injector("istio-sidecar-injector")).await;
    world
        .until_gone(&path::validator("istiod-default-validator"))
        .await;
    world
}

pub async fn a_version_at_its_end_of_life_is_rejected(world: World) -> World {
    world
        .create(fixtures::istio("default", "v1.22.5", json!({})))
        .await;
    let istio = world
        .until_condition(&path::istio("default"), "Reconciled=False/ReconcileError")
        .await;
    assert_eq!(istio["status"]["state"], "ReconcileError");
    assert!(
        crate::support::world::summarize(&istio).contains("end-of-life"),
        "{}",
        crate::support::world::summarize(&istio)
    );
    assert!(world.get(&path::revision("default")).await.is_none());
    world
        .assert_no_calls("an invalid version is not retried", async |_| {})
        .await;
    world
        .patch(&path::istio("default"), json!({"spec": {"version": NEW}}))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
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
    let revision = world.until_exists(&path::revision("default")).await;
    revision["spec"]["values"].clone()
}

pub async fn the_clusters_tls_profile_is_applied(world: World) -> World {
    world.change_settings(openshift).await;
    world.create(fixtures::istio("default", NEW, json!({}))).await;
    let values = revision_values(&world).await;
    let tls = &values["meshConfig"]["tlsDefaults"];
    assert_eq!(tls["minProtocolVersion"], "TLSV1_2", "{values}");
    assert!(values.to_string().contains("--tls-cipher-suites="), "{values}");
    world
}

pub async fn tls_settings_of_the_user_are_kept(world: World) -> World {
    world.change_settings(openshift).await;
    let own = json!({"values": {"meshConfig": {"tlsDefaults": {"minProtocolVersion": "TLSV1_3"}}}});
    world.create(fixtures::istio("default", NEW, own)).await;
    let values = revision_values(&world).await;
    assert_eq!(
        values["meshConfig"]["tlsDefaults"]["minProtocolVersion"], "TLSV1_3",
        "{values}"
    );
    world
}

pub async fn only_the_default_in_place_istio_has_the_default_validator(world: World) -> World {
    let validator = path::validator("istiod-default-validator");
    world.create(fixtures::istio("prod", NEW, json!({}))).await;
    world.until_state(&path::istio("prod"), "Healthy").await;
    assert!(world.get(&validator).await.is_none());
    world.delete(&path::istio("prod")).await;
    world.until_gone(&path::revision("prod")).await;

    world
        .create(fixtures::revision_based(
            "default",
            OLD,
            world.grace_seconds(),
            &[],
        ))
        .await;
    world.until_state(&path::istio("default"), "Healthy").await;
    assert!(world.get(&validator).await.is_none());
    world.delete(&path::istio("default")).await;
    world.until_gone(&path::revision("default-v1-28-2")).await;

    world.create(fixtures::istio("default", NEW, json!({}))).await;
    world.until_exists(&validator).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
}

/// Not an upstream scenario: a value that ends its document and adds another object is rejected, and the
/// error names the object.
pub async fn a_value_cannot_add_an_object(world: World) -> World {
    let level = "default:info\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: evil\n  namespace: kube-system\n\
        spec:\n  template:\n    spec:\n      hostPID: true\n      containers:\n        - name: evil\n          args:\n\
        \u{20}         - rest";
    let values = |level: &str| json!({"values": {"global": {"logging": {"level": level}}}});
    world.create(fixtures::istio("default", NEW, values(level))).await;
    let istio = world
        .until_condition(&path::istio("default"), "Reconciled=False/ReconcileError")
        .await;
    let conditions = istio["status"]["conditions"].to_string();
    assert!(
        conditions.contains("Deployment kube-system/evil is outside"),
        "{conditions}"
    );
    let evil = ObjectPath::namespaced("Deployment", "kube-system", "evil");
    assert!(world.get(&evil).await.is_none());
    let fixed = json!({"spec": values("default:info")});
    world.patch(&path::istio("default"), fixed).await;
    world.until_state(&path::istio("default"), "Healthy").await;
    world
}
