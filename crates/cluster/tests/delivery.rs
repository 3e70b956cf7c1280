//! Tests the definitions of `delivery.mainstay.dev` on the simulator and on a real API server: they are
//! accepted, and each validation rule rejects the objects that violate it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

use std::process::ExitCode;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use mainstay_api::crd::delivery_definitions;
use mainstay_api::delivery::{API_VERSION, GROUP};
use mainstay_cluster::definitions;
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::{suite, test_cases};
use serde_json::{Value, json};

const OBJECTS: &str = include_str!("delivery/objects.txt");

fn main() -> ExitCode {
    let cases = test_cases![
        "delivery_definitions_simulated" => async {
            let cluster = mainstay_sim::Cluster::default();
            check(Client::new(cluster.connect("test"), "default")).await;
        },
        "delivery_definitions_real" => async {
            let cluster = Cluster::start(Options::default()).await.unwrap();
            check(cluster.client("admin").unwrap()).await;
        },
        "delivery_definitions_are_stored" => async { stored_files_are_fresh() },
    ];
    suite::main(&PARTS, &cases)
}

#[allow(clippy::disallowed_methods, reason = "files to compare with")]
fn stored_files_are_fresh() {
    let directory = mainstay_testkit::repository_root().join("deploy/delivery");
    for (path, text) in mainstay_cluster::deploy::delivery_files().unwrap() {
        let stored = std::fs::read_to_string(directory.join(&path)).unwrap_or_default();
        assert!(
            stored == text,
            "deploy/delivery/{path} is not what `cargo xtask codegen` writes: run it"
        );
    }
}

/// Expected response of the server to an object.
enum Expected<'a> {
    Accepted,
    Rejected(&'a str),
}

fn parse_objects() -> Vec<(Expected<'static>, Value)> {
    let blocks = OBJECTS.split("\n--- ").skip(1);
    let parse = |block: &'static str| {
        let (head, body) = block.split_once('\n').unwrap();
        let expected = match head.split_once(' ').unwrap() {
            ("accepted", _) => Expected::Accepted,
            ("rejected", message) => Expected::Rejected(message),
            other => panic!("{other:?}"),
        };
        let mut documents = mainstay_sim::snapshot::parse(body).unwrap();
        (expected, documents.pop().unwrap())
    };
    blocks.map(parse).collect()
}

async fn check(client: Client) {
    definitions::install(&client, &delivery_definitions(), |_, _| {})
        .await
        .unwrap();
    let (mut accepted, mut rejected) = (0, 0);
    for (number, (expected, mut object)) in parse_objects().into_iter().enumerate() {
        object["apiVersion"] = json!(API_VERSION);
        object["metadata"] = json!({"name": format!("object-{number}")});
        let text = object.to_string();
        let result = create(&client, object).await;
        match (expected, result) {
            (Expected::Accepted, Ok(_)) => accepted += 1,
            (Expected::Rejected(message), Err(error)) if error.contains(message) => rejected += 1,
            (Expected::Accepted, Err(error)) => panic!("object {number}: {error}\n{text}"),
            (Expected::Rejected(message), result) => {
                panic!("object {number}: {result:?} instead of {message:?}\n{text}")
            }
        }
    }
    check_immutable_fields(&client).await;
    println!("delivery definitions: {accepted} accepted, {rejected} rejected");
    assert!(accepted >= 10 && rejected >= 25);
}

async fn check_immutable_fields(client: &Client) {
    let action = json!({
        "apiVersion": API_VERSION, "kind": "DeploymentAction", "metadata": {"name": "fixed"},
        "spec": {"deploymentName": "a", "verb": "Pause"},
    });
    create(client, action).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"verb": "Abort"}}));
    let api = api_for(client, "DeploymentAction");
    let error = api
        .patch("fixed", &PatchParams::default(), &patch)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Value is immutable"), "{error}");
}

fn api_for(client: &Client, kind: &str) -> Api<DynamicObject> {
    let definition = delivery_definitions()
        .into_iter()
        .find(|definition| definition["spec"]["names"]["kind"] == kind)
        .unwrap();
    let resource = ApiResource {
        group: GROUP.into(),
        version: "v1alpha1".into(),
        api_version: API_VERSION.into(),
        kind: kind.into(),
        plural: definition["spec"]["names"]["plural"].as_str().unwrap().into(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

async fn create(client: &Client, object: Value) -> Result<DynamicObject, String> {
    let api = api_for(client, object["kind"].as_str().unwrap());
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let created = api.create(&PostParams::default(), &object).await;
    created.map_err(|error| error.to_string())
}
