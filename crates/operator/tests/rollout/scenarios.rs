//! Rollouts over several clusters.

use std::time::Duration;

use mainstay_harness::cluster_secret;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::golden::{check_golden, golden_text};
use crate::objects::{self, DEPLOYMENT, NAMESPACE, deployment_of, with_traffic};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const V2: &str = "example-app-v2";
const MEMBER: &str = "prod-cluster-1";

fn set_weights(deployment: &mut Value, weights: [u32; 2]) {
    for (index, weight) in weights.iter().enumerate() {
        deployment["spec"]["traffic"]["http"][0]["weightedTargets"][index]["weight"] = json!(weight);
    }
}

fn weights(fleet: &Fleet, cluster: &str) -> Vec<(String, u64)> {
    let route = fleet
        .object(cluster, "virtualservices.networking.istio.io", DEPLOYMENT)
        .unwrap();
    let routes = route["spec"]["http"][0]["route"].as_array().unwrap();
    let one = |route: &Value| {
        let host = route["destination"]["host"].as_str().unwrap();
        (host.to_owned(), route["weight"].as_u64().unwrap())
    };
    routes.iter().map(one).collect()
}

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let found = found.cloned().unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("status"), text("reason"))
}

/// Returns Services and routes of all clusters as YAML.
fn routed_objects(fleet: &Fleet) -> String {
    let mut text = String::new();
    for name in fleet.clusters.keys() {
        let shown = if name.is_empty() { "host" } else { name };
        for (table, object) in [
            ("services", V1),
            ("services", V2),
            ("virtualservices.networking.istio.io", DEPLOYMENT),
        ] {
            if let Some(object) = fleet.object(name, table, object) {
                text.push_str(&golden_text(shown, object));
            }
        }
    }
    text
}

/// Waits for a phase, and checks at every poll that at least this number of pods is available in each
/// cluster.
async fn until_phase_with_available(fleet: &mut Fleet, phase: &str, min_available: u64) {
    let mut lowest = u64::MAX;
    fleet
        .until(phase, |fleet| {
            for cluster in fleet.clusters.keys() {
                let available = [V1, V2].map(|revision| {
                    let replicas = fleet.replicas(cluster, &format!("{revision}-testsvc"));
                    replicas.map_or(0, |(_, available)| available)
                });
                lowest = lowest.min(available.iter().sum());
            }
            let object = fleet.deployment();
            object["status"]["phase"] == phase
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await;
    assert!(lowest >= min_available, "only {lowest} pods were available");
}

#[test]
fn one_deployment_in_the_host_cluster() {
    run(async {
        let mut fleet = Fleet::start(&[]).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment_of(&[(V1, &[("", 3)])])).await;
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("", "example-app-v1-testsvc"), Some((3, 3)));
        let owner = fleet
            .object("", "deployments.apps", "example-app-v1-testsvc")
            .unwrap();
        assert_eq!(owner["metadata"]["ownerReferences"][0]["name"], DEPLOYMENT);
        fleet.until_idle().await;
        let before = fleet.writes();
        fleet.sleep(Duration::from_mins(30)).await;
        assert_eq!(fleet.writes() - before, 0, "writes in a steady state");
        fleet
            .host()
            .delete(&objects::path(DEPLOYMENTS, DEPLOYMENT))
            .await
            .unwrap();
        fleet
            .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
            .await;
        assert_eq!(fleet.replicas("", "example-app-v1-testsvc"), None);
    });
}

