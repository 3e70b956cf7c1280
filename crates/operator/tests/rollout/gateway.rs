//! A rollout with `HTTPRoute`s on five clusters that serve Gateway API and not Istio.

use std::time::Duration;

use mainstay_harness::FleetOptions;
use serde_json::{Value, json};

use crate::fleet::{Fleet, options};
use crate::gateway_api::gateway_api_definitions;
use crate::golden::{check_golden, golden_text, golden_text_in_any_namespace};
use crate::objects::{self, DEPLOYMENT, NAMESPACE, deployment_of, with_traffic};
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const V1: &str = "example-app-v1";
const V2: &str = "example-app-v2";
/// Clusters of the test; the first is the host.
const CLUSTERS: [&str; 5] = ["", "east", "north", "south", "west"];
const ROUTES: &str = "httproutes.gateway.networking.k8s.io";
/// Time without a status of the routes, after which the rollout must still wait.
const UNACCEPTED_TIME: Duration = Duration::from_mins(5);

/// Returns a deployment in all clusters. Its traffic names a Gateway and no provider.
fn deployment(revisions: &[(&str, u32)]) -> Value {
    let places = CLUSTERS.map(|cluster| (cluster, 2));
    let rows: Vec<(&str, &[(&str, u32)])> = revisions
        .iter()
        .map(|(revision, _)| (*revision, places.as_slice()))
        .collect();
    let mut deployment = with_traffic(deployment_of(&rows), "Auto", revisions);
    deployment["spec"]["traffic"]["gatewayRefs"] = json!([{"name": "public", "namespace": "ingress"}]);
    deployment
}

fn is_accepted(route: &Value) -> bool {
    let parents = route["status"]["parents"].as_array();
    parents.is_some_and(|parents| {
        !parents.is_empty()
            && parents.iter().all(|parent| {
                parent["conditions"][0]["observedGeneration"] == route["metadata"]["generation"]
            })
    })
}

/// Accepts all routes, as a Gateway controller does.
async fn accept_routes(fleet: &Fleet) {
    let path =
        format!("/apis/gateway.networking.k8s.io/v1/namespaces/{NAMESPACE}/httproutes/{DEPLOYMENT}/status");
    for (name, cluster) in &fleet.clusters {
        let Some(route) = fleet
            .object(name, ROUTES, DEPLOYMENT)
            .filter(|route| !is_accepted(route))
        else {
            continue;
        };
        let parents = route["spec"]["parentRefs"].as_array().unwrap().iter();
        let parents: Vec<Value> = parents
            .map(|parent| {
                json!({
                    "parentRef": parent, "controllerName": "example.com/gateway",
                    "conditions": [{
                        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                        "observedGeneration": route["metadata"]["generation"],
                    }],
                })
            })
            .collect();
        let change = json!({"status": {"parents": parents}});
        cluster.merge_patch(&path, &change).await.unwrap();
    }
}

/// Waits for the phase `Healthy` and accepts all routes.
async fn until_healthy(fleet: &mut Fleet) {
    for _ in 0..3600 {
        accept_routes(fleet).await;
        fleet.sleep(Duration::from_millis(500)).await;
        let object = fleet.deployment();
        let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        if is_current && object["status"]["phase"] == "Healthy" {
            return;
        }
    }
    panic!("not healthy: {:#}", fleet.deployment()["status"]);
}

/// Returns the weights of the route in a cluster, by Service.
fn weights(fleet: &Fleet, cluster: &str) -> Vec<(String, u64)> {
    let Some(route) = fleet.object(cluster, ROUTES, DEPLOYMENT) else {
        return Vec::new();
    };
    let backends = route["spec"]["rules"][0]["backendRefs"].as_array().unwrap();
    let weight = |backend: &Value| {
        let name = backend["name"].as_str().unwrap().to_owned();
        (name, backend["weight"].as_u64().unwrap())
    };
    backends.iter().map(weight).collect()
}

