//! A controller of the simulator that changes nothing and checks invariants in every state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_sim::State;
use mainstay_sim::controllers::Controller;
use serde_json::Value;

use super::view::{ObjectCache, list_objects};
use crate::support::fault_scenarios::FaultScenario;
use crate::support::migration_checks::MigrationChecks;

/// Records violations. Clones share the records.
#[derive(Clone)]
pub(super) struct PodObserver {
    state: Arc<Mutex<ObservedState>>,
    deletes_in_use: bool,
}

#[derive(Default)]
struct ObservedState {
    violations: BTreeSet<String>,
    /// Revisions and tags that have had an injector.
    had_injector: BTreeSet<String>,
    /// Names of our existing objects by UID.
    existing: BTreeMap<String, String>,
    cache: ObjectCache,
    migration_checks: MigrationChecks,
    version: u64,
}

impl PodObserver {
    pub(super) fn new(scenario: &FaultScenario) -> Self {
        Self {
            state: Arc::default(),
            deletes_in_use: scenario.deletes_in_use,
        }
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let observed = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        observed.violations.iter().cloned().collect()
    }
}

impl Controller for PodObserver {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let mut observed = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if observed.version == state.store.version() {
            return false;
        }
        observed.version = state.store.version();
        let injectors = injector_names(state);
        if !self.deletes_in_use {
            observed.check_injection(state, &injectors);
        }
        observed.had_injector.extend(injectors);
        observed.check_deletions(state);
        let view = observed.cache.view(state);
        let violations = observed.migration_checks.check(&view);
        observed.violations.extend(violations);
        false
    }
}

/// Returns the revisions and tags that have an injector.
fn injector_names(state: &State) -> BTreeSet<String> {
    let found = list_objects(
        state,
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    );
    found
        .into_iter()
        .filter_map(|object| {
            let name = &*object.meta().name;
            let name = name
                .strip_prefix("istio-revision-tag-")
                .or_else(|| name.strip_prefix("istio-sidecar-injector-"))
                .or((name == "istio-sidecar-injector").then_some("default"))?;
            Some(name.to_owned())
        })
        .collect()
}

impl ObservedState {
    /// Checks `OneInjectorPerNamespace` and `NoDeleteInUse`: a namespace does not lose its injector, and a
    /// revision in use is not deleted.
    fn check_injection(&mut self, state: &State, injectors: &BTreeSet<String>) {
        for namespace in list_objects(state, "", "namespaces") {
            let meta = namespace.meta();
            let name = match meta.label("istio-injection") {
                Some("enabled") => "default",
                _ => meta.label("istio.io/rev").unwrap_or_default(),
            };
            if self.had_injector.contains(name) && !injectors.contains(name) {
                self.violations
                    .insert(format!("OneInjectorPerNamespace: {name} has no injector"));
            }
            let revision = list_objects(state, "sailoperator.io", "istiorevisions")
                .into_iter()
                .find(|revision| *revision.meta().name == *name);
            if revision.is_some_and(|revision| revision.meta().deleting) {
                self.violations
                    .insert(format!("NoDeleteInUse: {name} is deleted while in use"));
            }
        }
    }

    /// Checks `FinalizerLast`: when one of our objects is deleted, none of the objects that it installed is
    /// left.
    fn check_deletions(&mut self, state: &State) {
        let mut existing = BTreeMap::new();
        for plural in ["istiorevisions", "istiorevisiontags", "istiocnis", "ztunnels"] {
            for object in list_objects(state, "sailoperator.io", plural) {
                let meta = object.meta();
                existing.insert(meta.uid.to_string(), format!("{plural}/{}", meta.name));
            }
        }
        let before = std::mem::replace(&mut self.existing, existing);
        for (uid, name) in before {
            if self.existing.contains_key(&uid) {
                continue;
            }
            let left: Vec<String> = state
                .store
                .dependents(&uid)
                .filter(|location| is_installed(state, location))
                .map(|location| format!("{location:?}"))
                .collect();
            if !left.is_empty() {
                self.violations.insert(format!(
                    "FinalizerLast: {name} was deleted before {}",
                    left.join(", ")
                ));
            }
        }
    }
}

fn is_installed(state: &State, location: &mainstay_sim::store::ObjectLocation) -> bool {
    let found = state.store.get(&location.table, &location.key);
    found.is_some_and(|object| {
        let value: Value = object.value();
        value["metadata"]["labels"]["managed-by"] == "sail-operator" && !object.meta().deleting
    })
}
