//! Compares the rendered objects of the old and the new control plane field by field.

mod diff;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_mesh::plan::Release;
use mainstay_operator::Renderer;
use serde_json::Value;

use crate::compose::{Rehearsal, TAG_CHART};
use crate::input::text;
use crate::report::{Change, ObjectChange};
use diff::{find_differences, renamed};

/// Kubernetes version of the embedded cluster.
pub(crate) const SERVER: &str = "v1.36.4";

/// Kind, namespace and name.
pub(crate) type ObjectKey = (String, String, String);

/// Objects of a release by key.
type Objects = Rc<BTreeMap<ObjectKey, Value>>;

/// Cache of rendered releases. A report needs each release several times.
#[derive(Debug)]
pub(crate) struct RenderCache {
    renderer: Renderer,
    cached: RefCell<Vec<(Arc<Release>, Objects)>>,
}

impl RenderCache {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            renderer: Renderer::for_version(catalog, SERVER),
            cached: RefCell::new(Vec::new()),
        }
    }

    /// Returns the objects of a release; empty if the release cannot be rendered, which the operator has
    /// already reported.
    fn objects(&self, release: &Arc<Release>) -> Objects {
        let mut cached = self.cached.borrow_mut();
        let known = cached.iter().find(|(known, _)| known == release);
        if let Some((_, objects)) = known {
            return objects.clone();
        }
        let objects = self.renderer.render(release).unwrap_or_default().into_iter();
        let objects: Objects = Rc::new(objects.map(|object| (key_of(&object, release), object)).collect());
        cached.push((release.clone(), objects.clone()));
        objects
    }
}

fn key_of(object: &Value, release: &Release) -> ObjectKey {
    let kind = text(object, "/kind").to_owned();
    let namespace = match text(object, "/metadata/namespace") {
        "" if is_namespaced(&kind) => release.key.namespace.clone(),
        namespace => namespace.to_owned(),
    };
    (kind, namespace, text(object, "/metadata/name").to_owned())
}

/// Whether a kind is namespaced. Charts sometimes omit the namespace of namespaced objects, which are then in
/// the release's namespace.
fn is_namespaced(kind: &str) -> bool {
    const CLUSTER_SCOPED: [&str; 7] = [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    !CLUSTER_SCOPED.contains(&kind)
}

fn releases_of<'a>(
    rehearsal: &'a Rehearsal<'_>,
    revision: &'a str,
) -> impl Iterator<Item = &'a Arc<Release>> {
    let all = rehearsal.recording.releases();
    all.filter(move |release| release.chart != TAG_CHART && release.owner.name == revision)
}

/// Returns the changes from the old control plane to the new one.
pub(crate) fn changes(rehearsal: &Rehearsal<'_>) -> Vec<ObjectChange> {
    let (old_name, new_name) = (
        rehearsal.old_revision(),
        rehearsal.recording.final_state.active.as_str(),
    );
    let collect = |revision: &str| -> BTreeMap<ObjectKey, Value> {
        let releases = releases_of(rehearsal, revision);
        let all = releases.flat_map(|release| {
            let objects = rehearsal.renders.objects(release);
            objects
                .iter()
                .map(|(key, object)| (key.clone(), object.clone()))
                .collect::<Vec<_>>()
        });
        all.collect()
    };
    let (old, new) = (collect(old_name), collect(new_name));
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let old: BTreeMap<ObjectKey, Value> = old
        .into_iter()
        .map(|((kind, namespace, name), object)| {
            let name = name.replace(old_name, new_name);
            ((kind, namespace, name), renamed(object, old_name, new_name))
        })
        .collect();
    let keys: BTreeSet<&ObjectKey> = old.keys().chain(new.keys()).collect();
    let changes = keys.into_iter().filter_map(|key| {
        let (change, fields) = match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => (Change::Changed, find_differences(old, new)),
            (None, _) => (Change::Added, Vec::new()),
            (_, None) => (Change::Removed, Vec::new()),
        };
        let (kind, namespace, name) = key.clone();
        let same = change == Change::Changed && fields.is_empty();
        (!same).then_some(ObjectChange {
            kind,
            namespace,
            name,
            change,
            fields,
        })
    });
    changes.collect()
}

/// Returns the objects of a release that no other installed release contains.
pub(crate) fn exclusive_objects(rehearsal: &Rehearsal<'_>, release: &Arc<Release>) -> Vec<ObjectKey> {
    let others: BTreeSet<ObjectKey> = rehearsal
        .recording
        .installed_releases()
        .filter(|other| other.key != release.key)
        .flat_map(|other| object_keys(rehearsal, other))
        .collect();
    let own = object_keys(rehearsal, release)
        .into_iter()
        .chain([inventory_key(release)]);
    own.filter(|key| !others.contains(key)).collect()
}

fn object_keys(rehearsal: &Rehearsal<'_>, release: &Arc<Release>) -> Vec<ObjectKey> {
    rehearsal.renders.objects(release).keys().cloned().collect()
}

/// Returns the key of the operator's inventory of a release.
fn inventory_key(release: &Release) -> ObjectKey {
    let name = format!("mainstay-{}", release.key.name);
    ("ConfigMap".to_owned(), release.key.namespace.clone(), name)
}

/// Returns the writes that install a release, as verb and kind. Unchanged objects are not written.
pub(crate) fn release_writes(
    rehearsal: &Rehearsal<'_>,
    release: &Arc<Release>,
    before: Option<&Arc<Release>>,
) -> Vec<(&'static str, String)> {
    let old = before
        .map(|before| rehearsal.renders.objects(before))
        .unwrap_or_default();
    let new = rehearsal.renders.objects(release);
    let changed = new.iter().filter(|(key, object)| old.get(*key) != Some(*object));
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let first = before.is_none().then(|| ("apply", inventory_key(release).0));
    changed
        .map(|((kind, ..), _)| ("apply", kind.clone()))
        .chain(gone.map(|(kind, ..)| ("delete", kind.clone())))
        .chain(first)
        .collect()
}
