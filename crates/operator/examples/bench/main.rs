//! Benchmarks of the operator in a large cluster: fills a real API server and runs the operator as a separate
//! process. Requests are counted from the server's audit log; those of leader election are left out.
//!
//! ```text
//! bench MAINSTAY [DIVISOR]            requests, memory and CPU time, as lines `figure NAME VALUE UNIT`
//! bench MAINSTAY start RUNS [SAIL]    cold starts, as lines `bench {…}`
//! bench MAINSTAY events RUNS [SAIL]   cost per watch event, as lines `bench {…}`
//! ```
//!
//! `MAINSTAY` is the `mainstay` binary. `SAIL` is a binary of the Sail Operator, which is measured in the
//! same cluster, and optionally its directory of charts; a binary without this directory contains its charts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints"
)]

mod beside;
mod load;
mod process;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mainstay_testkit::cluster::PARTS;
use mainstay_testkit::{built_peer, isolation};
use serde_json::json;

use load::Load;
use process::{Operator, Program, Programs};
use server::Server;

fn main() -> ExitCode {
    for part in PARTS {
        built_peer(part).unwrap();
    }
    isolation::enter().unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [mainstay, words @ ..] = words.as_slice() else {
        panic!("the path of the binary is missing");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let programs = Programs {
        mainstay: mainstay.into(),
        sail_operator: words.get(2).map(PathBuf::from),
        sail_charts: words.get(3).map(PathBuf::from),
    };
    match words {
        ["start", runs, ..] => runtime.block_on(beside::starts(runs.parse().unwrap(), &programs)),
        ["events", runs, ..] => runtime.block_on(beside::events(runs.parse().unwrap(), &programs)),
        rest => {
            let divisor = rest.first().map_or(1, |text| text.parse().unwrap());
            runtime.block_on(measure(divisor, &programs));
        }
    }
    ExitCode::SUCCESS
}

fn figure(name: &str, value: impl std::fmt::Display, unit: &str) {
    println!("figure {name} {value} {unit}");
}

/// Returns the CPU time so far, in seconds.
fn busy(operator: &Operator) -> f64 {
    operator.usage().cpu_time().as_secs_f64()
}

async fn measure(divisor: usize, programs: &Programs) {
    let server = Server::start().await;
    let load = Load::divided_by(divisor);
    let begin = Instant::now();
    load.fill(&server).await;
    println!(
        "{} namespaces, {} pods of {} bytes, after {:.0} s",
        load.namespaces,
        load.pods,
        load.size(&server).await,
        begin.elapsed().as_secs_f64()
    );
    let operator = Operator::start(&server, &programs.mainstay(false));
    server.quiet().await;
    install(&server).await;
    set_up(&server).await;
    rest(&server, &operator).await;
    events(&server, &operator, &load).await;
    uses(&server).await;
    figure("settled", format!("{:.1}", operator.usage().resident()), "MiB");
    figure("peak", format!("{:.1}", operator.usage().peak()), "MiB");
    drop(operator);
    restart(&server, &programs.mainstay(true), "restart").await;
    restart(&server, &programs.mainstay(false), "restart_detecting").await;
}

/// Installs the first control plane.
async fn install(server: &Server) {
    let audit = server.audit();
    let spec = json!({"version": "v1.29.1", "namespace": "istio-system", "updateStrategy": {"type": "RevisionBased", "revisionTags": ["default"]}});
    server
        .create("istios", &server::custom("Istio", "one", spec))
        .await;
    server.until_healthy("istios", "one").await;
    server.quiet().await;
    let counts = audit.counts();
    let objects = server.installed().await;
    figure("install_writes", counts.writes, "requests");
    figure("install_reads", counts.reads, "requests");
    figure("install_objects", objects, "objects");
    let own = counts
        .lines
        .iter()
        .filter(|line| !line.contains("/status") && !line.contains("/events"));
    let per_object = server::Counter::most_writes_of_one(own.map(String::as_str));
    figure("install_writes_per_object", per_object, "requests");
    for line in &counts.lines {
        println!("install: {line}");
    }
}

/// Installs two more control planes and four more tags.
async fn set_up(server: &Server) {
    for (name, version) in [("two", "v1.28.2"), ("three", "v1.27.9")] {
        let spec = json!({"version": version, "namespace": "istio-system"});
        server
            .create("istios", &server::custom("Istio", name, spec))
            .await;
        server.until_healthy("istios", name).await;
    }
    for (name, target) in [
        ("stable", "one"),
        ("canary", "one"),
        ("old", "two"),
        ("older", "two"),
    ] {
        let spec = json!({"targetRef": {"kind": "Istio", "name": target}});
        server
            .create(
                "istiorevisiontags",
                &server::custom("IstioRevisionTag", name, spec),
            )
            .await;
    }
    server.quiet().await;
}

/// Changes an annotation of an Istio, which requires no write.
async fn rest(server: &Server, operator: &Operator) {
    let audit = server.audit();
    let before = busy(operator);
    server
        .patch(
            "istios",
            "one",
            &json!({"metadata": {"annotations": {"bench": "touched"}}}),
        )
        .await;
    server.pass(Duration::from_secs(3)).await;
    let counts = audit.counts();
    figure("noop_writes", counts.writes, "requests");
    figure("noop_reads", counts.reads, "requests");
    figure("noop_cpu", format!("{:.3}", busy(operator) - before), "s");
}

/// Changes 1,000 labels of injected pods, which requires no write.
async fn events(server: &Server, operator: &Operator, load: &Load) {
    let audit = server.audit();
    let before = busy(operator);
    load.relabel(server, 0..1_000).await;
    server.pass(Duration::from_secs(3)).await;
    let counts = audit.counts();
    figure("events_cpu", format!("{:.3}", busy(operator) - before), "s");
    figure("events_writes", counts.writes, "requests");
    figure("events_reads", counts.reads, "requests");
}

/// Measures the time from the first reference to a revision, and from the removal of the last one, to the
/// revision's condition; medians of nine.
async fn uses(server: &Server) {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let begin = Instant::now();
        server.label_namespace("bench-use", Some("three")).await;
        server.until_in_use("three", "True").await;
        first.push(begin.elapsed());
        server.pass(Duration::from_millis(300)).await;
        let begin = Instant::now();
        server.label_namespace("bench-use", None).await;
        server.until_in_use("three", "False").await;
        last.push(begin.elapsed());
        server.pass(Duration::from_millis(300)).await;
    }
    for (name, mut times) in [("in_use_after", first), ("unused_after", last)] {
        times.sort_unstable();
        figure(name, format!("{:.1}", times[4].as_secs_f64() * 1e3), "ms");
        figure(
            &format!("{name}_slowest"),
            format!("{:.1}", times[8].as_secs_f64() * 1e3),
            "ms",
        );
    }
}

/// Starts the operator when nothing has to be changed.
async fn restart(server: &Server, program: &Program, name: &str) {
    let audit = server.audit();
    let begin = Instant::now();
    let operator = Operator::start(server, program);
    server.quiet().await;
    let counts = audit.counts();
    figure(&format!("{name}_writes"), counts.writes, "requests");
    figure(&format!("{name}_reads"), counts.reads, "requests");
    figure(&format!("{name}_watches"), counts.watches, "requests");
    figure(&format!("{name}_cpu"), format!("{:.3}", busy(&operator)), "s");
    let memory = |mebibytes: f64| format!("{mebibytes:.1}");
    figure(
        &format!("{name}_settled"),
        memory(operator.usage().resident()),
        "MiB",
    );
    figure(&format!("{name}_peak"), memory(operator.usage().peak()), "MiB");
    println!("{name}: quiet after {:.1} s", begin.elapsed().as_secs_f64());
    for line in &counts.lines {
        println!("{name}: {line}");
    }
}
