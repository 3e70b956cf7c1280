//! Tests properties of division, placement, weights and names with random cases.

#![allow(clippy::print_stdout, reason = "counts for proofs")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::delivery::{
    AppRevision, ApplicationDeployment, ApplicationDeploymentSpec, ApplicationRevision, FINALIZER, Placement,
    Provider, RenderedComponent, RevisionSpec,
};
use mainstay_api::{ConditionType, Reason};
use mainstay_rollout::model::{Model, ModelCluster};
use mainstay_rollout::{
    Backend, Candidate, IntOrPercent, Selector, Share, divide, effective_weights, object_name, plan, select,
};
use mainstay_testkit::{Random, case_count};
use serde_json::json;

const CASES: usize = 10_000;

/// Checks a property with random cases. `property` is the seed.
fn each_case(property: u64, mut check: impl FnMut(&mut Random)) {
    let mut random = Random::new(property);
    let cases = case_count(CASES);
    for _ in 0..cases {
        check(&mut random);
    }
    println!("rollout property P{property}: {cases} cases");
}

fn shares(random: &mut Random) -> Vec<Share> {
    let count = 1 + random.below(6);
    (0..count)
        .map(|index| Share {
            min: if random.chance(1, 4) {
                random.below(3) as u32
            } else {
                0
            },
            max: random.chance(1, 4).then(|| random.below(12) as u32),
            ..Share::new(format!("c{index}"), random.below(200) as u32)
        })
        .collect()
}

/// P1: the sum of a division equals the total as far as limits allow, and no share decreases if the total
/// increases.
#[test]
fn division_is_complete_and_monotone() {
    each_case(1, |random| {
        let shares = shares(random);
        let total = random.below(60) as u32;
        let (now, next) = (divide(total, &shares), divide(total + 1, &shares));
        let sum: u32 = now.iter().sum();
        assert!(sum <= total);
        let is_full =
            |(share, count): (&Share, &u32)| share.weight == 0 || share.max.is_some_and(|max| *count >= max);
        assert!(
            sum == total || shares.iter().zip(&now).all(is_full),
            "{shares:?} {total} {now:?}"
        );
        assert!(
            now.iter().zip(&next).all(|(now, next)| now <= next),
            "{shares:?} {now:?} {next:?}"
        );
    });
}

/// P2: cumulative steps never decrease, and the last one reaches the target.
#[test]
fn steps_are_monotone_and_reach_the_target() {
    each_case(2, |random| {
        let total = random.below(200) as u32;
        let (low, high) = (random.below(101) as u32, random.below(101) as u32);
        let step = |percent| IntOrPercent::Percent(percent).resolve_step(total);
        assert!(step(low.min(high)) <= step(low.max(high)));
        assert_eq!(step(100), total);
    });
}

/// P4: the sum of weights is 100, and an unavailable revision has weight 0.
#[test]
fn weights_sum_to_100_over_available_revisions() {
    each_case(4, |random| {
        let backends: Vec<Backend> = (0..=random.below(5))
            .map(|index| Backend {
                revision: format!("v{index}"),
                weight: random.below(101) as u32,
                available: random.below(4) as u32,
            })
            .collect();
        let usable = |backend: &Backend| backend.available > 0 && backend.weight > 0;
        match effective_weights(&backends) {
            Ok(weights) => {
                assert_eq!(weights.iter().sum::<u32>(), 100);
                let wrong = backends
                    .iter()
                    .zip(&weights)
                    .find(|(backend, weight)| **weight > 0 && !usable(backend));
                assert_eq!(wrong, None);
            }
            Err(_) => assert!(!backends.iter().any(usable)),
        }
    });
}

