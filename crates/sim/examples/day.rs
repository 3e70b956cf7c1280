//! A virtual day of rolling restarts: 1,000 Deployments of three pods each, every one restarted once, spread over 24 hours.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "an example that talks")]

use std::time::Duration;

use mainstay_sim::context::Context;
use mainstay_sim::write::{self, Target};
use mainstay_sim::{Cluster, Options, tree};
use serde_json::json;

const DEPLOYMENTS: usize = 1_000;
const DAY: Duration = Duration::from_hours(24);

fn main() {
    let times = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let restarts: usize = times.unwrap_or(1);
    let cluster = Cluster::new(Options {
        trace: false,
        ..Options::default()
    });
    cluster.run_workloads(50);
    let started = begin();
    for number in 0..DEPLOYMENTS {
        create(&cluster, number);
        cluster.settle();
    }
    cluster.advance(Duration::from_mins(1));
    let version = cluster.with(|state| state.store.version());
    println!(
        "{DEPLOYMENTS} Deployments with {} pods made: {} writes, {:.2} s",
        cluster.with(|state| state.store.count("pods")),
        version,
        started.elapsed().as_secs_f64()
    );
    let (started, began) = (begin(), cluster.now());
    let steps = u32::try_from(DEPLOYMENTS * restarts).expect("a sane number of restarts");
    for number in 0..DEPLOYMENTS * restarts {
        restart(&cluster, number % DEPLOYMENTS, number);
        cluster.settle();
        cluster.advance(DAY / steps);
    }
    cluster.advance(Duration::from_mins(1));
    let elapsed = started.elapsed().as_secs_f64();
    let writes = cluster.with(|state| state.store.version()) - version;
    println!(
        "{} rolling restarts over {} virtual hours: {writes} writes, {elapsed:.2} s, {:.0} writes/s; {} unfinished",
        DEPLOYMENTS * restarts,
        cluster.now().since(began).as_secs() / 3_600,
        f64::from(u32::try_from(writes).unwrap_or(u32::MAX)) / elapsed,
        unfinished(&cluster)
    );
}

#[allow(clippy::disallowed_methods, reason = "a measurement needs the wall clock")]
fn begin() -> std::time::Instant {
    std::time::Instant::now()
}

fn change(cluster: &Cluster, number: usize, how: &dyn Fn(&mut serde_json::Value)) {
    let name = format!("web-{number}");
    cluster.with(|state| {
        let resource = state
            .resources
            .preferred("apps", "deployments")
            .expect("deployments are served")
            .clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name: &name,
        };
        let mut context = Context::of_system("bench");
        write::update(state, &target, &mut context, true, &mut |state, live, context| {
            let mut value = live
                .cloned()
                .unwrap_or_else(|| json!({"metadata": {"name": name}}));
            how(&mut value);
            write::decode(state, &resource, value, context)
        })
        .expect("a valid Deployment");
    });
}

fn create(cluster: &Cluster, number: usize) {
    change(cluster, number, &|value| {
        let labels = json!({"app": format!("web-{number}")});
        tree::set(
            value,
            &["spec"],
            json!({
                "replicas": 3, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}},
            }),
        );
    });
}

fn restart(cluster: &Cluster, number: usize, at: usize) {
    change(cluster, number, &|value| {
        let path = [
            "spec",
            "template",
            "metadata",
            "annotations",
            "kubectl.kubernetes.io/restartedAt",
        ];
        tree::set(value, &path, at.to_string());
    });
}

fn unfinished(cluster: &Cluster) -> usize {
    cluster.with(|state| {
        let done = |value: &serde_json::Value| {
            ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|field| tree::int(value, &["status", field]) == Some(3))
        };
        state
            .store
            .all("deployments.apps")
            .filter(|object| !done(&object.value()))
            .count()
    })
}
