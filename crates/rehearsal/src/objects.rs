//! Old and new control plane, object by object: takes releases, renders them, gives what comes, goes and differs by field.

mod differ;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

/// The objects of a release by their place; nothing if it cannot be rendered, which the operator has told already.
fn rendered(play: &Play<'_>, release: &Release) -> BTreeMap<Place, Value> {
    let objects = Renderer::new(play.catalog.clone(), SERVER).render(release);
    let objects = objects.unwrap_or_default().into_iter();
    objects.map(|object| (place(&object, release), object)).collect()
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
        releases.flat_map(|release| rendered(play, release)).collect()
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
        .flat_map(|other| rendered(play, other).into_keys())
        .collect();
    let own = rendered(play, release).into_keys().chain([inventory(release)]);
    own.filter(|place| !others.contains(place)).collect()
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
    let old = before.map(|before| rendered(play, before)).unwrap_or_default();
    let new = rendered(play, release);
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
