//! Somebody who looks after every step: takes each state the cluster is in, notes what must never be so. Works from inside the
//! simulator, as a controller that changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_sim::State;
use mainstay_sim::controllers::Controller;
use serde_json::Value;

use super::scene::{Shelf, all};
use crate::support::movers::Movers;
use crate::support::plays::Play;

/// What was seen so far; clones are the same one.
#[derive(Clone)]
pub(super) struct Witness {
    seen: Arc<Mutex<Seen>>,
    destroys: bool,
}

#[derive(Default)]
struct Seen {
    broken: BTreeSet<String>,
    /// Names that had an injector once.
    served: BTreeSet<String>,
    /// Our objects, by identity.
    alive: BTreeMap<String, String>,
    shelf: Shelf,
    movers: Movers,
    version: u64,
}

impl Witness {
    pub(super) fn new(play: &Play) -> Self {
        Self {
            seen: Arc::default(),
            destroys: play.destroys,
        }
    }

    pub(super) fn broken(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.broken.iter().cloned().collect()
    }
}

impl Controller for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn step(&mut self, state: &mut State) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.version == state.store.version() {
            return false;
        }
        seen.version = state.store.version();
        let injectors = names_of_injectors(state);
        if !self.destroys {
            seen.injection(state, &injectors);
        }
        seen.served.extend(injectors);
        seen.graves(state);
        let scene = seen.shelf.scene(state);
        let wrong = seen.movers.look(&scene);
        seen.broken.extend(wrong);
        false
    }
}

/// The revisions and tags that have an injector: by the names of webhook configurations.
fn names_of_injectors(state: &State) -> BTreeSet<String> {
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

impl Seen {
    /// OneInjectorPerNamespace: a namespace that was served once is served at every moment, and what anybody refers to is not deleted (NoDeleteInUse).
    fn injection(&mut self, state: &State, injectors: &BTreeSet<String>) {
        for namespace in all(state, "", "namespaces") {
            let meta = namespace.meta();
            let name = match meta.label("istio-injection") {
                Some("enabled") => "default",
                _ => meta.label("istio.io/rev").unwrap_or_default(),
            };
            if self.served.contains(name) && !injectors.contains(name) {
                self.broken
                    .insert(format!("OneInjectorPerNamespace: {name} has no injector"));
            }
            let revision = all(state, "sailoperator.io", "istiorevisions")
                .into_iter()
                .find(|revision| *revision.meta().name == *name);
            if revision.is_some_and(|revision| revision.meta().deleting) {
                self.broken
                    .insert(format!("NoDeleteInUse: {name} is deleted while in use"));
            }
        }
    }

    /// FinalizerLast: when one of our objects is gone, nothing that it installed is left.
    fn graves(&mut self, state: &State) {
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
                .filter(|place| installed(state, place))
                .map(|place| format!("{place:?}"))
                .collect();
            if !left.is_empty() {
                self.broken
                    .insert(format!("FinalizerLast: {name} went before {}", left.join(", ")));
            }
        }
    }
}

fn installed(state: &State, place: &mainstay_sim::store::ObjectLocation) -> bool {
    let found = state.store.get(&place.table, &place.key);
    found.is_some_and(|object| {
        let value: Value = object.value();
        value["metadata"]["labels"]["managed-by"] == "sail-operator" && !object.meta().deleting
    })
}
