//! Creates the service account `default` in every active namespace.

use serde_json::json;

use super::{Controller, create_if_absent};
use crate::state::State;

/// Controller for default service accounts.
#[derive(Debug, Default)]
pub struct Accounts {
    seen_version: u64,
}

impl Controller for Accounts {
    fn name(&self) -> &'static str {
        "service-accounts"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let changed = state.store.changed_since(self.seen_version);
        self.seen_version = state.store.version();
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
        let mut created = false;
        for namespace in namespaces {
            created |= create_if_absent(
                state,
                "",
                "serviceaccounts",
                &namespace,
                json!({"metadata": {"name": "default"}}),
            );
        }
        created
    }
}
