//! Converts the simulator's state into a view for the migration checks. Only changed objects are decoded
//! again.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_sim::State;
use mainstay_sim::object::Object;
use serde_json::Value;

use crate::support::migration_checks::ClusterView;

/// Our kinds and their plurals.
const MESH: [(&str, &str); 5] = [
    ("Istio", "istios"),
    ("IstioRevision", "istiorevisions"),
    ("IstioRevisionTag", "istiorevisiontags"),
    ("IstioCNI", "istiocnis"),
    ("ZTunnel", "ztunnels"),
];

/// Decoded objects with their versions, by UID.
#[derive(Default)]
pub(super) struct ObjectCache(BTreeMap<Box<str>, (u64, Arc<Value>)>);

impl ObjectCache {
    pub(super) fn view(&mut self, state: &State) -> ClusterView {
        let mut mesh = Vec::new();
        for (kind, plural) in MESH {
            let objects = self.decode_all(state, "sailoperator.io", plural);
            mesh.extend(objects.into_iter().map(|object| (kind, object)));
        }
        let mut apps = self.decode_all(state, "apps", "deployments");
        apps.retain(|app| app["metadata"]["namespace"] != "istio-system");
        ClusterView {
            now: Timestamp::from_microsecond(state.now().as_micros()).unwrap(),
            mesh,
            apps,
            pods: self.decode_all(state, "", "pods"),
        }
    }

    fn decode_all(&mut self, state: &State, group: &str, plural: &str) -> Vec<Arc<Value>> {
        let objects = list_objects(state, group, plural);
        objects.into_iter().map(|object| self.decode(object)).collect()
    }

    fn decode(&mut self, object: &Object) -> Arc<Value> {
        let meta = object.meta();
        let known = self
            .0
            .get(&meta.uid)
            .filter(|(version, _)| *version == meta.version);
        if let Some((_, value)) = known {
            return Arc::clone(value);
        }
        let value = Arc::new(object.value());
        self.0
            .insert(meta.uid.clone(), (meta.version, Arc::clone(&value)));
        value
    }
}

/// Returns all objects of a kind.
pub(super) fn list_objects<'a>(state: &'a State, group: &str, plural: &str) -> Vec<&'a Arc<Object>> {
    let resource = state.resources.preferred(group, plural);
    resource.map_or_else(Vec::new, |resource| state.store.all(&resource.table).collect())
}