fn pair(one: u64, two: u64) -> Vec<(String, u64)> {
    vec![(V1.to_owned(), one), (V2.to_owned(), two)]
}

/// Returns Services and routes of all clusters as YAML.
fn routed_objects(fleet: &Fleet) -> String {
    let mut text = String::new();
    for name in CLUSTERS {
        let shown = if name.is_empty() { "host" } else { name };
        for (table, object) in [("services", V1), ("services", V2), (ROUTES, DEPLOYMENT)] {
            if let Some(object) = fleet.object(name, table, object) {
                text.push_str(&golden_text(shown, object));
            }
        }
    }
    text
}

/// The rollout uses `HTTPRoute`s because no cluster serves Istio's kinds. It continues only when the
/// controllers of the Gateways have accepted the current generation of every route.
#[test]
fn http_routes_split_traffic_in_five_clusters() {
    run(async {
        let options = FleetOptions {
            route_definitions: gateway_api_definitions(),
            ..options(&CLUSTERS[1..])
        };
        let mut fleet = Fleet::with_options(options).await;
        fleet.start_controllers();
        fleet.record_two_revisions().await;
        fleet.create(&deployment(&[(V1, 100)])).await;
        until_healthy(&mut fleet).await;

        fleet
            .set_spec(DEPLOYMENTS, &deployment(&[(V1, 50), (V2, 50)]))
            .await;
        until_healthy(&mut fleet).await;
        for cluster in CLUSTERS {
            assert_eq!(weights(&fleet, cluster), pair(50, 50), "{cluster:?}");
        }
        check_golden("gateway-even", &routed_objects(&fleet));

        fleet.set_spec(DEPLOYMENTS, &deployment(&[(V2, 100)])).await;
        fleet
            .until("all traffic is on v2", |fleet| {
                let all = [(V2.to_owned(), 100)];
                CLUSTERS.iter().all(|cluster| weights(fleet, cluster) == all)
            })
            .await;
        fleet.sleep(UNACCEPTED_TIME).await;
        assert_ne!(fleet.deployment()["status"]["phase"], "Healthy");
        for cluster in CLUSTERS {
            let replicas = fleet.replicas(cluster, "example-app-v1-testsvc");
            assert_eq!(
                replicas,
                Some((2, 2)),
                "pods are kept until the route is accepted"
            );
        }
        until_healthy(&mut fleet).await;
        fleet.until_idle().await;
        check_golden("gateway-replaced", &routed_objects(&fleet));
        for cluster in CLUSTERS {
            assert_eq!(fleet.replicas(cluster, "example-app-v1-testsvc"), None);
        }
        let before = fleet.writes();
        fleet.sleep(Duration::from_mins(30)).await;
        assert_eq!(fleet.writes() - before, 0, "writes in a steady state");

        let path = objects::path(DEPLOYMENTS, DEPLOYMENT);
        fleet.host().delete(&path).await.unwrap();
        fleet
            .until("the deployment is deleted", |fleet| fleet.deployment().is_null())
            .await;
        for cluster in CLUSTERS {
            assert_eq!(fleet.object(cluster, ROUTES, DEPLOYMENT), None, "{cluster:?}");
        }
    });
}

/// The stored object equals the one on a real API server (`rollout_servers`).
#[test]
fn an_http_route_for_a_service_equals_the_one_on_a_real_server() {
    run(async {
        let options = FleetOptions {
            route_definitions: gateway_api_definitions(),
            ..options(&[])
        };
        let mut fleet = Fleet::with_options(options).await;
        fleet.start_controllers();
        fleet.record_two_revisions().await;
        let deployment = objects::gateway_deployment(NAMESPACE, &[(V1, 50), (V2, 50)]);
        fleet.create(&deployment).await;
        until_healthy(&mut fleet).await;
        let route = fleet.object("", ROUTES, DEPLOYMENT).unwrap();
        check_golden("gateway-server", &golden_text_in_any_namespace("host", route));
    });
}
