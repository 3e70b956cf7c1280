//! Detects names that collide within a deployment.
//!
//! Names are joined with dashes, so that different revisions and components can need the same name:
//! revision `a` with component `b-c`, and revision `a-b` with component `c`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::Reason;
use mainstay_api::delivery::{COMPONENT_LABEL, REVISION_LABEL};
use serde_json::Value;

use super::PreparedRevisions;
use super::cluster_state::ClusterState;
use super::routes::ClusterRoutes;
use super::target::Problem;
use crate::manifest::{Manifest, ObjectKey};

/// Objects with a name that another object of the deployment needs as well.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duplicates {
    pub(crate) keys: BTreeSet<ObjectKey>,
    /// Description of the first collision.
    pub(crate) problem: Option<Problem>,
}

/// Finds collisions between the objects of all revisions for which `is_used` returns true.
pub(crate) fn find_in_revisions(prepared: &PreparedRevisions, is_used: impl Fn(&str) -> bool) -> Duplicates {
    search_revisions(prepared, is_used).found
}

/// Finds collisions between the objects of a rollout: those of revisions that should exist or still have
/// workloads, and those of routes. Routes of different clusters have equal names, so they are compared with
/// revisions only.
pub(crate) fn find_in_rollout(
    prepared: &PreparedRevisions,
    clusters: &BTreeMap<String, ClusterState<'_>>,
    routes: &BTreeMap<String, ClusterRoutes>,
) -> Duplicates {
    let cells = clusters.values().flat_map(|state| state.cells.values());
    let used: BTreeSet<&str> = cells
        .filter(|cell| cell.is_in_target || !cell.workloads.is_empty())
        .map(|cell| cell.revision.as_str())
        .collect();
    let mut search = search_revisions(prepared, |revision| used.contains(revision));
    for manifest in routes.values().flat_map(|routes| &routes.manifests) {
        if let Some(known) = search.known.get(&ObjectName::of(&manifest.key)) {
            search.found.record(known, manifest);
        }
    }
    search.found
}

/// Identity of an object for the API server, which does not depend on the API version.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ObjectName<'a> {
    name: &'a str,
    kind: &'a str,
    namespace: &'a str,
    group: &'a str,
}

impl<'a> ObjectName<'a> {
    fn of(key: &'a ObjectKey) -> Self {
        let group = key.api_version.rsplit_once('/').map(|(group, _)| group);
        Self {
            name: &key.name,
            kind: &key.kind,
            namespace: &key.namespace,
            group: group.unwrap_or_default(),
        }
    }
}

/// Objects of revisions by name, and the collisions between them.
#[derive(Default)]
struct Search<'a> {
    known: BTreeMap<ObjectName<'a>, &'a Manifest>,
    found: Duplicates,
}

fn search_revisions(prepared: &PreparedRevisions, is_used: impl Fn(&str) -> bool) -> Search<'_> {
    let mut search = Search::default();
    let used = prepared.revisions.iter().filter(|(label, _)| is_used(label));
    let manifests = used.flat_map(|(_, revision)| revision.support.iter().chain(&revision.workloads));
    for manifest in manifests {
        match search.known.entry(ObjectName::of(&manifest.key)) {
            Entry::Vacant(entry) => {
                entry.insert(manifest);
            }
            Entry::Occupied(entry) => search.found.record(entry.get(), manifest),
        }
    }
    search
}

impl Duplicates {
    fn record(&mut self, first: &Manifest, second: &Manifest) {
        self.keys.extend([first.key.clone(), second.key.clone()]);
        self.problem.get_or_insert_with(|| Problem {
            reason: Reason::NameConflict,
            message: describe(first, second),
        });
    }
}

fn describe(first: &Manifest, second: &Manifest) -> String {
    let (one, other) = (origin(first), origin(second));
    if one == other {
        return format!("{one} needs {} twice: rename an object", first.key);
    }
    format!(
        "{one} and {other} both need {}: rename a revision, a component or an object",
        first.key
    )
}

/// Returns the component and the revision of an object, as in its labels.
fn origin(manifest: &Manifest) -> String {
    let label = |name: &str| {
        let labels = manifest.object.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(name)).and_then(Value::as_str)
    };
    match (label(COMPONENT_LABEL), label(REVISION_LABEL)) {
        (Some(component), Some(revision)) => format!("component {component:?} of revision {revision:?}"),
        _ => "the traffic of the deployment".to_owned(),
    }
}
