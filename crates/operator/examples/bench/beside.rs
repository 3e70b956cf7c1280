//! The operator beside the Sail Operator in one cluster, each alone at a time.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::load::Load;
use crate::process::{Operator, Programs};
use crate::server::{Server, custom};

/// Version of Istio, which both operators must support.
const VERSION: &str = "v1.29.1";
/// Pods whose label changes per run.
const EVENTS: usize = 1_000;

/// Runs of a quantity.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    /// Of each program, ours first.
    runs: [Vec<f64>; 2],
}

impl Quantity {
    fn new(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            runs: Default::default(),
        }
    }

    fn print(&self, subject: &str) {
        let [ours, theirs] = &self.runs;
        let line = json!({"subject": subject, "quantity": self.name, "unit": self.unit, "ours": ours, "theirs": theirs});
        println!("bench {line}");
    }
}

/// Measures the time from the start of the operator until a new control plane is ready, alternately.
pub(crate) async fn starts(runs: usize, programs: &Programs) {
    let server = Server::start().await;
    let load = Load {
        namespaces: 2_000,
        pods: 20_000,
        variables: 65,
    };
    load.fill(&server).await;
    let programs = programs.all(&server);
    let mut time = Quantity::new("cold start to Ready", "ms");
    let mut cpu = Quantity::new("cold start to Ready, CPU time", "ms");
    let mut memory = Quantity::new("cold start to Ready, peak memory", "MiB");
    for _ in 0..runs {
        for (index, program) in programs.iter().enumerate() {
            let spec = json!({"version": VERSION, "namespace": "istio-system"});
            server.create("istios", &custom("Istio", "cold", spec)).await;
            let begin = Instant::now();
            let operator = Operator::start(&server, program);
            server.until_healthy("istios", "cold").await;
            time.runs[index].push(begin.elapsed().as_secs_f64() * 1e3);
            cpu.runs[index].push(operator.usage().cpu_time().as_secs_f64() * 1e3);
            memory.runs[index].push(operator.usage().peak());
            server.uninstall("cold").await;
        }
    }
    for quantity in [time, cpu, memory] {
        quantity.print("operator: 20,000 pods in 2,000 namespaces");
    }
}

/// Measures the CPU time per changed pod: each program runs alone, and processes `EVENTS` changes per run.
pub(crate) async fn events(runs: usize, programs: &Programs) {
    let server = Server::start().await;
    let load = Load {
        namespaces: 2_000,
        pods: 100_000,
        variables: 4,
    };
    load.fill(&server).await;
    let mut cpu = Quantity::new("CPU time per watch event", "µs");
    let mut memory = Quantity::new("memory, settled", "MiB");
    for (index, program) in programs.all(&server).iter().enumerate() {
        let operator = Operator::start(&server, program);
        let spec = json!({"version": VERSION, "namespace": "istio-system"});
        server.create("istios", &custom("Istio", "two", spec)).await;
        server.until_healthy("istios", "two").await;
        server.quiet().await;
        for run in 0..runs {
            let first = (index * runs + run) * EVENTS;
            let before = operator.usage().cpu_time();
            load.relabel(&server, first..first + EVENTS).await;
            server.pass(Duration::from_secs(1)).await;
            let spent = operator.usage().cpu_time().saturating_sub(before);
            cpu.runs[index].push(spent.as_secs_f64() * 1e6 / EVENTS as f64);
        }
        memory.runs[index].push(operator.usage().resident());
        server.uninstall("two").await;
    }
    for quantity in [cpu, memory] {
        quantity.print("operator: 100,000 pods in 2,000 namespaces");
    }
}
