//! The engine against the simulator, by small releases: what it writes, what it leaves alone, what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::PostParams;
use kube::{Api, Client};
use mainstay_api::OwnerReference;
use mainstay_cluster::apply::{Change, Done, Engine};
use mainstay_cluster::desired::Desired;
use mainstay_cluster::live::Live;
use mainstay_mesh::plan::ReleaseKey;
use mainstay_sim::Cluster;
use serde_json::{Value, json};

/// A cluster, an engine on it, and what it knows.
struct Scene {
    client: Client,
    engine: Engine,
    live: Live,
    owner: OwnerReference,
}

impl Scene {
    /// The owner is an object that exists: what has no owner is collected.
    async fn new() -> Self {
        let client = Client::new(Cluster::default().connect("mainstay"), "default");
        let owner = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "owner"}});
        let api: Api<ClusterRole> = Api::all(client.clone());
        let made = api
            .create(&PostParams::default(), &serde_json::from_value(owner).unwrap())
            .await
            .unwrap();
        Self {
            engine: Engine::new(client.clone()),
            client,
            live: Live::default(),
            owner: OwnerReference {
                api_version: "rbac.authorization.k8s.io/v1".into(),
                kind: "ClusterRole".into(),
                name: "owner".into(),
                uid: made.metadata.uid.unwrap(),
                controller: true,
                block_owner_deletion: true,
            },
        }
    }

    fn key(&self) -> ReleaseKey {
        ReleaseKey {
            owner: self.owner.uid.clone(),
            namespace: "default".into(),
            name: "prod-istiod".into(),
        }
    }

    async fn desired(&self, rendered: Vec<Value>) -> Desired {
        self.engine
            .desired(self.key(), self.owner.clone(), rendered)
            .await
            .unwrap()
    }

    async fn install(&mut self, desired: &Desired) -> Result<Vec<String>, String> {
        let known = self.live.extract(desired);
        match self.engine.install(desired, known).await {
            Ok(changes) => {
                self.live.record(&changes);
                Ok(told(&changes))
            }
            Err((changes, error)) => {
                self.live.record(&changes);
                Err(error.to_string())
            }
        }
    }
}

fn told(changes: &[Change]) -> Vec<String> {
    let tell = |change: &Change| {
        let why = change.why.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{:?} {} {}: {why}", change.done, change.id.kind, change.id.name)
    };
    changes.iter().map(tell).collect()
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn a_release_is_installed_once() {
    let mut scene = Scene::new().await;
    let rendered = vec![config_map("a", &json!({"x": "1"})), config_map("b", &json!({}))];
    let desired = scene.desired(rendered).await;
    let expected = [
        "Created ConfigMap mainstay-prod-istiod: not there",
        "Created ConfigMap a: not there",
        "Created ConfigMap b: not there",
    ];
    assert_eq!(scene.install(&desired).await.unwrap(), expected);
    assert_eq!(scene.install(&desired).await.unwrap(), [""; 0]);
    let rendered = vec![config_map("a", &json!({"x": "2"}))];
    let desired = scene.desired(rendered).await;
    let expected = [
        "Applied ConfigMap a: .data.x was changed",
        "Deleted ConfigMap b: not wanted any more",
    ];
    assert_eq!(scene.install(&desired).await.unwrap(), expected);
    let changes = scene
        .engine
        .uninstall(&scene.key(), scene.live.release(&scene.key()))
        .await
        .unwrap();
    assert!(
        changes
            .iter()
            .all(|change| change.done == Done::Deleted && change.live.is_none())
    );
    scene.live.record(&changes);
    assert!(scene.live.release(&scene.key()).is_empty());
    let _ = &scene.client;
}
