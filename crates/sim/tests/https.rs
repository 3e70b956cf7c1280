//! Runs the scenarios with webhooks again, with every call over HTTPS on loopback. The transcripts must equal
//! the stored ones, which a real server also produces.

#![allow(clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

#[path = "support/simulated.rs"]
mod simulated;

use std::sync::Arc;

use kube::Client;
use mainstay_conformance::{Host, HostError, SCENARIOS, run};
use mainstay_sim::admission::HttpsTransport;
use simulated::Simulated;

/// The simulator with webhooks on the HTTPS server of the runner, as with a real cluster.
struct HttpsHooks(Simulated);

impl Host for HttpsHooks {
    fn client(&self, user: &str) -> Client {
        self.0.client(user)
    }

    async fn pause(&self) {
        self.0.0.send_pending_webhook_calls().await;
        self.0.pause().await;
        self.0.0.send_pending_webhook_calls().await;
    }

    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), HostError> {
        self.0.set_pod_behavior(namespace, workload, script)
    }
}

#[tokio::test]
async fn webhooks_are_called_over_https() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for scenario in SCENARIOS.iter().filter(|one| one.text.contains("\nHOOK ")) {
        let host = HttpsHooks(Simulated::default());
        // No address of a Service is needed, because scenarios use URLs.
        host.0
            .0
            .set_webhook_transport(Arc::new(HttpsTransport::new(|_| None)));
        let found = run(&host, &format!("ns-{}", scenario.name), scenario.text)
            .await
            .unwrap_or_else(|failure| format!("# {failure}\n"));
        count += 1;
        let differs = found
            .lines()
            .zip(scenario.text.lines())
            .find(|(found, stored)| found != stored);
        if found != scenario.text {
            wrong.push(format!("{}: {differs:?}", scenario.name));
        }
    }
    println!("webhooks over HTTPS: {count} run, {} equal", count - wrong.len());
    assert!(count >= 30, "only {count} scenarios have webhooks");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
