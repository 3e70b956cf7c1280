//! Tests cache updates, and late events of lagging watches.

use serde_json::json;

use super::*;

fn id(name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn object(version: u64, owner: &str) -> Arc<Value> {
    Arc::new(json!({"metadata": {
        "uid": "u", "resourceVersion": version.to_string(), "ownerReferences": [{"uid": owner}],
        "annotations": {"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "ns"},
    }}))
}

fn names(live: &Live, owner: &str) -> Vec<String> {
    live.owned_by(owner).map(|(id, _)| id.name.clone()).collect()
}

#[test]
fn an_older_version_is_ignored() {
    let mut live = Live::default();
    assert!(live.record(id("a"), Some(object(5, "o"))));
    assert!(!live.record(id("a"), Some(object(5, "o"))), "already observed");
    assert!(!live.record(id("a"), Some(object(4, "p"))), "older");
    assert_eq!(names(&live, "o"), ["a"]);
    assert!(live.record(id("a"), Some(object(6, "p"))));
    assert_eq!(
        (names(&live, "o"), names(&live, "p")),
        (vec![], vec!["a".to_owned()])
    );
    assert_eq!(live.len(), 1);
}

#[test]
fn a_deleted_object_returns_only_in_a_newer_version() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(5, "o")));
    assert!(live.record(id("a"), None), "we deleted it");
    assert!(!live.record(id("a"), None), "deleted already");
    assert!(
        !live.record(id("a"), Some(object(5, "o"))),
        "an event of a lagging watch"
    );
    assert!(live.record(id("a"), Some(object(8, "o"))), "created again");
    assert!(
        !live.remove(&id("a"), &object(7, "o")),
        "a late event about the old object"
    );
    assert!(live.remove(&id("a"), &object(9, "o")));
    assert!(!live.record(id("a"), Some(object(8, "o"))));
    assert!(live.is_empty());
}

#[test]
fn a_restored_label_is_observed() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(5, "o")));
    assert!(live.remove(&id("a"), &object(6, "o")), "its label was removed");
    assert!(
        live.record(id("a"), Some(object(7, "o"))),
        "the label was added again to the same object"
    );
}

#[test]
fn an_outdated_list_removes_a_written_object_until_the_watch_reports_it() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(7, "o")));
    live.record(id("b"), Some(object(3, "o")));
    let lost = live.retain("", "ConfigMap", &BTreeSet::from([id("b")]));
    assert_eq!(lost, [id("a")]);
    assert!(live.record(id("a"), Some(object(7, "o"))), "the watch reports it");
    assert_eq!(live.retain("apps", "Deployment", &BTreeSet::new()), []);
}

#[test]
fn the_api_version_is_not_part_of_the_identity() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(5, "o")));
    let mut other = id("a");
    other.version = "v2".into();
    assert!(live.get(&other).is_some());
}

#[test]
fn a_release_has_the_objects_of_its_owner_and_name() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(1, "o")));
    live.record(id("b"), Some(object(2, "p")));
    live.record(id("mainstay-r"), Some(object(3, "o")));
    let key = |owner: &str, name: &str| ReleaseKey {
        owner: owner.into(),
        namespace: "ns".into(),
        name: name.into(),
    };
    let known = live.release(&key("o", "r"));
    assert_eq!(known.leftovers.keys().cloned().collect::<Vec<_>>(), [id("a")]);
    assert!(known.inventory.is_some());
    assert!(live.release(&key("o", "s")).is_empty());
    assert!(live.release(&key("q", "r")).is_empty());
    assert_eq!(live.releases_of("p"), BTreeSet::from([key("p", "r")]));
}

/// Returns an object of 100 KB with our label, which any tenant may create.
fn large(name: &str, owner: Option<&str>) -> Arc<Value> {
    let owners: Vec<Value> = owner
        .into_iter()
        .map(|uid| json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioRevision", "name": "x", "uid": uid}))
        .collect();
    Arc::new(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "5", "ownerReferences": owners,
            "labels": {"managed-by": "sail-operator"}, "annotations": {"note": "x".repeat(50_000)}},
        "data": {"blob": "x".repeat(50_000)},
    }))
}

fn bytes(live: &Live) -> usize {
    live.objects.values().map(|object| object.to_string().len()).sum()
}

#[test]
fn objects_of_unknown_owners_are_not_kept_whole() {
    let mut live = Live::default();
    live.add_owner("known");
    for index in 0..100 {
        let name = format!("ours-{index}");
        live.observe(id(&name), large(&name, Some("known")));
    }
    let before = bytes(&live);
    for index in 0..500 {
        let (free, fake) = (format!("free-{index}"), format!("fake-{index}"));
        live.observe(id(&free), large(&free, None));
        live.observe(id(&fake), large(&fake, Some("another")));
    }
    live.mark_owners_complete();
    let after = bytes(&live);
    assert!(after * 10 <= before * 11, "{before} bytes before, {after} after");
    assert!(live.get(&id("ours-0")).is_some());
    assert!(live.get(&id("free-0")).is_none() && live.get(&id("fake-0")).is_none());
    assert_eq!(
        live.owned_by("another").count(),
        500,
        "their owners are still known"
    );
    live.observe(id("late"), large("late", Some("another")));
    assert!(live.get(&id("late")).is_none());
    assert!(
        !live.observe(id("late"), large("late", Some("another"))),
        "observed before"
    );
    assert!(live.record(id("late"), Some(large("late", None))), "we read it");
    assert!(live.get(&id("late")).is_some());
}

#[test]
fn tombstones_expire_with_the_second_relist() {
    let mut live = Live::default();
    live.record(id("a"), Some(object(5, "o")));
    live.record(id("a"), None);
    live.retain("", "ConfigMap", &BTreeSet::new());
    assert!(
        !live.record(id("a"), Some(object(5, "o"))),
        "a list that is older than the deletion"
    );
    live.retain("", "Secret", &BTreeSet::new());
    assert_eq!(live.tombstones.len(), 1);
    live.retain("", "ConfigMap", &BTreeSet::new());
    assert!(live.tombstones.is_empty());
}

#[test]
fn an_owned_object_without_helms_annotations_belongs_to_its_set() {
    let key = |name: &str| ReleaseKey {
        owner: "o".into(),
        namespace: "ns".into(),
        name: name.into(),
    };
    let labels = json!({APPLY_SET_PART: set_id(&key("r"))});
    let object = json!({"metadata": {"uid": "u", "resourceVersion": "5", "ownerReferences": [{"uid": "o"}], "labels": labels}});
    let mut live = Live::default();
    live.record(id("a"), Some(Arc::new(object)));
    assert_eq!(live.release(&key("r")).leftovers.len(), 1);
    assert!(live.release(&key("another")).is_empty());
}
