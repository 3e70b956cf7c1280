//! Controllers of the cluster. The workload controllers and the kubelet are added by
//! [`crate::Cluster::run_workloads`].

use serde_json::json;

use crate::clock::Instant;
use crate::context::Context;
use crate::state::State;
use crate::tree;
use crate::write::{self, Target};

mod accounts;
mod definitions;
mod garbage;
mod kubelet;
mod namespaces;
mod quotas;
mod taints;
mod workloads;

pub use accounts::Accounts;
pub use definitions::Definitions;
pub use garbage::Garbage;
pub use kubelet::{Kubelet, create_nodes};
pub use namespaces::Namespaces;
pub use quotas::Quotas;
pub use taints::Taints;
pub use workloads::{Workloads, int_or_percent};

/// A controller, which is run by [`crate::Cluster::settle`].
pub trait Controller: Send {
    /// Returns the name of the controller in the trace.
    fn name(&self) -> &'static str;

    /// Does the work that is due at the current time. Returns whether anything changed.
    fn step(&mut self, state: &mut State) -> bool;

    /// Returns the next time at which the controller has work to do even if the store does not change.
    fn next(&self, _state: &State) -> Option<Instant> {
        None
    }
}

/// Versions of the inputs of a controller that reads the whole store in each step.
#[derive(Debug, Default, PartialEq)]
struct SeenInputs {
    store_version: u64,
    webhook_replies: u64,
}

impl SeenInputs {
    /// Records the current inputs. Returns whether they have changed since the last call.
    fn update(&mut self, state: &State) -> bool {
        let current = Self {
            store_version: state.store.version(),
            webhook_replies: state.webhooks.pending.replies_received,
        };
        std::mem::replace(self, current) != *self
    }
}

/// Returns the controllers that every cluster runs.
#[must_use]
pub fn standard() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(Namespaces::default()),
        Box::new(Accounts::default()),
        Box::new(Definitions::default()),
        Box::new(Garbage::default()),
        Box::new(crate::auth::Aggregation::default()),
    ]
}

/// Creates the objects that every cluster has.
pub fn bootstrap(state: &mut State) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        create_if_absent(state, "", "namespaces", "", json!({"metadata": {"name": name}}));
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}]},
    });
    create_if_absent(state, "", "services", "default", service);
    crate::auth::bootstrap(state);
}

/// Creates an object as a cluster component if it does not exist. Returns whether it was created.
pub(crate) fn create_if_absent(
    state: &mut State,
    group: &str,
    plural: &str,
    namespace: &str,
    value: serde_json::Value,
) -> bool {
    let Some(resource) = state.resources.preferred(group, plural).cloned() else {
        return false;
    };
    let mut context = Context::for_controller("apiserver");
    let target = Target {
        resource: &resource,
        namespace,
        name: "",
    };
    let name = tree::text(&value, &["metadata", "name"]).to_owned();
    if state
        .store
        .get(&resource.table, &crate::object::key(namespace, &name))
        .is_some()
    {
        return false;
    }
    let decoded = write::decode(state, &resource, value, &mut context);
    decoded
        .and_then(|value| write::create(state, &target, value, &mut context))
        .is_ok()
}
