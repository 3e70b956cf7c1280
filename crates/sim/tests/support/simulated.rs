//! The simulator as a host of scenarios. The tests of this crate and the suite that also runs on a real
//! server use it.

use std::sync::Arc;

use kube::Client;
use mainstay_conformance::{Hook, HookAddress, HookReply, Host, HostError};
use mainstay_sim::Cluster;
use mainstay_sim::auth::User;
use mainstay_sim::context::{Destination, WebhookReply};
use mainstay_sim::script::Script;

/// Number of nodes, equal to that of the simulated kubelet on a real cluster.
const NODES: usize = 3;

/// A cluster with its own clock.
#[derive(Default)]
pub(crate) struct Simulated(pub(crate) Cluster);

impl Host for Simulated {
    fn client(&self, user: &str) -> Client {
        let group = match user {
            "admin" => "system:masters",
            "alice" => "team-a",
            _ => "team-b",
        };
        let mut user = User::named(user, &[group]);
        user.uid.clone_from(&user.name);
        Client::new(self.0.connect_as("conformance", user), "default")
    }

    async fn pause(&self) {
        self.0.advance(std::time::Duration::from_millis(100));
    }

    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), HostError> {
        let script: Script = script
            .parse()
            .map_err(|error| HostError::PodBehavior(Box::new(error)))?;
        if self.0.with(|state| state.store.count("nodes")) == 0 {
            self.0.run_workloads(NODES);
        }
        self.0
            .with(|state| state.scripts.add_workload(namespace, workload, script));
        Ok(())
    }

    async fn serve_hook(&self, hook: Arc<Hook>) -> Result<HookAddress, HostError> {
        // The webhook runs in this process and has a constant URL, so that the same script produces the same
        // trace.
        let name = hook.name.clone();
        let url = format!("https://{name}.hooks.test/{name}");
        self.0
            .handle_webhook_with(&Destination::Url(url.clone()), move |review| {
                match hook.respond(review) {
                    HookReply::Response(code, text) => WebhookReply::Response(code, text),
                    HookReply::NoResponse => WebhookReply::TimedOut,
                    HookReply::Unreachable => WebhookReply::Failed(format!(
                        "dial tcp {name}.hooks.test: connect: connection refused"
                    )),
                }
            });
        Ok(HookAddress {
            url,
            ca: "Y2VydGlmaWNhdGU=".to_owned(),
            guard: Box::new(()),
        })
    }
}
