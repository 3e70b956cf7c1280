//! Checks that a rolling update stays within its bounds after every write, with random strategies.

use mainstay_sim::script::Script;
use mainstay_sim::store::{Event, EventKind};
use mainstay_sim::{Random, State, tree};
use serde_json::{Value, json};

use crate::steps::{cluster, deploy, get, seconds, set_image};
use crate::transcript::is_ready;

#[test]
fn a_rolling_update_stays_within_its_bounds() {
    let mut random = Random::new(42);
    for round in 0..40 {
        let replicas = i64::try_from(random.below(12)).unwrap() + 1;
        let draw = |random: &mut Random| {
            let number = random.below(6);
            if random.below(2) == 0 {
                json!(number)
            } else {
                json!(format!("{}%", number * 20))
            }
        };
        let (surge, mut unavailable) = (draw(&mut random), draw(&mut random));
        if surge == 0 || surge == "0%" {
            unavailable = json!(1);
        }
        let cluster = cluster(round);
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let delay = random.below(5);
        cluster.with(|state| state.scripts.set_default(Script::ready_after(seconds(delay))));
        deploy(
            &cluster,
            &json!({"replicas": replicas, "strategy": strategy, "minReadySeconds": random.below(3)}),
        );
        cluster.advance(seconds(30));
        let before = cluster.with(|state| state.store.version());
        set_image(&cluster, "v2");
        cluster.advance(seconds(400));
        let (surge, unavailable) = mainstay_sim::controllers::int_or_percent::resolve_fenceposts(
            Some(&surge),
            Some(&unavailable),
            replicas,
        );
        let bounds = Bounds {
            max: replicas + surge,
            min: replicas - unavailable.min(replicas),
        };
        cluster.with(|state| bounds.check(state, before, &strategy));
        let web = get(&cluster, "deployments.apps", "web");
        assert_eq!(web["status"]["updatedReplicas"], replicas, "{strategy}");
        assert_eq!(web["status"]["replicas"], replicas, "{strategy}");
    }
}

/// Allowed number of pods during a rollout.
struct Bounds {
    max: i64,
    min: i64,
}

impl Bounds {
    /// Checks every write of a pod or `ReplicaSet` after `start`.
    fn check(&self, state: &State, start: u64, strategy: &Value) {
        let Self { max, min } = *self;
        let mut sets = std::collections::BTreeMap::new();
        let mut pods = std::collections::BTreeMap::new();
        let mut events: Vec<(bool, &Event)> = Vec::new();
        for (is_set, table) in [(true, "replicasets.apps"), (false, "pods")] {
            let history = state.store.history(table).unwrap().after(0).unwrap();
            events.extend(history.map(|event| (is_set, event)));
        }
        events.sort_by_key(|(_, event)| event.version);
        for (is_set, event) in events {
            let (key, value) = (event.object.key(), event.object.value());
            let deleted = event.kind == EventKind::Deleted;
            let alive = !deleted && value["metadata"]["deletionTimestamp"].is_null();
            let number = |path: &[&str]| {
                if deleted {
                    0
                } else {
                    tree::int(&value, path).unwrap_or(0)
                }
            };
            if is_set {
                let (desired, available) = (
                    number(&["spec", "replicas"]),
                    number(&["status", "availableReplicas"]),
                );
                sets.insert(key, (desired, available));
            } else {
                pods.insert(key, (alive && is_ready(&value), alive));
            }
            if event.version <= start {
                continue;
            }
            let desired: i64 = sets.values().map(|(desired, _)| desired).sum();
            let available: i64 = sets.values().map(|(_, available)| available).sum();
            let ready = pods.values().filter(|(ready, _)| *ready).count();
            let alive = pods.values().filter(|(_, alive)| *alive).count();
            assert!(desired <= max, "{desired} desired, {max} allowed, {strategy}");
            assert!(
                i64::try_from(alive).unwrap() <= max,
                "{alive} pods, {max} allowed, {strategy}"
            );
            assert!(
                available >= min,
                "{available} available, {min} needed, {strategy}"
            );
            assert!(
                i64::try_from(ready).unwrap() >= min,
                "{ready} ready, {min} needed, {strategy}"
            );
        }
    }
}
