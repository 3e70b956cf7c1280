//! Measures a virtual day of rolling restarts: 1,000 Deployments with three pods each, which are restarted
//! once in the course of 24 hours. Then compares the cost of a restart in a small cluster and in a cluster of
//! ten times the size, in which each Deployment has a Service and a disruption budget. Prints one line per
//! figure: `name value unit`. An argument divides all counts.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "the example prints its figures"
)]
#![allow(clippy::cast_precision_loss, reason = "figures are rounded")]

use std::time::Duration;

use mainstay_sim::context::Context;
use mainstay_sim::write::{self, Target};
use mainstay_sim::{Cluster, Options, tree};
use serde_json::{Value, json};

const DEPLOYMENTS: usize = 1_000;
const DAY: Duration = Duration::from_hours(24);

fn main() {
    let divisor = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let divisor: usize = divisor.unwrap_or(1).max(1);
    measure_day(DEPLOYMENTS / divisor);
    let (small, large) = (restart_cost(300 / divisor), restart_cost(3_000 / divisor));
    print_figure("restart_small", small * 1e3, "ms");
    print_figure("restart_large", large * 1e3, "ms");
    print_figure("restart_growth", large / small, "times");
}

fn print_figure(name: &str, value: f64, unit: &str) {
    println!("{name} {value:.2} {unit}");
}

fn measure_day(deployments: usize) {
    let cluster = create_cluster(deployments, false);
    let version = cluster.with(|state| state.store.version());
    let (started, began) = (processor_seconds(), cluster.now());
    let steps = u32::try_from(deployments).expect("the number of restarts fits u32");
    for number in 0..deployments {
        restart(&cluster, number, number);
        cluster.settle();
        cluster.advance(DAY / steps);
    }
    cluster.advance(Duration::from_mins(1));
    let elapsed = processor_seconds() - started;
    let writes = cluster.with(|state| state.store.version()) - version;
    print_figure(
        "day_hours",
        cluster.now().since(began).as_secs_f64() / 3_600.0,
        "virtual_hours",
    );
    print_figure("day_restarts", deployments as f64, "restarts");
    print_figure("day_unfinished", count_unfinished(&cluster) as f64, "restarts");
    print_figure("day", elapsed, "s");
    print_figure("day_writes", writes as f64 / elapsed, "per_second");
}

/// Returns the CPU time of one rolling restart in seconds.
fn restart_cost(deployments: usize) -> f64 {
    let cluster = create_cluster(deployments, true);
    let count = 100.min(deployments);
    let started = processor_seconds();
    for number in 0..count {
        restart(&cluster, number, number);
        cluster.settle();
        cluster.advance(Duration::from_mins(2));
    }
    (processor_seconds() - started) / count as f64
}

fn create_cluster(deployments: usize, with_services: bool) -> Cluster {
    let cluster = Cluster::new(Options {
        trace: false,
        ..Options::default()
    });
    cluster.run_workloads(50);
    for number in 0..deployments {
        create(&cluster, number);
        if with_services {
            create_service_and_budget(&cluster, number);
        }
        cluster.settle();
    }
    cluster.advance(Duration::from_mins(1));
    cluster
}

/// Returns the CPU time of this thread in seconds, which does not depend on the load of the machine.
fn processor_seconds() -> f64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = counts
        .split_whitespace()
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    spent.unwrap_or(0.0) / 1e9
}

fn change(cluster: &Cluster, resource: (&str, &str), number: usize, edit: &dyn Fn(&mut Value)) {
    let name = format!("web-{number}");
    cluster.with(|state| {
        let resource = state.resources.preferred(resource.0, resource.1);
        let resource = resource.expect("a served resource").clone();
        let target = Target {
            resource: &resource,
            namespace: "default",
            name: &name,
        };
        let mut context = Context::for_controller("bench");
        let nothing = json!({"metadata": {"name": name}});
        let live = state.store.get(&resource.table, &target.key());
        let mut value = live.map_or(nothing, |live| live.packed());
        edit(&mut value);
        let value = write::decode(state, &resource, value, &mut context).expect("a valid object");
        if exists(state, &target) {
            let mut change = |_: &mut _, _: Option<&Value>, _: &mut _| Ok(value.clone());
            write::update(state, &target, &mut context, false, &mut change).expect("an update");
        } else {
            write::create(state, &target, value, &mut context).expect("a create");
        }
    });
}

fn exists(state: &mainstay_sim::State, target: &Target<'_>) -> bool {
    state.store.get(&target.resource.table, &target.key()).is_some()
}

/// Creates a Service and a disruption budget for the pods of a Deployment.
fn create_service_and_budget(cluster: &Cluster, number: usize) {
    let labels = json!({"app": format!("web-{number}")});
    change(cluster, ("", "services"), number, &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"selector": labels, "ports": [{"port": 80}]}),
        );
    });
    change(cluster, ("policy", "poddisruptionbudgets"), number, &|value| {
        tree::set(
            value,
            &["spec"],
            json!({"maxUnavailable": 1, "selector": {"matchLabels": labels}}),
        );
    });
}

fn create(cluster: &Cluster, number: usize) {
    change(cluster, ("apps", "deployments"), number, &|value| {
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
    change(cluster, ("apps", "deployments"), number, &|value| {
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

fn count_unfinished(cluster: &Cluster) -> usize {
    cluster.with(|state| {
        let done = |value: &Value| {
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
