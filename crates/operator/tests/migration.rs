//! Workloads move to a new revision by themselves, on the simulator: real charts, injection by their webhooks, the operator as the only
//! actor.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "helpers of tests"
)]

mod stage;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_sim::context::Destination;
use serde_json::{Value, json};

use stage::{Stage, istio};

const OLD: &str = "default-v1-28-2";
const NEW: &str = "default-v1-29-1";
const ISTIO: &str = "/apis/sailoperator.io/v1/istios/default";

/// istiod's answer to a pod: the mark of who injected it.
fn inject(stage: &Stage, revision: &'static str) {
    let service = Destination::service("istio-system", &format!("istiod-{revision}"), "/inject");
    stage.cluster.handle_webhook(&service, move |review| {
        let annotations = &review["request"]["object"]["metadata"]["annotations"];
        let mut patch = Vec::new();
        if annotations.is_null() {
            patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        patch.push(json!({"op": "add", "path": "/metadata/annotations/istio.io~1rev", "value": revision}));
        let patch = STANDARD.encode(serde_json::to_vec(&patch).unwrap());
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch,
        }})
    });
}

/// A mesh on the old version with the operator at work.
async fn old_mesh(batch_size: i64) -> (Stage, stage::Running) {
    let stage = Stage::new().await;
    inject(&stage, OLD);
    inject(&stage, NEW);
    let spec = json!({"version": "v1.28.2", "updateStrategy": {"type": "RevisionBased", "workloadMigration": {
        "strategy": "Batched", "batched": {"batchSize": batch_size, "delayBetweenBatches": "10s"}}}});
    stage.create(&istio("default", spec)).await;
    let operator = stage.start("mainstay");
    stage
        .until(120, "healthy", |stage| {
            stage.state("istios", "default") == "Healthy"
        })
        .await;
    stage.pass(10).await;
    (stage, operator)
}

async fn app(stage: &Stage, namespace: &str, name: &str, template: &Value) {
    let mut labels = json!({"app": name});
    labels
        .as_object_mut()
        .unwrap()
        .extend(template.as_object().unwrap().clone());
    stage
        .create(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            }},
        }))
        .await;
}

async fn namespace(stage: &Stage, name: &str, labels: Value) {
    stage
        .create(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
        )
        .await;
}

/// Who injected the pods that stay.
async fn pods_on(stage: &Stage, namespace: &str) -> Vec<String> {
    let list = stage
        .get(&format!("/api/v1/namespaces/{namespace}/pods"))
        .await
        .unwrap();
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    let pods = list["items"].as_array().unwrap().iter().filter(stays);
    pods.map(|pod| {
        pod["metadata"]["annotations"]["istio.io/rev"]
            .as_str()
            .unwrap_or("-")
            .to_owned()
    })
    .collect()
}

async fn migration(stage: &Stage) -> Value {
    stage.get(ISTIO).await.unwrap()["status"]["workloadMigration"].clone()
}

async fn until(stage: &Stage, seconds: u64, wanted: &str) {
    for _ in 0..seconds {
        if migration(stage).await["state"] == wanted {
            return;
        }
        stage.pass(1).await;
    }
    panic!(
        "not {wanted}: {:#}\n{}",
        migration(stage).await,
        stage.trace_of("mainstay")
    );
}

async fn upgrade(stage: &Stage) {
    stage.merge(ISTIO, &json!({"spec": {"version": "v1.29.1"}})).await;
    until(stage, 120, "InProgress").await;
}

/// How often the operator changed something.
fn patches(stage: &Stage, path: &str) -> usize {
    let trace = stage.trace_of("mainstay");
    trace
        .lines()
        .filter(|line| line.contains("PATCH") && line.contains(path))
        .count()
}

#[tokio::test(start_paused = true)]
async fn one_version_string_moves_every_workload() {
    let (stage, operator) = old_mesh(2).await;
    let spaces = [
        ("labelled", json!({"istio.io/rev": OLD}), json!({})),
        ("injected", json!({"istio-injection": "enabled"}), json!({})),
        ("silent", json!({}), json!({"istio.io/rev": OLD})),
    ];
    for (space, labels, template) in &spaces {
        namespace(&stage, space, labels.clone()).await;
        app(&stage, space, "cart", template).await;
        app(&stage, space, "web", template).await;
    }
    stage.pass(30).await;
    for (space, ..) in &spaces {
        assert_eq!(pods_on(&stage, space).await, vec![OLD; 4], "{space}");
    }
    until(&stage, 10, "Completed").await;
    upgrade(&stage).await;
    until(&stage, 300, "Completed").await;
    let status = migration(&stage).await;
    let counts = ["migratedWorkloads", "totalWorkloads"].map(|field| status[field].as_i64());
    assert_eq!(counts, [Some(6), Some(6)], "{status:#}");
    assert_eq!(status["batched"], json!({"currentBatch": 3, "totalBatches": 3}));
    for (space, ..) in &spaces {
        assert_eq!(pods_on(&stage, space).await, vec![NEW; 4], "{space}");
    }
    let labels = async |space: &str| {
        stage.get(&format!("/api/v1/namespaces/{space}")).await.unwrap()["metadata"]["labels"].clone()
    };
    assert_eq!(labels("labelled").await["istio.io/rev"], NEW);
    assert_eq!(labels("injected").await["istio-injection"], "enabled");
    stage.pass(120).await;
    for gone in [
        format!("/apis/sailoperator.io/v1/istiorevisions/{OLD}"),
        format!("/apis/apps/v1/namespaces/istio-system/deployments/istiod-{OLD}"),
    ] {
        assert!(!stage.exists(&gone).await, "{gone}");
    }
    for (space, ..) in &spaces {
        for name in ["cart", "web"] {
            assert_eq!(
                patches(&stage, &format!("namespaces/{space}/deployments/{name}")),
                1,
                "{space}/{name}"
            );
        }
    }
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_operator_leaves_a_migration_that_the_next_one_finishes() {
    let (stage, operator) = old_mesh(1).await;
    namespace(&stage, "shop", json!({"istio.io/rev": OLD})).await;
    for name in ["a", "b", "c", "d"] {
        app(&stage, "shop", name, &json!({})).await;
    }
    stage.pass(30).await;
    upgrade(&stage).await;
    let began = migration(&stage).await["startTime"].clone();
    operator.kill();
    for _ in 0..6 {
        let operator = stage.start("mainstay");
        stage.pass(7).await;
        operator.kill();
    }
    let operator = stage.start("mainstay");
    until(&stage, 300, "Completed").await;
    for name in ["a", "b", "c", "d"] {
        assert_eq!(
            patches(&stage, &format!("namespaces/shop/deployments/{name}")),
            1,
            "{name} is restarted once"
        );
    }
    let status = migration(&stage).await;
    assert_eq!(status["migratedWorkloads"], 4);
    assert_eq!(status["startTime"], began, "it is one migration");
    operator.stop().await;
}
