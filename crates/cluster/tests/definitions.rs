//! Creates valid and invalid objects on real API servers with the Sail Operator's definitions and with ours:
//! both accept or reject them with the same messages and defaults. Upstream's definitions are rebuilt from
//! the committed table of facts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests, and files to compare with"
)]

use std::process::ExitCode;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use mainstay_api::crd::table::{definitions_from_facts, read_table};
use mainstay_api::crd::{VersionNames, definitions};
use mainstay_testkit::cluster::{Cluster, Options, PARTS};
use mainstay_testkit::suite::{self, TestCase};
use mainstay_testkit::{CaseCounts, Random, case_count};
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    let tests = [TestCase {
        name: "objects_are_treated_equally",
        start: || Box::pin(objects_are_treated_equally()),
    }];
    suite::main(&PARTS, &tests)
}

/// Facts about upstream's definitions, written by `cargo xtask codegen --upstream DIR`.
const UPSTREAM: &str = include_str!("../../api/tests/upstream/definitions.txt");

/// Upstream's definition of a kind.
fn theirs(plural: &str) -> Value {
    let facts = read_table(UPSTREAM).unwrap();
    let mut definitions = definitions_from_facts(&facts).into_iter();
    definitions
        .find(|definition| definition["spec"]["names"]["plural"] == plural)
        .unwrap()
}

/// Our definitions with upstream's versions, so that only the schemas are compared.
fn ours() -> Vec<Value> {
    let list = |plural: &str| -> Vec<String> {
        let version = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/version/enum";
        let names = theirs(plural)
            .pointer(version)
            .unwrap()
            .as_array()
            .unwrap()
            .clone();
        names
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    let (all, concrete, ambient) = (list("istios"), list("istiorevisions"), list("ztunnels"));
    let borrow = |list: &'static [String]| -> Vec<&'static str> { list.iter().map(String::as_str).collect() };
    let (all, concrete, ambient) = (
        borrow(all.leak()),
        borrow(concrete.leak()),
        borrow(ambient.leak()),
    );
    let default = "v1.31.0-beta.1";
    definitions(&VersionNames {
        all: &all,
        concrete: &concrete,
        ambient: &ambient,
        default,
    })
}

async fn call(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string().into_bytes())).unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.unwrap();
    json!({"code": code, "body": serde_json::from_slice::<Value>(&bytes).unwrap_or_default()})
}

