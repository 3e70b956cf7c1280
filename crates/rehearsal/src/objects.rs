//! Old and new control plane, object by object: takes releases, renders them, gives what comes, goes and differs by field.

mod differ;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_mesh::plan::Release;
use mainstay_operator::Renderer;
use serde_json::Value;

use crate::compose::{Play, TAG_CHART};
use crate::input::text;
use crate::report::{Change, ObjectChange};
use differ::{differences, renamed};

/// The version the embedded cluster says it has.
pub(crate) const SERVER: &str = "v1.36.4";

/// Kind, namespace and name.
pub(crate) type Place = (String, String, String);

/// The objects of a release by their place.
type Objects = Rc<BTreeMap<Place, Value>>;

/// Releases that were rendered, each once: a report asks for the same ones again and again.
#[derive(Debug)]
pub(crate) struct Shelf {
    renderer: Renderer,
    held: RefCell<Vec<(Arc<Release>, Objects)>>,
}

impl Shelf {
    /// An empty one.
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            renderer: Renderer::for_version(catalog, SERVER),
            held: RefCell::new(Vec::new()),
        }
    }

    /// What a release consists of; nothing if it cannot be rendered, which the operator has told already.
    fn take(&self, release: &Arc<Release>) -> Objects {
        let mut held = self.held.borrow_mut();
        let known = held.iter().find(|(known, _)| known == release);
        if let Some((_, objects)) = known {
            return objects.clone();
        }
        let objects = self.renderer.render(release).unwrap_or_default().into_iter();
        let objects: Objects = Rc::new(objects.map(|object| (place(&object, release), object)).collect());
        held.push((release.clone(), objects.clone()));
        objects
    }
}

fn place(object: &Value, release: &Release) -> Place {
    let kind = text(object, "/kind").to_owned();
    let namespace = match text(object, "/metadata/namespace") {
        "" if is_namespaced(&kind) => release.key.namespace.clone(),
        namespace => namespace.to_owned(),
    };
    (kind, namespace, text(object, "/metadata/name").to_owned())
}

/// Charts leave the namespace out now and then; the release's is meant.
fn is_namespaced(kind: &str) -> bool {
    const WIDE: [&str; 7] = [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    !WIDE.contains(&kind)
}

fn of_revision<'a>(play: &'a Play<'_>, revision: &'a str) -> impl Iterator<Item = &'a Arc<Release>> {
    let all = play.recording.releases();
    all.filter(move |release| release.chart != TAG_CHART && release.owner.name == revision)
}

/// What changes from the old control plane to the new one.
pub(crate) fn changes(play: &Play<'_>) -> Vec<ObjectChange> {
    let (old_name, new_name) = (play.old_revision(), play.recording.finale.active.as_str());
    let collect = |revision: &str| -> BTreeMap<Place, Value> {
        let releases = of_revision(play, revision);
        let all = releases.flat_map(|release| {
            let objects = play.shelf.take(release);
            objects
                .iter()
                .map(|(place, object)| (place.clone(), object.clone()))
                .collect::<Vec<_>>()
        });
        all.collect()
    };
    let (old, new) = (collect(old_name), collect(new_name));
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let old: BTreeMap<Place, Value> = old
        .into_iter()
        .map(|((kind, namespace, name), object)| {
            let name = name.replace(old_name, new_name);
            ((kind, namespace, name), renamed(object, old_name, new_name))
        })
        .collect();
    let places: BTreeSet<&Place> = old.keys().chain(new.keys()).collect();
    let changes = places.into_iter().filter_map(|place| {
        let (change, fields) = match (old.get(place), new.get(place)) {
            (Some(old), Some(new)) => (Change::Changed, differences(old, new)),
            (None, _) => (Change::Added, Vec::new()),
            (_, None) => (Change::Removed, Vec::new()),
        };
        let (kind, namespace, name) = place.clone();
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

/// The objects of a release that no other release has which is still installed.
pub(crate) fn only_in(play: &Play<'_>, release: &Arc<Release>) -> Vec<Place> {
    let others: BTreeSet<Place> = play
        .recording
        .installed()
        .filter(|other| other.key != release.key)
        .flat_map(|other| places(play, other))
        .collect();
    let own = places(play, release).into_iter().chain([inventory(release)]);
    own.filter(|place| !others.contains(place)).collect()
}

fn places(play: &Play<'_>, release: &Arc<Release>) -> Vec<Place> {
    play.shelf.take(release).keys().cloned().collect()
}

/// Where the operator keeps what a release consists of.
fn inventory(release: &Release) -> Place {
    let name = format!("mainstay-{}", release.key.name);
    ("ConfigMap".to_owned(), release.key.namespace.clone(), name)
}

/// How each object of a release is written: not at all where it was there before and is the same.
pub(crate) fn written(
    play: &Play<'_>,
    release: &Arc<Release>,
    before: Option<&Arc<Release>>,
) -> Vec<(&'static str, String)> {
    let old = before.map(|before| play.shelf.take(before)).unwrap_or_default();
    let new = play.shelf.take(release);
    let changed = new
        .iter()
        .filter(|(place, object)| old.get(*place) != Some(*object));
    let gone = old.keys().filter(|place| !new.contains_key(*place));
    let first = before.is_none().then(|| ("apply", inventory(release).0));
    changed
        .map(|((kind, ..), _)| ("apply", kind.clone()))
        .chain(gone.map(|(kind, ..)| ("delete", kind.clone())))
        .chain(first)
        .collect()
}
