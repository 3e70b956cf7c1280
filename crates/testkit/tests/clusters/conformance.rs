//! Runs every scenario on a real API server and on the simulator and compares both with the stored
//! transcript.
//!
//! `MAINSTAY_SCENARIOS=a,b` runs only those whose names contain one of these words;
//! `MAINSTAY_TRANSCRIPTS=DIR` writes the transcripts of the real server: the expected results of new
//! scenarios.

mod reach;
mod real;
#[path = "../../../sim/tests/support/simulated.rs"]
mod simulated;
mod sweep;

use std::time::Duration;

use futures::{StreamExt, stream};
use mainstay_conformance::{Host, SCENARIOS, Scenario, Script, run};
use mainstay_testkit::CaseCounts;
use mainstay_testkit::suite::TestCase;

use reach::Reach;
use real::Real;
use simulated::Simulated;
use sweep::Sweep;

pub(crate) const TEST_CASES: &[TestCase] = test_cases![
    "conformance::real" => on_the_real_one(),
    "conformance::sim" => on_the_simulator(),
];

/// Scenarios of their own namespace at once: enough to hide their waits, few enough for two cores.
const AT_ONCE: usize = 8;
/// No scenario takes longer.
const TIMEOUT: Duration = Duration::from_mins(2);

fn chosen() -> Vec<Scenario> {
    let words = std::env::var("MAINSTAY_SCENARIOS").unwrap_or_default();
    let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    let wanted = |one: &Scenario| words.is_empty() || words.iter().any(|word| one.name.contains(word));
    SCENARIOS.iter().copied().filter(wanted).collect()
}

/// Result of a scenario.
struct Found {
    scenario: Scenario,
    text: String,
}

async fn transcript<H: Host>(host: &H, scenario: Scenario, namespace: &str) -> Found {
    let text = match tokio::time::timeout(TIMEOUT, run(host, namespace, scenario.text)).await {
        Ok(Ok(text)) => text,
        Ok(Err(failure)) => format!("# {failure}\n"),
        Err(_) => format!("# no end after {TIMEOUT:?}\n"),
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

    fn keep(&self) {
        if let Some(directory) = std::env::var_os("MAINSTAY_TRANSCRIPTS") {
            let path = std::path::Path::new(&directory).join(format!("{}.txt", self.scenario.name));
            std::fs::write(path, &self.text).unwrap();
        }
    }
}

async fn on_the_simulator() {
    let mut counts = CaseCounts::default();
    for scenario in chosen() {
        let host = Simulated::default();
        let namespace = format!("ns-{}", scenario.name);
        transcript(&host, scenario, &namespace).await.count(&mut counts);
    }
    counts.assert_all_equal("conformance on the simulator");
}

/// Scenarios with pod behavior run on a cluster with a simulated kubelet; those that reach beyond their
/// namespace run alone.
async fn on_the_real_one() {
    let (lively, still): (Vec<_>, Vec<_>) = chosen().into_iter().partition(|scenario| is_lively(*scenario));
    let (wide, narrow): (Vec<_>, Vec<_>) = still
        .into_iter()
        .partition(|scenario| Reach::of(scenario.text, SCENARIOS) == Reach::Cluster);
    let (wide, narrow, lively) = futures::join!(
        one_by_one(wide),
        beside_each_other(narrow, Real::still()),
        beside_each_other(lively, Real::lively())
    );
    let mut found: Vec<Found> = wide.into_iter().chain(narrow).chain(lively).collect();
    let again = try_again(&mut found).await;
    let mut counts = CaseCounts::default();
    for found in &found {
        found.keep();
        found.count(&mut counts);
    }
    println!("figure conformance-second-tries {again} scenarios");
    counts.assert_all_equal("conformance on the real server");
}

fn is_lively(scenario: Scenario) -> bool {
    let commands = Script::parse(scenario.text).0;
    commands.iter().any(|command| command.word() == "POD_BEHAVIOR")
}

async fn beside_each_other(scenarios: Vec<Scenario>, host: impl Future<Output = Real>) -> Vec<Found> {
    if scenarios.is_empty() {
        return Vec::new();
    }
    let host = host.await;
    let running = stream::iter(scenarios).map(|scenario| {
        let host = &host;
        async move { transcript(host, scenario, &format!("ns-{}", scenario.name)).await }
    });
    running.buffer_unordered(AT_ONCE).collect().await
}

async fn one_by_one(scenarios: Vec<Scenario>) -> Vec<Found> {
    if scenarios.is_empty() {
        return Vec::new();
    }
    let host = Real::still().await;
    let sweep = Sweep::prepare(host.client("admin")).await;
    let mut found = Vec::new();
    for scenario in scenarios {
        found.push(transcript(&host, scenario, &format!("ns-{}", scenario.name)).await);
        sweep.sweep().await;
    }
    found
}

/// Real controllers work in real time, and this machine may be busy: what differs gets a second chance,
/// alone. Their number is printed.
async fn try_again(found: &mut [Found]) -> usize {
    let mut rescued = 0;
    for first in found.iter_mut().filter(|found| !found.is_equal()) {
        println!("once more: {}", first.difference());
        let host = if is_lively(first.scenario) {
            Real::lively().await
        } else {
            Real::still().await
        };
        let namespace = format!("ns-{}", first.scenario.name);
        *first = transcript(&host, first.scenario, &namespace).await;
        rescued += usize::from(first.is_equal());
    }
    rescued
}