/// Runs the proposal's example: two revisions, two clusters, an even split, a shift, and the removal of the
/// first revision.
#[test]
fn the_proposal_end_to_end() {
    run(async {
        let mut fleet = Fleet::start(&[MEMBER]).await;
        fleet.record_two_revisions().await;
        let mut deployment = objects::deployment();
        fleet.create(&deployment).await;
        fleet.until_phase("Healthy").await;
        for cluster in ["", MEMBER] {
            assert_eq!(
                fleet.replicas(cluster, "example-app-v1-testsvc"),
                Some((5, 5)),
                "{cluster:?}"
            );
            assert_eq!(
                fleet.replicas(cluster, "example-app-v2-testsvc"),
                Some((5, 5)),
                "{cluster:?}"
            );
            assert_eq!(
                weights(&fleet, cluster),
                [(V1.to_owned(), 50), (V2.to_owned(), 50)]
            );
        }
        check_golden("proposal-even", &routed_objects(&fleet));
        check_selectors(&fleet);

        set_weights(&mut deployment, [10, 90]);
        fleet.set_spec(DEPLOYMENTS, &deployment).await;
        until_phase_with_available(&mut fleet, "Healthy", 10).await;
        check_golden("proposal-shifted", &routed_objects(&fleet));

        let spec = &mut deployment["spec"];
        spec["traffic"]["http"][0]["weightedTargets"]
            .as_array_mut()
            .unwrap()
            .remove(0);
        spec["traffic"]["http"][0]["weightedTargets"][0]["weight"] = json!(100);
        spec["appRevisions"].as_array_mut().unwrap().remove(0);
        fleet.set_spec(DEPLOYMENTS, &deployment).await;
        until_phase_with_available(&mut fleet, "Healthy", 5).await;
        fleet.until_idle().await;
        for cluster in ["", MEMBER] {
            assert_eq!(
                fleet.replicas(cluster, "example-app-v1-testsvc"),
                None,
                "{cluster:?}"
            );
            assert_eq!(fleet.object(cluster, "services", V1), None, "{cluster:?}");
        }
        check_golden("proposal-replaced", &routed_objects(&fleet));
        let before = fleet.writes();
        fleet.sleep(Duration::from_mins(30)).await;
        assert_eq!(fleet.writes() - before, 0, "writes in a steady state");
        check_deletion(&mut fleet).await;
    });
}

/// Checks that pods of the two revisions are selected by different Services.
fn check_selectors(fleet: &Fleet) {
    for cluster in fleet.clusters.keys() {
        for (service, own) in [(V1, V1), (V2, V2)] {
            let service = fleet.object(cluster, "services", service).unwrap();
            let selector = service["spec"]["selector"].as_object().unwrap().clone();
            for revision in [V1, V2] {
                let workload = format!("{revision}-testsvc");
                let workload = fleet.object(cluster, "deployments.apps", &workload).unwrap();
                let labels = &workload["spec"]["template"]["metadata"]["labels"];
                let is_selected = selector.iter().all(|(name, value)| labels[name] == *value);
                assert_eq!(is_selected, revision == own, "{service} and {labels}");
            }
        }
    }
}

async fn check_deletion(fleet: &mut Fleet) {
    fleet
        .host()
        .delete(&objects::path(DEPLOYMENTS, DEPLOYMENT))
        .await
        .unwrap();
    fleet
        .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
        .await;
    fleet.until_idle().await;
    for cluster in fleet.clusters.keys() {
        for (table, name) in [
            ("deployments.apps", "example-app-v2-testsvc"),
            ("services", V2),
            ("virtualservices.networking.istio.io", DEPLOYMENT),
        ] {
            assert_eq!(fleet.object(cluster, table, name), None, "{cluster:?}");
        }
    }
    let inventories = objects::path("resourceinventories", "");
    let left = fleet
        .host()
        .get(inventories.trim_end_matches('/'))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(left["items"].as_array().unwrap().len(), 0, "{left}");
}

/// With the policy `Orphan`, the objects in all clusters survive the deployment, also those in the host
/// cluster, which it owned.
#[test]
fn orphaned_objects_survive_the_deployment() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        fleet.record_two_revisions().await;
        let mut deployment = deployment_of(&[(V1, &[("", 2), ("east", 2)])]);
        deployment["spec"]["deletion"] = json!({"policy": "Orphan"});
        fleet.create(&deployment).await;
        fleet.until_phase("Healthy").await;
        let path = objects::path(DEPLOYMENTS, DEPLOYMENT);
        fleet.host().delete(&path).await.unwrap();
        fleet
            .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
            .await;
        fleet.sleep(Duration::from_mins(5)).await;
        for cluster in ["", "east"] {
            assert_eq!(
                fleet.replicas(cluster, "example-app-v1-testsvc"),
                Some((2, 2)),
                "{cluster:?}"
            );
        }
    });
}

