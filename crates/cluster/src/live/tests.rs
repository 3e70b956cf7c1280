//! Cache updates, and events of lagging watches.

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
fn an_object_never_gets_older() {
    let mut live = Live::default();
    assert!(live.observe(id("a"), Some(object(5, "o"))));
    assert!(!live.observe(id("a"), Some(object(5, "o"))), "seen before");
    assert!(!live.observe(id("a"), Some(object(4, "p"))), "older");
    assert_eq!(names(&live, "o"), ["a"]);
    assert!(live.observe(id("a"), Some(object(6, "p"))));
    assert_eq!(
        (names(&live, "o"), names(&live, "p")),
        (vec![], vec!["a".to_owned()])
    );
    assert_eq!(live.len(), 1);
}

#[test]
fn what_is_gone_stays_gone_until_it_is_newer() {
    let mut live = Live::default();
    live.observe(id("a"), Some(object(5, "o")));
    assert!(live.observe(id("a"), None), "we deleted it");
    assert!(!live.observe(id("a"), None), "no news");
    assert!(!live.observe(id("a"), Some(object(5, "o"))), "a watch that lags");
    assert!(live.observe(id("a"), Some(object(8, "o"))), "made again");
    assert!(!live.remove(&id("a"), &object(7, "o")), "the old one's end, late");
    assert!(live.remove(&id("a"), &object(9, "o")));
    assert!(!live.observe(id("a"), Some(object(8, "o"))));
    assert!(live.is_empty());
}

#[test]
fn a_mark_that_comes_back_is_seen() {
    let mut live = Live::default();
    live.observe(id("a"), Some(object(5, "o")));
    assert!(live.remove(&id("a"), &object(6, "o")), "its label was taken off");
    assert!(
        live.observe(id("a"), Some(object(7, "o"))),
        "and put on again, the object being the same"
    );
}

#[test]
fn a_list_from_before_our_write_hides_it_only_briefly() {
    let mut live = Live::default();
    live.observe(id("a"), Some(object(7, "o")));
    live.observe(id("b"), Some(object(3, "o")));
    let lost = live.retain("", "ConfigMap", &BTreeSet::from([id("b")]));
    assert_eq!(lost, [id("a")]);
    assert!(live.observe(id("a"), Some(object(7, "o"))), "the watch brings it");
    assert_eq!(live.retain("apps", "Deployment", &BTreeSet::new()), []);
}

#[test]
fn a_version_is_no_identity() {
    let mut live = Live::default();
    live.observe(id("a"), Some(object(5, "o")));
    let mut other = id("a");
    other.version = "v2".into();
    assert!(live.get(&other).is_some());
}

#[test]
fn a_release_is_its_owners_objects_of_that_name() {
    let mut live = Live::default();
    live.observe(id("a"), Some(object(1, "o")));
    live.observe(id("b"), Some(object(2, "p")));
    live.observe(id("mainstay-r"), Some(object(3, "o")));
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
