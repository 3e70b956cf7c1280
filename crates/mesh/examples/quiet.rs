//! Measures a plan without steps and the cost of an event, in a cluster with 1,000 namespaces and 20,000
//! pods.
//!
//! ```text
//! cargo run --release -p mainstay-mesh --example quiet
//! ```

#![allow(clippy::print_stdout, reason = "the measurements are printed")]
#![allow(clippy::disallowed_methods, reason = "a benchmark needs a clock")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a benchmark may panic"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use mainstay_mesh::Subject;
use mainstay_mesh::references::Referrer;
use serde_json::json;
use support::{World, pairs};

const NAMESPACES: usize = 1_000;
const PODS: usize = 20_000;
const ROUNDS: usize = 2_000;

fn main() {
    let mut world = cluster();
    println!(
        "{NAMESPACES} namespaces, {PODS} pods, {} revisions, {} tags",
        world.revisions().len(),
        world.tags().len()
    );
    for subject in world.snapshot.subjects() {
        let (median, rare) =
            measure(|| assert!(world.plan(&subject).is_empty(), "the plan of {subject} has steps"));
        println!(
            "no-op plan of {:<40} {:>8.1} µs median {:>8.1} µs at the 99th percentile",
            subject.to_string(),
            micros(median),
            micros(rare)
        );
    }
    measure_events(&mut world);
}

/// Returns a cluster with three revisions and five tags, which inject every namespace and every pod.
fn cluster() -> World {
    let mut world = World::default();
    let tags = ["default", "prod", "canary", "blue", "green"];
    for version in ["v1.27.9", "v1.28.2", "v1.29.1"] {
        let strategy = json!({"type": "RevisionBased", "revisionTags": tags});
        world.istio("default", json!({"version": version, "namespace": "istio-system", "updateStrategy": strategy, "values": typical_values()}));
        let name = format!("default-{}", version.replace('.', "-"));
        world.namespace(&format!("keeps-{name}"), &format!("istio.io/rev={name}"));
        world.settle();
    }
    for index in 0..NAMESPACES {
        let tag = tags[index % tags.len()];
        world.namespace(
            &format!("ns-{index}"),
            &format!("istio.io/rev={tag} team=t{index}"),
        );
    }
    let revisions = ["default-v1-27-9", "default-v1-28-2", "default-v1-29-1"];
    for index in 0..PODS {
        let revision = revisions[index % revisions.len()];
        let namespace = format!("ns-{}", index % NAMESPACES);
        world.pod(
            &namespace,
            &format!("pod-{index}-7d4b9c"),
            "app=a version=v1",
            &format!("istio.io/rev={revision}"),
        );
    }
    world.settle();
    world
}

/// Returns values of a typical size.
fn typical_values() -> serde_json::Value {
    let env: serde_json::Map<_, _> = (0..40)
        .map(|i| (format!("VARIABLE_{i}"), format!("value-{i}").into()))
        .collect();
    let providers: Vec<_> = (0..20)
        .map(|i| json!({"name": format!("p{i}"), "opentelemetry": {"service": "otel.svc", "port": 4317}}))
        .collect();
    json!({"pilot": {"env": env}, "meshConfig": {"extensionProviders": providers, "accessLogFile": "/dev/stdout"}})
}

/// Measures a thousand label changes on injected pods. No change affects whether
/// a revision or tag is in use.
fn measure_events(world: &mut World) {
    let annotations = pairs("istio.io/rev=default-v1-29-1");
    let mut affected = 0;
    let start = Instant::now();
    for round in 0..1_000 {
        let labels = pairs(&format!("app=a round=r{round}"));
        let name = format!("pod-{}-7d4b9c", round * 3 + 2);
        let namespace = format!("ns-{}", (round * 3 + 2) % NAMESPACES);
        affected += world
            .snapshot
            .observe_referrer(Referrer::Pod {
                namespace: &namespace,
                name: &name,
                labels: &labels,
                annotations: &annotations,
                finished: false,
                terminating: false,
                workload: None,
            })
            .len();
    }
    println!(
        "1000 label changes on injected pods: {:.2} ms, {affected} subjects affected",
        micros(start.elapsed()) / 1000.0
    );
    let start = Instant::now();
    let affected = world.namespace("fresh", "istio.io/rev=default-v1-27-9");
    println!(
        "one more reference: {:.1} µs, {} subjects affected",
        micros(start.elapsed()),
        affected.len()
    );
    let subject = Subject::revision("default-v1-27-9");
    let start = Instant::now();
    let counts = world.snapshot.references().counts("default-v1-27-9");
    println!(
        "counts of {subject}: {counts:?} in {:.1} µs",
        micros(start.elapsed())
    );
}

/// Returns the median and the 99th percentile of the time of `run`. They are less sensitive to other load
/// than the mean.
fn measure(mut run: impl FnMut()) -> (Duration, Duration) {
    let mut took: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    took.sort();
    (took[took.len() / 2], took[took.len() * 99 / 100])
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