#[test]
fn a_dead_cluster_blocks_no_other() {
    run(async {
        let mut fleet = Fleet::start(&["east", "north", "west"]).await;
        fleet.record_two_revisions().await;
        fleet.connector.set_unresponsive("north", true);
        fleet
            .create(&deployment_of(&[(V1, &[("east", 2), ("north", 2), ("west", 2)])]))
            .await;
        fleet
            .until("two clusters run", |fleet| {
                let runs = |cluster| fleet.replicas(cluster, "example-app-v1-testsvc") == Some((2, 2));
                runs("east") && runs("west")
            })
            .await;
        assert_eq!(fleet.replicas("north", "example-app-v1-testsvc"), None);
        fleet
            .until("the outage is reported", |fleet| {
                let cluster = fleet.stored("clusters.delivery.mainstay.dev", "north");
                condition(&cluster, "Ready") == "False/ClusterUnreachable"
                    && condition(&fleet.deployment(), "ClustersReachable") == "False/ClusterUnreachable"
            })
            .await;
        fleet.connector.set_unresponsive("north", false);
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("north", "example-app-v1-testsvc"), Some((2, 2)));
    });
}

/// A cluster stops responding during a change.
#[test]
fn a_rollout_continues_after_the_outage_of_a_cluster() {
    run(async {
        let mut fleet = Fleet::start(&["east", "west"]).await;
        fleet.record_two_revisions().await;
        fleet
            .create(&deployment_of(&[(V1, &[("east", 2), ("west", 2)])]))
            .await;
        fleet.until_phase("Healthy").await;
        fleet.connector.set_unresponsive("west", true);
        let both: &[(&str, u32)] = &[("east", 3), ("west", 3)];
        fleet.set_spec(DEPLOYMENTS, &deployment_of(&[(V1, both)])).await;
        fleet
            .until("the other cluster is scaled", |fleet| {
                fleet.replicas("east", "example-app-v1-testsvc") == Some((3, 3))
            })
            .await;
        assert_eq!(
            fleet.replicas("west", "example-app-v1-testsvc"),
            Some((2, 2)),
            "the objects in the cluster are not changed"
        );
        fleet.connector.set_unresponsive("west", false);
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("west", "example-app-v1-testsvc"), Some((3, 3)));
    });
}

#[test]
fn a_rotated_secret_is_used() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        fleet.record_two_revisions().await;
        fleet.create(&deployment_of(&[(V1, &[("east", 2)])])).await;
        fleet.until_phase("Healthy").await;
        fleet.connector.set_token("east", "token-2");
        fleet
            .until("the old credential is rejected", |fleet| {
                let cluster = fleet.stored("clusters.delivery.mainstay.dev", "east");
                condition(&cluster, "Ready") == "False/CredentialRejected"
            })
            .await;
        let rotated = cluster_secret(NAMESPACE, "east", "token-2");
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/kubeconfig-east");
        fleet
            .host()
            .merge_patch(&path, &json!({"data": rotated["data"]}))
            .await
            .unwrap();
        fleet
            .set_spec(DEPLOYMENTS, &deployment_of(&[(V1, &[("east", 4)])]))
            .await;
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc"), Some((4, 4)));
        let cluster = fleet.stored("clusters.delivery.mainstay.dev", "east");
        assert_eq!(condition(&cluster, "Ready"), "True/Ready");
    });
}

/// A rejected kubeconfig is reported by a condition, which does not contain the kubeconfig.
#[test]
fn a_rejected_kubeconfig_is_reported_by_a_condition() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        let kubeconfig =
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {exec: {command: CANARY}}}]\n";
        let data = {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD.encode(kubeconfig)
        };
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/kubeconfig-east");
        fleet
            .host()
            .merge_patch(&path, &json!({"data": {"config": data}}))
            .await
            .unwrap();
        fleet
            .until("the kubeconfig is rejected", |fleet| {
                let cluster = fleet.stored("clusters.delivery.mainstay.dev", "east");
                condition(&cluster, "Ready") == "False/InvalidKubeconfig"
            })
            .await;
        let cluster = fleet.stored("clusters.delivery.mainstay.dev", "east").to_string();
        assert!(!cluster.contains("CANARY"), "{cluster}");
    });
}

