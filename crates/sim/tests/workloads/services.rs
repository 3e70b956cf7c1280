//! Tests of `PodDisruptionBudgets` and `EndpointSlices`.

use mainstay_sim::api::{ApiRequest, Outcome, Query};
use mainstay_sim::auth::User;
use mainstay_sim::script::Script;
use mainstay_sim::{Cluster, tree};
use serde_json::{Value, json};

use crate::steps::{DEPLOYMENTS, change_object, cluster, deploy, get, seconds};

#[test]
fn budgets_limit_evictions() {
    let cluster = cluster(1);
    let budget = ("policy", "poddisruptionbudgets");
    change_object(&cluster, budget, "web", &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        );
    });
    deploy(&cluster, &json!({"replicas": 3}));
    let status = |cluster: &Cluster| get(cluster, "poddisruptionbudgets.policy", "web")["status"].clone();
    assert_eq!(status(&cluster)["disruptionsAllowed"], 0);
    cluster.advance(seconds(5));
    let found = status(&cluster);
    let number = |field: &str| found[field].as_i64().unwrap();
    assert_eq!(
        [
            number("currentHealthy"),
            number("desiredHealthy"),
            number("expectedPods"),
            number("disruptionsAllowed")
        ],
        [3, 2, 3, 1]
    );
    assert_eq!(found["conditions"][0]["reason"], "SufficientPods");
    let names: Vec<String> = cluster.with(|state| {
        let pods = state.store.all("pods");
        pods.map(|pod| pod.meta().name.to_string()).collect()
    });
    assert_eq!(evict(&cluster, &names[0]).0, 201);
    let (code, rejection) = evict(&cluster, &names[1]);
    assert_eq!(code, 429);
    assert_eq!(
        rejection["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(
        rejection["details"]["causes"][0]["message"],
        "The disruption budget web needs 2 healthy pods and has 2 currently"
    );
    cluster.advance(seconds(10));
    assert_eq!(evict(&cluster, &names[1]).0, 201);
}

fn evict(cluster: &Cluster, name: &str) -> (u16, Value) {
    let response = cluster.with(|state| {
        let call = ApiRequest {
            client: "test".into(),
            user: User::admin(),
            impersonation: None,
            method: http::Method::POST,
            path: format!("/api/v1/namespaces/default/pods/{name}/eviction"),
            query: Query::default(),
            accept: "application/json".into(),
            content_type: "application/json".into(),
            user_agent: "test/1".into(),
            body: json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
                .to_string()
                .into(),
            webhook_replies: Vec::new(),
        };
        match mainstay_sim::api::handle(state, &call) {
            Outcome::Response(response) => (response.code, serde_json::from_slice(&response.body).unwrap()),
            other => panic!("{other:?}"),
        }
    });
    cluster.settle();
    response
}

#[test]
fn endpoint_slices_follow_readiness_and_termination() {
    let cluster = cluster(1);
    change_object(&cluster, ("", "services"), "web", &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}),
        );
    });
    cluster.with(|state| {
        let script = Script::ready_after(seconds(3)).stopping_after(seconds(4));
        state.scripts.set_default(script);
    });
    deploy(&cluster, &json!({"replicas": 1}));
    let shown = |cluster: &Cluster| -> Vec<String> {
        cluster.with(|state| {
            let slices: Vec<Value> = state
                .store
                .all("endpointslices.discovery.k8s.io")
                .map(|slice| slice.value())
                .filter(|slice| tree::text(slice, &["metadata", "generateName"]) == "web-")
                .collect();
            assert_eq!(slices.len(), 1);
            tree::list(&slices[0], &["endpoints"])
                .iter()
                .map(|one| {
                    let flags = &one["conditions"];
                    format!("{} {} {}", flags["ready"], flags["serving"], flags["terminating"])
                })
                .collect()
        })
    };
    cluster.advance(seconds(1));
    assert_eq!(shown(&cluster), ["false false false"]);
    cluster.advance(seconds(3));
    assert_eq!(shown(&cluster), ["true true false"]);
    change_object(&cluster, DEPLOYMENTS, "web", &|value| {
        tree::set(value, &["spec", "replicas"], 0);
    });
    cluster.advance(seconds(2));
    assert_eq!(shown(&cluster), ["false true true"]);
    cluster.advance(seconds(4));
    assert_eq!(shown(&cluster), Vec::<String>::new());
}