/// P7: adding or removing a cluster moves only the keys that the cluster gains or loses.
#[test]
fn rendezvous_hashing_moves_only_necessary_keys() {
    let candidate = |index: usize| Candidate {
        name: format!("cluster-{index}"),
        labels: BTreeMap::new(),
        is_schedulable: true,
    };
    let selector = Selector {
        count: Some(1),
        ..Selector::default()
    };
    let mut moved = 0;
    let candidates: Vec<Candidate> = (0..10).map(candidate).collect();
    each_case(7, |random| {
        let key = format!("ns/app-{}/a=b/0", random.next_u64());
        let choose =
            |candidates: &[Candidate]| select(&key, &selector, candidates, &BTreeSet::new()).unwrap();
        let before = choose(&candidates[..9]);
        let after = choose(&candidates);
        assert!(before == after || after == ["cluster-9"], "{before:?} {after:?}");
        moved += usize::from(before != after);
    });
    let share = moved as f64 / case_count(CASES) as f64;
    assert!(
        (0.08..0.12).contains(&share),
        "{share} of the keys moved to one of ten clusters"
    );
}

/// Returns a name of segments joined with dashes.
fn name(random: &mut Random, segments: usize) -> String {
    let segment = |random: &mut Random| -> String {
        let length = 1 + random.below(8);
        (0..length).map(|_| *random.pick(&['a', 'b', '0', '9'])).collect()
    };
    let count = 1 + random.below(segments);
    let segments: Vec<String> = (0..count).map(|_| segment(random)).collect();
    format!("a{}", segments.join("-"))
}

/// A revision and a component.
type Pair = (String, String);

/// Returns another pair. In half of the cases, joined with a dash it equals `pair`.
fn other_pair(random: &mut Random, pair: &Pair) -> Pair {
    if random.chance(1, 2) {
        return (name(random, 2), name(random, 2));
    }
    let joined = format!("{}-{}", pair.0, pair.1);
    let dashes: Vec<usize> = joined.match_indices('-').map(|(at, _)| at).collect();
    let (revision, component) = joined.split_at(*random.pick(&dashes));
    (revision.to_owned(), component.trim_start_matches('-').to_owned())
}

/// Whether the planner reports that objects of these components have the same name.
fn reports_conflict(pairs: [&Pair; 2]) -> bool {
    let mut components: BTreeMap<&str, Vec<RenderedComponent>> = BTreeMap::new();
    for (revision, component) in pairs {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "main"}});
        let component = RenderedComponent {
            name: component.clone(),
            manifests: vec![manifest],
        };
        components.entry(revision).or_default().push(component);
    }
    let placed = |revision: &&str| AppRevision {
        revision_name: (*revision).to_owned(),
        placement: vec![Placement::default()],
    };
    let spec = ApplicationDeploymentSpec {
        app_revisions: components.keys().map(placed).collect(),
        ..ApplicationDeploymentSpec::default()
    };
    let mut deployment = ApplicationDeployment::new("default", "shop", spec);
    deployment.metadata.finalizers = vec![FINALIZER.to_owned()];
    let mut model = Model::new(Timestamp::UNIX_EPOCH, deployment);
    model
        .clusters
        .insert(String::new(), ModelCluster::new(Provider::Istio));
    for (name, components) in components {
        let spec = RevisionSpec {
            components,
            ..RevisionSpec::default()
        };
        let revision = Arc::new(ApplicationRevision::new("default", name, spec));
        model.revisions.insert(name.to_owned(), revision);
    }
    let planned = plan(&model.snapshot());
    planned.status.conditions.get(&ConditionType::Ready).reason == Reason::NameConflict
}

/// P10: names are valid DNS labels of at most 63 bytes. Two components have different names, or the conflict
/// is reported.
#[test]
fn names_are_valid_and_distinct() {
    let mut conflicts = 0;
    each_case(10, |random| {
        let pair = (name(random, 8), name(random, 4));
        let own = object_name(&pair.0, &pair.1);
        assert!(own.len() <= 63 && !own.ends_with('-'));
        assert!(
            own.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert_ne!(own, object_name(&pair.0, &format!("{}0", pair.1)));
        let other = other_pair(random, &pair);
        if other == pair {
            return;
        }
        let is_equal = own == object_name(&other.0, &other.1);
        assert_eq!(reports_conflict([&pair, &other]), is_equal, "{pair:?} {other:?}");
        conflicts += usize::from(is_equal);
    });
    assert!(conflicts * 5 > case_count(CASES), "only {conflicts} conflicts");
}