/// If a Cluster object is deleted, the objects in that cluster stay, and other clusters are still
/// reconciled.
#[test]
fn objects_in_a_deleted_cluster_are_kept() {
    run(async {
        let mut fleet = Fleet::start(&["east", "west"]).await;
        fleet.record_two_revisions().await;
        fleet
            .create(&deployment_of(&[(V1, &[("east", 2), ("west", 2)])]))
            .await;
        fleet.until_phase("Healthy").await;
        fleet
            .host()
            .delete(&objects::path("clusters", "west"))
            .await
            .unwrap();
        fleet
            .until("the missing cluster is reported", |fleet| {
                condition(&fleet.deployment(), "Ready") == "False/ClusterNotFound"
            })
            .await;
        assert_eq!(fleet.replicas("west", "example-app-v1-testsvc"), Some((2, 2)));
        fleet
            .set_spec(DEPLOYMENTS, &deployment_of(&[(V1, &[("east", 3)])]))
            .await;
        fleet
            .until("the other cluster is scaled", |fleet| {
                fleet.replicas("east", "example-app-v1-testsvc") == Some((3, 3))
            })
            .await;
        assert_eq!(
            fleet.replicas("west", "example-app-v1-testsvc"),
            Some((2, 2)),
            "the objects in the cluster are not changed"
        );
        fleet.create(&objects::cluster("west")).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        assert_eq!(
            fleet.replicas("west", "example-app-v1-testsvc"),
            None,
            "removed once the Cluster exists again"
        );
    });
}

#[test]
fn drift_is_corrected_in_every_cluster() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        fleet.record_two_revisions().await;
        let places: &[(&str, u32)] = &[("", 2), ("east", 2)];
        let deployment = with_traffic(deployment_of(&[(V1, places)]), "Istio", &[(V1, 100)]);
        fleet.create(&deployment).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        let workload = "/apis/apps/v1/namespaces/default/deployments/example-app-v1-testsvc";
        let route = format!("/apis/networking.istio.io/v1/namespaces/default/virtualservices/{DEPLOYMENT}");
        for cluster in ["", "east"] {
            let member = &fleet.clusters[cluster];
            let image =
                json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil"}]);
            json_patch(member, workload, &image).await;
            let hosts = json!([{"op": "replace", "path": "/spec/hosts/0", "value": "evil.example.com"}]);
            json_patch(member, &route, &hosts).await;
        }
        for cluster in ["", "east"] {
            fleet
                .until("drift is corrected", |fleet| {
                    let workload = fleet
                        .object(cluster, "deployments.apps", "example-app-v1-testsvc")
                        .unwrap();
                    let route = fleet
                        .object(cluster, "virtualservices.networking.istio.io", DEPLOYMENT)
                        .unwrap();
                    let image = &workload["spec"]["template"]["spec"]["containers"][0]["image"];
                    image == "registry/app:1" && route["spec"]["hosts"][0] == "example-app.example.com"
                })
                .await;
            assert_eq!(fleet.replicas(cluster, "example-app-v1-testsvc").unwrap().0, 2);
        }
        fleet.until_idle().await;
    });
}

async fn json_patch(cluster: &mainstay_harness::SimulatedCluster, path: &str, operations: &Value) {
    let request = http::Request::builder()
        .method("PATCH")
        .uri(path)
        .header("content-type", "application/json-patch+json")
        .body(operations.to_string().into_bytes())
        .unwrap();
    cluster.client("user").request::<Value>(request).await.unwrap();
}

/// An object of another owner is reported and never changed.
#[test]
fn a_name_conflict_is_reported() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        fleet.record_two_revisions().await;
        let foreign = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "example-app-v1-testsvc", "namespace": NAMESPACE},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        });
        fleet.clusters["east"].create(&foreign).await.unwrap();
        fleet.create(&deployment_of(&[(V1, &[("east", 2)])])).await;
        fleet
            .until("the conflict is reported", |fleet| {
                condition(&fleet.deployment(), "Ready") == "False/NameConflict"
            })
            .await;
        fleet.until_idle().await;
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc").unwrap().0, 1);
        let path = "/apis/apps/v1/namespaces/default/deployments/example-app-v1-testsvc";
        fleet.clusters["east"].delete(path).await.unwrap();
        fleet.until_phase("Healthy").await;
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc"), Some((2, 2)));
    });
}

