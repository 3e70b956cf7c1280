//! Compares `difference` with an API server: it must return a difference exactly if an apply changes the
//! stored object. Objects and edits, ours and those of other clients, are random. The server is the
//! simulator, which the conformance suite compares with a real one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use mainstay_cluster::compare::difference;
use mainstay_sim::Cluster;
use mainstay_testkit::{CaseCounts, Random, case_count};
use serde_json::{Value, json};

struct Server {
    client: Client,
}

impl Server {
    fn new() -> Self {
        Self {
            client: Client::new(Cluster::default().connect("test"), "default"),
        }
    }

    fn api(&self, wanted: &Value) -> Api<DynamicObject> {
        let (group, version) = match wanted["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", wanted["apiVersion"].as_str().unwrap()),
        };
        let kind = GroupVersionKind::gvk(group, version, wanted["kind"].as_str().unwrap());
        Api::namespaced_with(self.client.clone(), "default", &ApiResource::from_gvk(&kind))
    }

    async fn live(&self, wanted: &Value) -> Value {
        serde_json::to_value(self.api(wanted).get("it").await.unwrap()).unwrap()
    }

    async fn apply(&self, wanted: &Value) -> Value {
        let params = PatchParams::apply("us").force();
        let response = self.api(wanted).patch("it", &params, &Patch::Apply(wanted)).await;
        serde_json::to_value(response.unwrap_or_else(|error| panic!("{error}: {wanted}"))).unwrap()
    }

    async fn patch_as_other(&self, wanted: &Value, patch: &Value) {
        let params = PatchParams {
            field_manager: Some("them".into()),
            ..PatchParams::default()
        };
        let _ = self.api(wanted).patch("it", &params, &Patch::Merge(patch)).await;
    }
}

fn labels(random: &mut Random) -> Value {
    let mut map = serde_json::Map::new();
    for name in ["a", "b", "c"] {
        if random.chance(1, 2) {
            map.insert(name.into(), json!(random.below(2).to_string()));
        }
    }
    Value::Object(map)
}

fn config_map(random: &mut Random) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "labels": labels(random)}, "data": labels(random)})
}

fn service(random: &mut Random) -> Value {
    let mut ports = vec![json!({"name": "http", "port": 80, "targetPort": 8080 + random.below(2)})];
    if random.chance(1, 2) {
        ports.push(json!({"name": "https", "port": 443, "protocol": "TCP"}));
    }
    if random.chance(1, 3) {
        ports.push(json!({"name": "dns", "port": 53, "protocol": "UDP", "appProtocol": "x"}));
    }
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "it", "annotations": labels(random)},
        "spec": {"ports": ports, "selector": labels(random), "type": *random.pick(&["ClusterIP", "NodePort"])},
    })
}

fn deployment(random: &mut Random) -> Value {
    let mut container = json!({
        "name": "app", "image": format!("app:{}", random.below(2)), "args": ["a", random.below(2).to_string()],
        "resources": {"requests": {"cpu": *random.pick(&["500m", "0.5", "1"]), "memory": *random.pick(&["1Gi", "1024Mi"])}},
    });
    if random.chance(1, 2) {
        container["env"] =
            json!([{"name": "A", "value": random.below(2).to_string()}, {"name": "B", "value": "x"}]);
    }
    if random.chance(1, 2) {
        container["ports"] = json!([{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}]);
    }
    let mut wanted = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it", "labels": labels(random)},
        "spec": {
            "selector": {"matchLabels": {"app": "it"}},
            "template": {"metadata": {"labels": {"app": "it"}, "annotations": labels(random)}, "spec": {"containers": [container]}},
        },
    });
    if random.chance(1, 2) {
        wanted["spec"]["replicas"] = json!(random.below(3));
    }
    if random.chance(1, 3) {
        wanted["spec"]["template"]["spec"]["tolerations"] =
            json!([{"key": random.below(2).to_string(), "operator": "Exists"}]);
    }
    if random.chance(1, 3) {
        let volumes = json!([{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c", "optional": true}}]);
        wanted["spec"]["template"]["spec"]["volumes"] = volumes;
    }
    wanted
}

fn role(random: &mut Random) -> Value {
    let verbs = ["get", "list", "watch"];
    let rules: Vec<Value> = (0..random.below(3))
        .map(|_| json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs[..=random.below(3)]}))
        .collect();
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "it"}, "rules": rules})
}

fn random_edit(random: &mut Random) -> Value {
    match random.below(5) {
        0 => json!({"metadata": {"labels": {"theirs": random.below(2).to_string()}}}),
        1 => json!({"metadata": {"labels": {"a": "theirs"}}}),
        2 => json!({"metadata": {"labels": {"a": null, "b": null}}}),
        3 => json!({"spec": {"replicas": 7}}),
        _ => json!({"metadata": {"annotations": {"theirs": "x"}}}),
    }
}

#[tokio::test]
async fn a_difference_is_found_exactly_if_an_apply_writes() {
    let mut random = Random::new(7);
    let mut counts = CaseCounts::default();
    let makers = [config_map, service, deployment, role];
    for _ in 0..case_count(100) {
        let server = Server::new();
        let make = *random.pick(&makers);
        let mut wanted = make(&mut random);
        server.apply(&wanted).await;
        for _ in 0..6 {
            if random.chance(1, 2) {
                server.patch_as_other(&wanted, &random_edit(&mut random)).await;
            }
            if random.chance(1, 2) {
                wanted = make(&mut random);
            }
            let before = server.live(&wanted).await;
            let found = difference(&wanted, &before, "us");
            let after = server.apply(&wanted).await;
            let has_changed = before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"];
            counts.count(found.is_some() == has_changed, || {
                format!("said {found:?}, the server wrote: {has_changed}\n wanted {wanted}\n before {before}")
            });
        }
    }
    println!("compare with an apply: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}
