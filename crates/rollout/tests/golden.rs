//! Golden test of the proposal's example: two revisions, two clusters, an even split, a shift, and the
//! removal of the first revision. The generated objects are compared with stored ones for each provider.
//!
//! `BLESS=1` stores the generated objects.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    dead_code,
    reason = "helpers of tests, and files to compare with"
)]

#[path = "simulation/model.rs"]
mod model;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use mainstay_api::delivery::{DeploymentPhase, Provider};
use mainstay_rollout::documents::parse_documents;
use mainstay_yaml::{Budget, Numbers, parse_json, to_yaml_v3};
use model::{World, revision};
use serde_json::{Value, json};

fn proposal_spec() -> Value {
    let documents = parse_documents(include_str!("documents/proposal.yaml")).unwrap();
    documents[0].object["spec"].clone()
}

fn world(spec: Value, provider: Provider) -> World {
    let mut world = World::new(1, spec, &["", "prod-cluster-1"]);
    world.set_provider(provider);
    world.components = 1;
    world.deployment.metadata.name = "example-app-deploy".into();
    world.revisions = ["example-app-v1", "example-app-v2"]
        .iter()
        .map(|name| ((*name).to_owned(), Arc::new(revision(name, &["testsvc"]))))
        .collect();
    let cluster = world.clusters.get_mut("prod-cluster-1").unwrap();
    cluster.labels = BTreeMap::from([("usage".to_owned(), "production".to_owned())]);
    world
}

fn settle(world: &mut World) {
    assert!(world.run_until_idle(500), "{:#?}", world.deployment.status);
    let own = "example-app-deploy";
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
    assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy, "{own}");
}

/// Returns all objects except workloads as YAML.
fn objects(world: &World) -> String {
    let mut text = String::new();
    for (name, cluster) in &world.clusters {
        let name = if name.is_empty() { "host" } else { name };
        for (key, object) in &cluster.objects {
            if key.kind != "Deployment" {
                let json = object.manifest.to_string();
                let value = parse_json(json, Numbers::Exact, &Budget::default()).unwrap();
                write!(text, "--- # cluster {name}\n{}", to_yaml_v3(&value).unwrap()).unwrap();
            }
        }
    }
    text
}

fn check(name: &str, world: &World) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.yaml"));
    let found = objects(world);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == found, "{name} differs from the stored file:\n{found}");
}

fn without_weights(mut spec: Value, keep_match: bool) -> Value {
    for rule in spec["traffic"]["http"].as_array_mut().unwrap() {
        for target in rule["weightedTargets"].as_array_mut().unwrap() {
            target.as_object_mut().unwrap().remove("weight");
        }
        if !keep_match {
            rule.as_object_mut().unwrap().remove("match");
        }
    }
    spec
}

fn set_weights(spec: &mut Value, weights: [u32; 2]) {
    for (index, weight) in weights.iter().enumerate() {
        spec["traffic"]["http"][0]["weightedTargets"][index]["weight"] = json!(weight);
    }
}

fn remove_first(spec: &mut Value) {
    spec["appRevisions"].as_array_mut().unwrap().remove(0);
    spec["traffic"]["http"][0]["weightedTargets"]
        .as_array_mut()
        .unwrap()
        .remove(0);
}

fn split_shift_remove(name: &str, provider: Provider, mut spec: Value) {
    let mut world = world(spec.clone(), provider);
    settle(&mut world);
    check(&format!("{name}-1-split"), &world);
    set_weights(&mut spec, [20, 80]);
    world.set_spec(spec.clone());
    settle(&mut world);
    check(&format!("{name}-2-shift"), &world);
    set_weights(&mut spec, [0, 100]);
    remove_first(&mut spec);
    world.set_spec(spec);
    settle(&mut world);
    check(&format!("{name}-3-removed"), &world);
}

#[test]
fn the_proposals_example_with_istio() {
    split_shift_remove("istio", Provider::Istio, proposal_spec());
}

#[test]
fn the_proposals_example_with_gateway_api() {
    let mut spec = proposal_spec();
    spec["traffic"]["gatewayRefs"] = json!([{"name": "public", "namespace": "edge"}]);
    split_shift_remove("gateway", Provider::GatewayApi, spec);
}

#[test]
fn the_proposals_example_with_ingress() {
    let mut spec = without_weights(proposal_spec(), false);
    let mut world = world(spec.clone(), Provider::Ingress);
    settle(&mut world);
    check("ingress-1-paths", &world);
    remove_first(&mut spec);
    world.set_spec(spec);
    settle(&mut world);
    check("ingress-2-removed", &world);
}

#[test]
fn an_ingress_with_a_match_distributes_by_replicas() {
    let mut world = world(without_weights(proposal_spec(), true), Provider::Ingress);
    settle(&mut world);
    check("ingress-3-replicas", &world);
}

#[test]
fn several_routes_affinity_and_policy() {
    for (name, provider) in [("istio", Provider::Istio), ("gateway", Provider::GatewayApi)] {
        let mut spec = proposal_spec();
        let traffic = &mut spec["traffic"];
        traffic["gateways"] = json!(["edge/public"]);
        traffic["sessionAffinity"] = json!({"cookieName": "release"});
        traffic["policy"] = json!({"connectionPool": {"tcp": {"maxConnections": 100}}});
        let mut second = traffic["http"][0].clone();
        second["name"] = json!("internal");
        second["route"] = json!("internal");
        second["match"] =
            json!([{"uri": {"exact": "/health"}, "method": "GET", "headers": {"x-a": {"prefix": "b"}}}]);
        second["weightedTargets"][0]["port"] = json!(9090);
        traffic["http"].as_array_mut().unwrap().push(second);
        let mut world = world(spec, provider);
        settle(&mut world);
        check(&format!("{name}-4-routes"), &world);
    }
}

/// Returns the names of the Deployments with the pods that each Service selects, by name of the Service.
fn selected(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut selected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cluster in world.clusters.values() {
        let of = |kind: &'static str| {
            let objects = cluster.objects.iter();
            objects.filter(move |(key, _)| key.kind == kind)
        };
        for (service, object) in of("Service") {
            let selector = object.manifest["spec"]["selector"].as_object().unwrap();
            for (workload, object) in of("Deployment") {
                let labels = &object.manifest["spec"]["template"]["metadata"]["labels"];
                if selector.iter().all(|(key, value)| labels.get(key) == Some(value)) {
                    let pods = selected.entry(service.name.clone()).or_default();
                    pods.push(workload.name.clone());
                }
            }
        }
    }
    selected
}

/// In `KubeVela`, both Services selected the pods of both revisions, so that weights had no effect.
#[test]
fn services_select_the_pods_of_one_revision() {
    let mut world = world(proposal_spec(), Provider::Istio);
    settle(&mut world);
    let expected = |revision: &str| vec![format!("{revision}-testsvc"); 2];
    let selected = selected(&world);
    assert_eq!(
        selected,
        BTreeMap::from(["example-app-v1", "example-app-v2"].map(|name| (name.to_owned(), expected(name))))
    );
    for cluster in world.clusters.values() {
        for (key, object) in cluster.objects.iter().filter(|(key, _)| key.kind == "Deployment") {
            let labels = &object.manifest["spec"]["template"]["metadata"]["labels"];
            let selector = object.manifest["spec"]["selector"]["matchLabels"]
                .as_object()
                .unwrap();
            assert!(
                selector
                    .iter()
                    .all(|(name, value)| labels.get(name) == Some(value)),
                "{key}"
            );
        }
    }
}
