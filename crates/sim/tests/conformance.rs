//! Runs every scenario on the simulator and compares its transcript with the stored one. `BLESS=1` updates
//! the stored transcripts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

#[path = "support/simulated.rs"]
mod simulated;

use mainstay_conformance::{SCENARIOS, run};
use simulated::Simulated;

async fn transcript(name: &str, text: &str) -> String {
    let host = Simulated::default();
    run(&host, &format!("ns-{name}"), text)
        .await
        .unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

#[tokio::test]
async fn every_scenario_produces_its_transcript() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let found = transcript(scenario.name, scenario.text).await;
        if found == scenario.text {
            continue;
        }
        if bless {
            let path = format!(
                "{}/../conformance/scenarios/{}.txt",
                env!("CARGO_MANIFEST_DIR"),
                scenario.name
            );
            std::fs::write(path, &found).unwrap();
            continue;
        }
        let differs = found
            .lines()
            .zip(scenario.text.lines())
            .find(|(found, stored)| found != stored);
        wrong.push(format!("{}: {differs:?}", scenario.name));
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        SCENARIOS.len(),
        wrong.join("\n")
    );
    println!(
        "harden workloads: {} conformance scenarios equal those of a real server",
        SCENARIOS.len()
    );
}

#[tokio::test]
async fn repeated_runs_produce_the_same_trace() {
    for scenario in SCENARIOS {
        let mut traces = Vec::new();
        for _ in 0..2 {
            let host = Simulated::default();
            run(&host, "ns", scenario.text).await.unwrap();
            traces.push(host.0.trace());
        }
        assert_eq!(traces[0], traces[1], "{}", scenario.name);
        assert!(!traces[0].is_empty());
    }
}

#[tokio::test]
async fn malformed_arguments_are_errors() {
    let configmaps = "/api/v1/namespaces/{ns}/configmaps";
    for line in [
        format!("WATCH w {configmaps}?watch=true\nEVENTS w tree"),
        format!("UNTIL 2OO {configmaps}"),
        format!("UNTIL 20 {configmaps}"),
        format!("UNTIL:PSOT 200 {configmaps}"),
        format!("AWAIT:PSOT {configmaps} /kind ConfigMapList"),
    ] {
        let error = run(&Simulated::default(), "ns", &line).await.unwrap_err();
        let last = line.lines().last().unwrap();
        assert_eq!(error.to_string(), format!("invalid command: {last}"));
    }
}
