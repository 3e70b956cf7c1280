//! Tests which labels keep a revision or tag in use, and compares the index with a newly built one.

use super::*;

fn labels(text: &str) -> Labels {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into())).collect()
}

fn namespace(index: &mut References, name: &str, labels_text: &str) -> Vec<String> {
    index.upsert(Referrer::Namespace {
        name,
        labels: &labels(labels_text),
    })
}

fn pod(index: &mut References, at: (&str, &str), labels_text: &str, annotations: &str) -> Vec<String> {
    index.upsert(Referrer::Pod {
        namespace: at.0,
        name: at.1,
        labels: &labels(labels_text),
        annotations: &labels(annotations),
        finished: false,
        terminating: false,
        workload: None,
    })
}

/// Checks the revision and the tag in use, given the labels of a namespace and the labels and annotations
/// of a pod.
fn check(space: &str, pod_labels: &str, annotations: &str, revision: &str, tag: &str) {
    let mut index = References::default();
    namespace(&mut index, "bookinfo", space);
    pod(&mut index, ("bookinfo", "some-pod"), pod_labels, annotations);
    for name in ["default", "my-rev"] {
        let row = format!("{name}: namespace {space:?}, pod {pod_labels:?}, annotations {annotations:?}");
        assert_eq!(index.uses_revision(name), name == revision, "revision {row}");
        assert_eq!(index.uses_tag(name), name == tag, "tag {row}");
        assert_eq!(
            index.referrers(name).is_empty(),
            name != revision,
            "referrers {row}"
        );
    }
}

#[test]
fn labels_select_the_revision_in_use() {
    const ENABLED: &str = "istio-injection=enabled";
    const DEFAULT: &str = "istio.io/rev=default";
    const NAMED: &str = "istio.io/rev=my-rev";
    const BOTH: &str = "istio-injection=enabled istio.io/rev=my-rev";
    const BOTH_DEFAULT: &str = "istio-injection=enabled istio.io/rev=default";
    const INJECT: &str = "sidecar.istio.io/inject=true";
    let rows = [
        // No labels.
        ("", "", ""),
        // Labels on the namespace only.
        (ENABLED, "", "default"),
        (DEFAULT, "", "default"),
        (NAMED, "", "my-rev"),
        (BOTH_DEFAULT, "", "default"),
        (BOTH, "", "default"),
        // Labels on the pod only.
        ("", DEFAULT, "default"),
        ("", NAMED, "my-rev"),
        ("", INJECT, "default"),
        ("", "sidecar.istio.io/inject=true istio.io/rev=my-rev", "my-rev"),
        ("", "sidecar.istio.io/inject=false istio.io/rev=my-rev", ""),
        ("", "sidecar.istio.io/inject=false", ""),
        // Labels on both. Those of the namespace override those of its pods.
        (NAMED, INJECT, "my-rev"),
        (ENABLED, DEFAULT, "default"),
        (ENABLED, NAMED, "default"),
        (DEFAULT, DEFAULT, "default"),
        (DEFAULT, NAMED, "default"),
        (NAMED, DEFAULT, "my-rev"),
        (NAMED, NAMED, "my-rev"),
        (BOTH_DEFAULT, DEFAULT, "default"),
        (BOTH_DEFAULT, NAMED, "default"),
        (BOTH, DEFAULT, "default"),
        (BOTH, NAMED, "default"),
        ("istio-injection=disabled", NAMED, "my-rev"),
        ("istio-injection=disabled istio.io/rev=my-rev", DEFAULT, "my-rev"),
    ];
    for (space, pod, used) in rows {
        check(space, pod, "", used, used);
    }
}

#[test]
fn a_running_proxy_keeps_its_revision_but_no_tag_in_use() {
    check("", "", "istio.io/rev=default", "default", "");
    check("", "", "istio.io/rev=my-rev", "my-rev", "");
    let mut index = References::default();
    namespace(&mut index, "ns", "istio.io/rev=prod");
    pod(
        &mut index,
        ("ns", "p"),
        "istio.io/rev=prod",
        "istio.io/rev=default-v1-29-1",
    );
    assert!(
        index.uses_tag("prod") && index.uses_revision("default-v1-29-1"),
        "label and annotation differ"
    );
    assert!(!index.uses_tag("default-v1-29-1"), "only labels use a tag");
}

#[test]
fn finished_pods_use_no_revision() {
    let mut index = References::default();
    pod(&mut index, ("ns", "p"), "istio.io/rev=a", "istio.io/rev=b");
    let changed = index.upsert(Referrer::Pod {
        namespace: "ns",
        name: "p",
        labels: &labels("istio.io/rev=a"),
        annotations: &labels("istio.io/rev=b"),
        finished: true,
        terminating: false,
        workload: None,
    });
    assert_eq!(changed, ["a", "b"]);
    assert_eq!(index, References::default());
}

#[test]
fn a_removed_label_updates_the_name_it_referred_to() {
    let mut index = References::default();
    assert_eq!(namespace(&mut index, "ns", "istio.io/rev=a"), ["a"]);
    assert_eq!(namespace(&mut index, "ns", "istio.io/rev=b"), ["a", "b"]);
    assert_eq!(namespace(&mut index, "ns", ""), ["b"]);
    assert_eq!(namespace(&mut index, "ns", ""), [""; 0]);
}