/// Installs the definitions and waits until they are served.
async fn install(cluster: &Cluster, definitions: &[Value]) -> Client {
    let client = cluster.client("admin").unwrap();
    for definition in definitions {
        let made = call(
            &client,
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            definition,
        )
        .await;
        assert_eq!(made["code"], 201, "{made}");
    }
    for definition in definitions {
        let path = format!(
            "/apis/sailoperator.io/v1/{}",
            definition["spec"]["names"]["plural"].as_str().unwrap()
        );
        while call(&client, "GET", &path, &Value::Null).await["code"] != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    client
}

async fn objects_are_treated_equally() {
    let our = ours();
    let their: Vec<Value> = our
        .iter()
        .map(|one| theirs(one["spec"]["names"]["plural"].as_str().unwrap()))
        .collect();
    let options = || Options {
        controllers: Vec::new(),
        ..Options::default()
    };
    let (first, second) = (
        Cluster::start(options()).await.unwrap(),
        Cluster::start(options()).await.unwrap(),
    );
    let (ours, theirs) = (install(&first, &our).await, install(&second, &their).await);
    let mut random = Random::new(11);
    let mut counts = CaseCounts::default();
    let (mut accepted, mut rejected) = (0, 0);
    for case in 0..case_count(600) {
        let definition = random.pick(&their);
        let version = random.pick(definition["spec"]["versions"].as_array().unwrap());
        let object = object(definition, version, &mut random, case % 3 != 0);
        let path = format!(
            "/apis/sailoperator.io/{}/{}?dryRun=All&fieldValidation=Strict",
            version["name"].as_str().unwrap(),
            definition["spec"]["names"]["plural"].as_str().unwrap()
        );
        let (mine, other) = (
            call(&ours, "POST", &path, &object).await,
            call(&theirs, "POST", &path, &object).await,
        );
        let (mine, other) = (masked(mine), masked(other));
        if mine["code"] == 201 {
            accepted += 1;
        } else {
            rejected += 1;
        }
        counts.count(mine == other, || {
            format!("sent {object}\n ours {mine}\n theirs {other}")
        });
    }
    println!("objects under both definitions: {counts} ({accepted} accepted, {rejected} rejected)");
    assert!(
        accepted > 100 && rejected > 100,
        "{accepted} accepted, {rejected} rejected"
    );
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

/// Removes what always differs between two servers, and sorts the causes of a rejection.
fn masked(mut response: Value) -> Value {
    if let Some(metadata) = response
        .pointer_mut("/body/metadata")
        .and_then(Value::as_object_mut)
    {
        metadata.retain(|key, _| key == "name");
    }
    if let Some(causes) = response
        .pointer_mut("/body/details/causes")
        .and_then(Value::as_array_mut)
    {
        causes.sort_by_key(Value::to_string);
        response["body"]["message"] = Value::Null;
    }
    response
}

fn object(definition: &Value, version: &Value, random: &mut Random, spoil: bool) -> Value {
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    let mut spec = sample(&schema["spec"], random, 0);
    let name = match kind {
        "IstioCNI" | "ZTunnel" if random.chance(9, 10) => "default",
        _ => *random.pick(&["default", "default", "prod"]),
    };
    if kind == "IstioRevision" && random.chance(9, 10) {
        consistent(&mut spec, name);
    } else if kind == "Istio"
        && random.chance(9, 10)
        && spec["values"]["global"]["istioNamespace"].is_string()
    {
        spec["values"]["global"]["istioNamespace"] = spec["namespace"].clone();
    }
    if spoil {
        for _ in 0..=random.below(2) {
            spoil_one(&mut spec, random);
        }
    }
    let api = format!("sailoperator.io/{}", version["name"].as_str().unwrap());
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    if random.chance(19, 20) {
        object["spec"] = spec;
    }
    object
}

/// Makes a spec satisfy the rules between fields of a revision.
fn consistent(spec: &mut Value, name: &str) {
    let namespace = spec["namespace"].clone();
    if !spec["values"].is_object() {
        spec["values"] = json!({});
    }
    if !spec["values"]["global"].is_object() {
        spec["values"]["global"] = json!({});
    }
    spec["values"]["global"]["istioNamespace"] = namespace;
    spec["values"]["revision"] = json!(if name == "default" { "" } else { name });
}

/// Returns a random value that the schema accepts in most cases.
fn sample(schema: &Value, random: &mut Random, depth: usize) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return random.pick(values).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return random
            .pick(&[json!(1), json!("100m"), json!("25%"), json!("1Gi")])
            .clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let mut map = Map::new();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let wanted = if depth < 2 { (2, 5) } else { (1, 2 + depth) };
                if required.contains(&name.as_str()) || random.chance(wanted.0, wanted.1) {
                    map.insert(name.clone(), sample(field, random, depth + 1));
                }
            }
            if schema["additionalProperties"].is_object() {
                for name in ["a", "b"].iter().take(random.below(3)) {
                    map.insert(
                        (*name).into(),
                        sample(&schema["additionalProperties"], random, depth + 1),
                    );
                }
            }
            Value::Object(map)
        }
        Some("array") => (0..random.below(3))
            .map(|_| sample(&schema["items"], random, depth + 1))
            .collect(),
        Some("boolean") => json!(random.chance(1, 2)),
        Some("integer") => json!(random.below(100)),
        Some("number") => json!(0.5),
        Some("string") if schema["format"] == "date-time" => json!("2026-01-01T00:00:00Z"),
        Some("string") => json!(*random.pick(&["x", "istio-system", "", "30s"])),
        _ => json!({"free": [1, "x"]}),
    }
}

/// Inserts an invalid value at a random path.
fn spoil_one(value: &mut Value, random: &mut Random) {
    let wrong = [
        json!("text"),
        json!(-1),
        json!(true),
        json!(null),
        json!([]),
        json!({}),
        json!([{"x": 1}]),
        json!(1.5),
        json!(5_000_000_000_i64),
        json!("x".repeat(300)),
    ];
    match value {
        Value::Object(map) if random.chance(1, 8) => {
            map.insert("unknownField".into(), json!(1));
        }
        Value::Object(map) if !map.is_empty() => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = random.pick(&keys);
            if random.chance(1, 8) {
                map.remove(key);
            } else if random.chance(1, 4) {
                map.insert(key.clone(), random.pick(&wrong).clone());
            } else if let Some(inner) = map.get_mut(key) {
                spoil_one(inner, random);
            }
        }
        Value::Array(list) if !list.is_empty() && random.chance(3, 4) => {
            let at = random.below(list.len());
            spoil_one(&mut list[at], random);
        }
        other => *other = random.pick(&wrong).clone(),
    }
}
