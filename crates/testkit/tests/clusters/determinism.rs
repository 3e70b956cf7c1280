//! Tests that a seed determines the trace: sessions with workloads, failing pods and faults are run twice
//! on the simulator.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use mainstay_sim::fault::{Fault, Rule, Trigger};
use mainstay_sim::script::Script;
use mainstay_sim::{Cluster, Options, snapshot};
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;
use mainstay_testkit::{CaseCounts, Random};
use serde_json::json;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases!["determinism::seeds" => seeds()];

/// Returns the number of seeds: `MAINSTAY_SEEDS` if set, otherwise 20.
fn seed_count() -> u64 {
    let configured = std::env::var("MAINSTAY_SEEDS").ok();
    configured.and_then(|text| text.parse().ok()).unwrap_or(20)
}

async fn seeds() {
    let mut counts = CaseCounts::default();
    let (mut traces, mut writes) = (BTreeSet::new(), 0);
    for seed in 0..seed_count() {
        let (first, second) = (session(seed).await, session(seed).await);
        writes += first.writes;
        counts.count(first == second, || {
            let both = first.trace.lines().zip(second.trace.lines());
            let line = both.into_iter().find(|(one, other)| one != other);
            format!("seed {seed}: {line:?}")
        });
        traces.insert(first.trace);
    }
    assert_eq!(traces.len(), counts.run, "two seeds produced the same trace");
    let average = writes / u64::try_from(counts.run).unwrap();
    println!("figure seeds-writes {average} per session");
    assert!(average > 100, "only {average} writes per session");
    counts.assert_all_equal("seeds");
}

/// Trace of a session (API calls, actions of controllers, and all objects at the end) and the number of
/// writes.
#[derive(PartialEq)]
struct SessionTrace {
    trace: String,
    writes: u64,
}

/// Runs a session on a small cluster. The seed determines the API calls, the faults and the scripts of
/// pods.
async fn session(seed: u64) -> SessionTrace {
    let cluster = Cluster::new(Options {
        seed,
        ..Options::default()
    });
    let mut random = Random::new(seed);
    cluster.run_workloads(3);
    for _ in 0..3 {
        cluster.add_fault(fault(&mut random));
    }
    let client = Client::new(cluster.connect("tester"), "default");
    for number in 0..4 {
        let name = format!("web-{number}");
        let script = script(&mut random);
        cluster.with(|state| state.scripts.add_workload("default", &name, script));
        apply(&client, &name, &mut random).await;
    }
    for _ in 0..8 {
        cluster.advance(Duration::from_secs(random.next_u64() % 60));
        let name = format!("web-{}", random.below(4));
        send_request(&client, &name, &mut random).await;
    }
    cluster.advance(Duration::from_mins(5));
    let objects = cluster.with(|state| snapshot::dump(state));
    let trace = objects
        .iter()
        .fold(cluster.trace(), |text, object| format!("{text}{object}\n"));
    SessionTrace {
        trace,
        writes: cluster.with(|state| state.store.version()),
    }
}

fn fault(random: &mut Random) -> Rule {
    let faults = [
        Fault::LoseResponse,
        Fault::LoseRequest,
        Fault::conflict(),
        Fault::Stale(5),
        Fault::Truncate,
    ];
    let fault = random.pick(&faults).clone();
    Rule::once("tester", Trigger::Request(random.next_u64() % 15), fault)
}

fn script(random: &mut Random) -> Script {
    let seconds = Duration::from_secs(random.next_u64() % 20);
    match random.below(6) {
        0 => Script::never_ready(),
        1 => Script::crash_loop(seconds),
        2 => Script::falters_after(seconds),
        3 => Script::image_pull_error(),
        _ => Script::ready_after(seconds),
    }
}

/// Sends a random request. If it fails, the trace contains the error.
async fn send_request(client: &Client, name: &str, random: &mut Random) {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let scale = json!({"spec": {"replicas": random.below(5)}});
    match random.below(5) {
        0 => drop(
            deployments
                .patch(name, &PatchParams::default(), &Patch::Merge(&scale))
                .await,
        ),
        1 => drop(deployments.delete(name, &DeleteParams::default()).await),
        2 => drop(deployments.list(&ListParams::default()).await),
        _ => apply(client, name, random).await,
    }
}

async fn apply(client: &Client, name: &str, random: &mut Random) {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let labels = json!({"app": name});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 1 + random.below(3), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": format!("web:{}", random.below(3))}]}},
        },
    });
    let params = PatchParams::apply("tester").force();
    drop(deployments.patch(name, &params, &Patch::Apply(&deployment)).await);
}
