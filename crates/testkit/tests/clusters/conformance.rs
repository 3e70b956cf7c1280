//! Runs every scenario on a real API server and on the simulator and compares both with the stored
//! transcript.
//!
//! `MAINSTAY_SCENARIOS=a,b` runs only scenarios whose names contain one of these words;
//! `MAINSTAY_TRANSCRIPTS=DIR` writes the transcripts of the real server, which are the expected results of
//! new scenarios.

mod cleanup;
mod real;
mod scope;
#[path = "../../../sim/tests/support/simulated.rs"]
mod simulated;

use std::time::Duration;

use futures::{StreamExt, stream};
use mainstay_conformance::{Host, SCENARIOS, Scenario, Script, run};
use mainstay_testkit::CaseCounts;
use mainstay_testkit::suite::TestCase;
use mainstay_testkit::test_cases;

use cleanup::Cleanup;
use real::Real;
use scope::Scope;
use simulated::Simulated;

pub(crate) const TEST_CASES: &[TestCase] = &test_cases![
    "conformance::real" => on_a_real_cluster(),
    "conformance::sim" => on_the_simulator(),
];

/// Maximum number of concurrent scenarios: enough that their waiting times overlap, few enough for two
/// cores.
const MAX_CONCURRENT: usize = 8;
/// Maximum duration of a scenario.
const TIMEOUT: Duration = Duration::from_mins(2);

fn selected_scenarios() -> Vec<Scenario> {
    let words = std::env::var("MAINSTAY_SCENARIOS").unwrap_or_default();
    let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    let wanted = |one: &Scenario| words.is_empty() || words.iter().any(|word| one.name.contains(word));
    SCENARIOS.iter().copied().filter(wanted).collect()
}

/// Transcript of a scenario.
struct Found {
    scenario: Scenario,
    text: String,
}

async fn transcript<H: Host>(host: &H, scenario: Scenario, namespace: &str) -> Found {
    let text = match tokio::time::timeout(TIMEOUT, run(host, namespace, scenario.text)).await {
        Ok(Ok(text)) => text,
        Ok(Err(failure)) => format!("# {failure}\n"),
        Err(_) => format!("# timed out after {TIMEOUT:?}\n"),
    };
    Found { scenario, text }
}

impl Found {
    fn is_equal(&self) -> bool {
        self.text == self.scenario.text
    }

    fn count(&self, counts: &mut CaseCounts) {
        counts.count(self.is_equal(), || self.difference());
    }

    fn difference(&self) -> String {
        let (mut stored, mut found) = (self.scenario.text.lines(), self.text.lines());
        let last = self.scenario.text.lines().count().max(self.text.lines().count());
        let (at, stored, found) = (1..=last)
            .map(|at| (at, stored.next(), found.next()))
            .find(|(_, stored, found)| stored != found)
            .unwrap();
        format!(
            "{} line {at}\n  stored {}\n  found  {}",
            self.scenario.name,
            stored.unwrap_or("nothing more"),
            found.unwrap_or("nothing more")
        )
    }

    fn save(&self) {
        if let Some(directory) = std::env::var_os("MAINSTAY_TRANSCRIPTS") {
            let path = std::path::Path::new(&directory).join(format!("{}.txt", self.scenario.name));
            std::fs::write(path, &self.text).unwrap();
        }
    }
}

async fn on_the_simulator() {
    let mut counts = CaseCounts::default();
    for scenario in selected_scenarios() {
        let host = Simulated::default();
        let namespace = format!("ns-{}", scenario.name);
        transcript(&host, scenario, &namespace).await.count(&mut counts);
    }
    counts.assert_all_equal("conformance on the simulator");
}

/// Scenarios with pod behavior run on a cluster with a simulated kubelet. Scenarios that affect more than
/// their own namespace run one at a time.
async fn on_a_real_cluster() {
    let (with_kubelet, without_kubelet): (Vec<_>, Vec<_>) = selected_scenarios()
        .into_iter()
        .partition(|scenario| needs_kubelet(*scenario));
    let (wide, narrow): (Vec<_>, Vec<_>) = without_kubelet
        .into_iter()
        .partition(|scenario| Scope::for_script(scenario.text, SCENARIOS) == Scope::Cluster);
    let (wide, narrow, with_kubelet) = futures::join!(
        run_sequentially(wide),
        run_concurrently(narrow, Real::without_kubelet()),
        run_concurrently(with_kubelet, Real::with_kubelet())
    );
    let mut found: Vec<Found> = wide.into_iter().chain(narrow).chain(with_kubelet).collect();
    let again = retry_differing(&mut found).await;
    let mut counts = CaseCounts::default();
    for found in &found {
        found.save();
        found.count(&mut counts);
    }
    println!("figure conformance-second-tries {again} scenarios");
    counts.assert_all_equal("conformance on the real server");
}

fn needs_kubelet(scenario: Scenario) -> bool {
    let commands = Script::parse(scenario.text).0;
    commands.iter().any(|command| command.word() == "POD_BEHAVIOR")
}

async fn run_concurrently(scenarios: Vec<Scenario>, host: impl Future<Output = Real>) -> Vec<Found> {
    if scenarios.is_empty() {
        return Vec::new();
    }
    let host = host.await;
    let running = stream::iter(scenarios).map(|scenario| {
        let host = &host;
        async move { transcript(host, scenario, &format!("ns-{}", scenario.name)).await }
    });
    running.buffer_unordered(MAX_CONCURRENT).collect().await
}

async fn run_sequentially(scenarios: Vec<Scenario>) -> Vec<Found> {
    if scenarios.is_empty() {
        return Vec::new();
    }
    let host = Real::without_kubelet().await;
    let cleanup = Cleanup::prepare(host.client("admin")).await;
    let mut found = Vec::new();
    for scenario in scenarios {
        found.push(transcript(&host, scenario, &format!("ns-{}", scenario.name)).await);
        cleanup.run().await;
    }
    found
}

/// Number of further attempts of a scenario that differs.
const RETRIES: usize = 2;

/// Runs each scenario that differs again, without concurrency, because real controllers may skip intermediate
/// states on a busy machine. Returns the number of scenarios whose later transcript is as expected.
async fn retry_differing(found: &mut [Found]) -> usize {
    let mut matched = 0;
    for differing in found.iter_mut().filter(|found| !found.is_equal()) {
        for _ in 0..RETRIES {
            println!("retrying: {}", differing.difference());
            let host = if needs_kubelet(differing.scenario) {
                Real::with_kubelet().await
            } else {
                Real::without_kubelet().await
            };
            let namespace = format!("ns-{}", differing.scenario.name);
            *differing = transcript(&host, differing.scenario, &namespace).await;
            if differing.is_equal() {
                matched += 1;
                break;
            }
        }
    }
    matched
}
