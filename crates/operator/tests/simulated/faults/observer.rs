//! Checks invariants in every state of the simulator, as a controller that changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_sim::State;
use mainstay_sim::controllers::Controller;
use serde_json::Value;

use super::view::{ObjectCache, all};
use crate::support::fault_scenarios::FaultScenario;
use crate::support::migration_checks::MigrationChecks;

/// Records violations; clones share them.
#[derive(Clone)]
pub(super) struct PodObserver {
    state: Arc<Mutex<ObservedState>>,
    destroys: bool,
}

#[derive(Default)]
struct ObservedState {
    violations: BTreeSet<String>,
    /// Revisions and tags that had an injector once.
    served: BTreeSet<String>,
    /// Our objects by identity.
    alive: BTreeMap<String, String>,
    cache: ObjectCache,
    migration_checks: MigrationChecks,
    version: u64,
}

impl PodObserver {
    pub(super) fn new(scenario: &FaultScenario) -> Self {
        Self {
            state: Arc::default(),
            destroys: scenario.destroys,
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
        if !self.destroys {
            observed.check_injection(state, &injectors);
        }
        observed.served.extend(injectors);
        observed.check_deletions(state);
        let view = observed.cache.view(state);
        let violations = observed.migration_checks.check(&view);
        observed.violations.extend(violations);
        false
    }
}

/// Returns the revisions and tags that have an injector.
fn injector_names(state: &State) -> BTreeSet<String> {
    let found = all(
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
    /// `OneInjectorPerNamespace` and `NoDeleteInUse`: a namespace keeps its injector, and a revision in use
    /// is not deleted.
    fn check_injection(&mut self, state: &State, injectors: &BTreeSet<String>) {
        for namespace in all(state, "", "namespaces") {
            let meta = namespace.meta();
            let name = match meta.label("istio-injection") {
                Some("enabled") => "default",
                _ => meta.label("istio.io/rev").unwrap_or_default(),
            };
            if self.served.contains(name) && !injectors.contains(name) {
                self.violations
                    .insert(format!("OneInjectorPerNamespace: {name} has no injector"));
            }
            let revision = all(state, "sailoperator.io", "istiorevisions")
                .into_iter()
                .find(|revision| *revision.meta().name == *name);
            if revision.is_some_and(|revision| revision.meta().deleting) {
                self.violations
                    .insert(format!("NoDeleteInUse: {name} is deleted while in use"));
            }
        }
    }

    /// `FinalizerLast`: when one of our objects is deleted, nothing that it installed is left.
    fn check_deletions(&mut self, state: &State) {
        let mut alive = BTreeMap::new();
        for plural in ["istiorevisions", "istiorevisiontags", "istiocnis", "ztunnels"] {
            for object in all(state, "sailoperator.io", plural) {
                let meta = object.meta();
                alive.insert(meta.uid.to_string(), format!("{plural}/{}", meta.name));
            }
        }
        let before = std::mem::replace(&mut self.alive, alive);
        for (uid, name) in before {
            if self.alive.contains_key(&uid) {
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
