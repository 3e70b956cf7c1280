//! Changes of Cluster objects and their Secrets while a deployment runs.

use mainstay_harness::cluster_secret;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::objects::{self, NAMESPACE, deployment_of};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const WORKLOAD: &str = "example-app-v1-testsvc";

/// Returns a deployment in the cluster with this tier.
fn in_tier(tier: &str) -> Value {
    let mut deployment = deployment_of(&[(V1, &[("east", 2)])]);
    let placement = &mut deployment["spec"]["appRevisions"][0]["placement"][0];
    placement["clusterSelector"] = json!({"labels": {"tier": tier}});
    deployment
}

async fn patch_cluster(fleet: &Fleet, name: &str, change: &Value) {
    let path = objects::path("clusters", name);
    fleet.host().merge_patch(&path, change).await.unwrap();
}

fn ready(fleet: &Fleet, table: &str, name: &str) -> String {
    let object = fleet.stored(&format!("{table}.delivery.mainstay.dev"), name);
    let conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let ready = conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .cloned();
    let ready = ready.unwrap_or_default();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("status"), text("reason"))
}

/// A placement by labels follows the labels of the clusters: pods start in the cluster that matches now
/// before they end in the other one.
#[test]
fn a_placement_follows_the_labels_of_clusters() {
    run(async {
        let mut fleet = Fleet::start(&["east", "west"]).await;
        fleet.record_two_revisions().await;
        patch_cluster(&fleet, "east", &json!({"metadata": {"labels": {"tier": "a"}}})).await;
        fleet.create(&in_tier("a")).await;
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("east", WORKLOAD), Some((2, 2)));
        assert_eq!(fleet.replicas("west", WORKLOAD), None);
        patch_cluster(&fleet, "west", &json!({"metadata": {"labels": {"tier": "a"}}})).await;
        patch_cluster(&fleet, "east", &json!({"metadata": {"labels": {"tier": "b"}}})).await;
        let mut lowest = u64::MAX;
        fleet
            .until("the pods have moved", |fleet| {
                let available = ["east", "west"].map(|name| {
                    fleet
                        .replicas(name, WORKLOAD)
                        .map_or(0, |(_, available)| available)
                });
                lowest = lowest.min(available.iter().sum());
                fleet.replicas("east", WORKLOAD).is_none() && available == [0, 2]
            })
            .await;
        assert_eq!(lowest, 2, "pods start before the others end");
        fleet.until_phase("Healthy").await;
    });
}

/// The reference to a Secret may change. A missing Secret is reported and ends no pod.
#[test]
fn another_secret_is_used_and_a_missing_one_is_reported() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment_of(&[(V1, &[("east", 2)])])).await;
        fleet.until_phase("Healthy").await;

        let mut other = cluster_secret(NAMESPACE, "east", "token-2");
        other["metadata"]["name"] = "other".into();
        fleet.create(&other).await;
        let reference = json!({"spec": {"kubeconfigSecretRef": {"name": "other"}}});
        patch_cluster(&fleet, "east", &reference).await;
        fleet.connector.set_token("east", "token-2");
        let next = deployment_of(&[(V1, &[("east", 3)])]);
        fleet.set_spec(DEPLOYMENTS, &next).await;
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("east", WORKLOAD), Some((3, 3)));

        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/other");
        fleet.host().delete(&path).await.unwrap();
        fleet
            .until("the missing Secret is reported", |fleet| {
                ready(fleet, "clusters", "east") == "False/SecretNotFound"
            })
            .await;
        assert_eq!(fleet.replicas("east", WORKLOAD), Some((3, 3)));
        fleet.create(&other).await;
        fleet
            .until("the cluster is ready again", |fleet| {
                ready(fleet, "clusters", "east") == "True/Ready"
            })
            .await;
    });
}