fn canary(weights: &[(&str, u32)], places: &[(&str, &[(&str, u32)])], on_no_data: &str) -> (Value, Value) {
    let template = json!({
        "apiVersion": objects::API, "kind": "AnalysisTemplate",
        "metadata": {"name": "success-rate", "namespace": NAMESPACE},
        "spec": {"metrics": [{
            "name": "rate", "intervalSeconds": 10, "count": 3, "onNoData": on_no_data,
            "success": {"min": 0.99},
            "prometheus": {"address": "http://prometheus.monitoring:9090", "query": "rate{revision=\"{{revision}}\"}"},
        }]},
    });
    let mut deployment = with_traffic(deployment_of(places), "Istio", weights);
    deployment["spec"]["strategy"] = json!({
        "type": "Canary", "maxUnavailable": 0, "onFailure": "Rollback",
        "steps": [
            {"setReplicas": "50%"}, {"setWeight": 20},
            {"analysis": {"templateName": "success-rate"}}, {"setWeight": 100},
        ],
    });
    (template, deployment)
}

async fn canary_to_v2(fleet: &mut Fleet, metric: Option<f64>, on_no_data: &str) {
    fleet.record_two_revisions().await;
    fleet.metrics.set(Some(1.0));
    let (template, deployment) = canary(&[(V1, 100)], &[(V1, &[("east", 4)])], on_no_data);
    fleet.create(&template).await;
    fleet.create(&deployment).await;
    fleet.until_phase("Healthy").await;
    fleet.metrics.set(metric);
    let (_, next) = canary(&[(V2, 100)], &[(V2, &[("east", 4)])], on_no_data);
    fleet.set_spec(DEPLOYMENTS, &next).await;
}

#[test]
fn a_canary_with_good_metrics_succeeds() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        canary_to_v2(&mut fleet, Some(0.999), "Pause").await;
        let before = fleet.metrics.query_count();
        fleet
            .until("the step is reached", |fleet| {
                weights(fleet, "east").contains(&(V2.to_owned(), 20))
            })
            .await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        assert_eq!(fleet.replicas("east", "example-app-v2-testsvc"), Some((4, 4)));
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc"), None);
        assert_eq!(
            fleet.metrics.query_count() - before,
            3,
            "measurements of the step"
        );
    });
}

#[test]
fn a_canary_with_bad_metrics_is_rolled_back() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        canary_to_v2(&mut fleet, Some(0.5), "Pause").await;
        fleet.until_phase("Aborted").await;
        fleet.until_idle().await;
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc"), Some((4, 4)));
        assert_eq!(weights(&fleet, "east"), [(V1.to_owned(), 100)]);
    });
}

#[test]
fn a_canary_without_data_waits_or_fails_by_its_policy() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        canary_to_v2(&mut fleet, None, "Pause").await;
        fleet
            .until("the analysis has no data", |fleet| {
                condition(&fleet.deployment(), "AnalysisPassed") == "False/AnalysisNoData"
            })
            .await;
        assert!(weights(&fleet, "east").contains(&(V1.to_owned(), 80)));
        fleet.metrics.set(Some(1.0));
        fleet.until_phase("Healthy").await;
    });
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        canary_to_v2(&mut fleet, None, "Fail").await;
        fleet.until_phase("Aborted").await;
    });
}

/// A spec change during a rollout is planned from the observed state.
#[test]
fn a_spec_change_during_a_rollout_is_planned_again() {
    run(async {
        let mut fleet = Fleet::start(&["east"]).await;
        canary_to_v2(&mut fleet, None, "Pause").await;
        fleet
            .until("the step is reached", |fleet| {
                weights(fleet, "east").contains(&(V2.to_owned(), 20))
            })
            .await;
        fleet.metrics.set(Some(1.0));
        let (_, back) = canary(&[(V1, 100)], &[(V1, &[("east", 4)])], "Pause");
        fleet.set_spec(DEPLOYMENTS, &back).await;
        fleet.until_phase("Healthy").await;
        fleet.until_idle().await;
        assert_eq!(fleet.replicas("east", "example-app-v1-testsvc"), Some((4, 4)));
        assert_eq!(fleet.replicas("east", "example-app-v2-testsvc"), None);
    });
}
