//! Creates the service account `default` in every active namespace.

use serde_json::json;

use super::{Controller, make};
use crate::state::State;

/// The controller for default service accounts.
#[derive(Debug, Default)]
pub struct Accounts {
    seen: u64,
}

impl Controller for Accounts {
    fn name(&self) -> &'static str {
        "service-accounts"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let changed = state.store.changed_since(self.seen);
        self.seen = state.store.version();
        if !changed
            .iter()
            .any(|table| matches!(&**table, "namespaces" | "serviceaccounts"))
        {
            return false;
        }
        let namespaces: Vec<String> = state
            .store
            .all("namespaces")
            .filter(|object| !object.meta().deleting)
            .map(|object| object.meta().name.to_string())
            .collect();
        let mut busy = false;
        for namespace in namespaces {
            busy |= make(
                state,
                "",
                "serviceaccounts",
                &namespace,
                json!({"metadata": {"name": "default"}}),
            );
        }
        busy
    }
}