#[test]
fn an_event_that_changes_no_use_returns_no_names() {
    let mut index = References::default();
    assert_eq!(namespace(&mut index, "one", "istio.io/rev=a"), ["a"]);
    assert_eq!(namespace(&mut index, "two", "istio.io/rev=a"), [""; 0]);
    assert_eq!(pod(&mut index, ("one", "p"), "app=x", "istio.io/rev=a"), [""; 0]);
    assert_eq!(pod(&mut index, ("one", "p"), "app=y", "istio.io/rev=a"), [""; 0]);
    assert_eq!(namespace(&mut index, "one", ""), [""; 0]);
    // The last label was removed: the tag is unused, the revision still has a running proxy. The name is
    // returned because its use as a tag changed.
    assert_eq!(namespace(&mut index, "two", ""), ["a"]);
    assert!(index.uses_revision("a") && !index.uses_tag("a"));
    assert_eq!(index.remove(&ReferrerKey::Pod("one".into(), "p".into())), ["a"]);
    assert_eq!(index, References::default());
}

#[test]
fn pod_labels_apply_once_the_namespace_label_is_removed() {
    let mut index = References::default();
    namespace(&mut index, "ns", "istio.io/rev=a");
    assert_eq!(pod(&mut index, ("ns", "p"), "istio.io/rev=b", ""), [""; 0]);
    assert_eq!(namespace(&mut index, "ns", ""), ["a", "b"]);
    assert_eq!(
        index.referrers("b"),
        [(
            ReferrerKey::Pod("ns".into(), "p".into()),
            ReferenceCause::PodLabel
        )]
    );
    assert_eq!(
        namespace(&mut index, "ns", "istio-injection=enabled"),
        ["b", "default"]
    );
}

#[test]
fn a_tag_counts_as_a_referrer_of_its_revision() {
    let tag = |index: &mut References, revision| {
        index.upsert(Referrer::Tag {
            name: "prod",
            revision,
        })
    };
    let mut index = References::default();
    assert_eq!(tag(&mut index, "old"), ["old"]);
    assert!(index.uses_revision("old") && !index.uses_tag("old"));
    assert_eq!(
        index.referrers("old"),
        [(ReferrerKey::Tag("prod".into()), ReferenceCause::TagTarget)]
    );
    assert_eq!(tag(&mut index, "new"), ["new", "old"]);
    assert_eq!(tag(&mut index, ""), ["new"]);
    assert_eq!(index, References::default());
}

#[test]
fn referrers_are_counted_by_cause() {
    let mut index = References::default();
    namespace(&mut index, "one", "istio.io/rev=a");
    pod(&mut index, ("one", "p"), "", "istio.io/rev=a");
    pod(&mut index, ("two", "p"), "istio.io/rev=a", "istio.io/rev=a");
    pod(&mut index, ("two", "q"), "istio.io/rev=a", "");
    index.upsert(Referrer::Tag {
        name: "t",
        revision: "a",
    });
    let expected = Counts {
        tags: 1,
        namespaces: 1,
        labeled_pods: 2,
        running_pods: 2,
    };
    assert_eq!(index.counts("a"), expected);
    assert_eq!(index.counts("b"), Counts::default());
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn index_equals_a_rebuilt_index_after_random_events() {
    const LABELS: [&str; 7] = [
        "",
        "istio.io/rev=a",
        "istio.io/rev=b",
        "istio-injection=enabled",
        "sidecar.istio.io/inject=true",
        "sidecar.istio.io/inject=false istio.io/rev=a",
        "istio-injection=enabled istio.io/rev=a",
    ];
    for seed in 1..=200 {
        let mut random = Random(seed * 0x9E37_79B9);
        let random_labels = |random: &mut Random| LABELS[random.below(LABELS.len() as u64) as usize];
        let mut index = References::default();
        let mut spaces: BTreeMap<String, &str> = BTreeMap::new();
        let mut pods: BTreeMap<(String, String), (&str, &str)> = BTreeMap::new();
        for _ in 0..200 {
            let space = format!("ns{}", random.below(4));
            let name = format!("p{}", random.below(5));
            let before: Vec<_> = ["a", "b", "default"]
                .map(|n| (index.uses_revision(n), index.uses_tag(n)))
                .into();
            let changed = match random.below(5) {
                0 => {
                    spaces.insert(space.clone(), random_labels(&mut random));
                    namespace(&mut index, &space, spaces[&space])
                }
                1 => {
                    spaces.remove(&space);
                    index.remove(&ReferrerKey::Namespace(space))
                }
                2 => {
                    pods.remove(&(space.clone(), name.clone()));
                    index.remove(&ReferrerKey::Pod(space, name))
                }
                _ => {
                    let labels_text = (
                        random_labels(&mut random),
                        ["", "istio.io/rev=a", "istio.io/rev=b"][random.below(3) as usize],
                    );
                    pods.insert((space.clone(), name.clone()), labels_text);
                    pod(&mut index, (&space, &name), labels_text.0, labels_text.1)
                }
            };
            for (name, was) in ["a", "b", "default"].iter().zip(before) {
                let flipped = was != (index.uses_revision(name), index.uses_tag(name));
                assert_eq!(changed.iter().any(|n| n == name), flipped, "seed {seed}: {name}");
            }
        }
        let mut rebuilt = References::default();
        for ((space, name), labels_text) in &pods {
            pod(&mut rebuilt, (space, name), labels_text.0, labels_text.1);
        }
        for (space, labels_text) in &spaces {
            namespace(&mut rebuilt, space, labels_text);
        }
        assert_eq!(index, rebuilt, "seed {seed}");
    }
}
