//! What a watch has heard, shown again: takes every version of every object in order, gives what the moves broke.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{Movers, Scene};
use crate::support::history::Entry;

/// Each promise that was broken, once. What is not newer than `begin` was there before anybody looked; `moment` says when something was heard of,
/// which is never before it was written.
pub fn broken(entries: &[Entry], begin: u64, moment: impl Fn(Instant) -> Timestamp) -> BTreeSet<String> {
    let (mut movers, mut stage) = (Movers::default(), Stage::default());
    let (before, after) = entries.split_at(entries.partition_point(|entry| entry.version <= begin));
    for entry in before {
        stage.put(entry);
    }
    let mut broken = BTreeSet::new();
    if let Some(last) = before.last() {
        broken.extend(movers.look(&stage.scene(moment(last.at))));
    }
    for entry in after {
        if stage.put(entry) {
            broken.extend(movers.look(&stage.scene(moment(entry.at))));
        }
    }
    broken
}

type Objects = BTreeMap<String, Arc<Value>>;

/// What there is, by identity.
#[derive(Default)]
struct Stage {
    mesh: BTreeMap<&'static str, Objects>,
    apps: Objects,
    pods: Objects,
}

impl Stage {
    /// Takes a version in; gives whether it is of interest.
    fn put(&mut self, entry: &Entry) -> bool {
        let objects = match entry.kind {
            "Istio" | "IstioRevision" | "IstioRevisionTag" => self.mesh.entry(entry.kind).or_default(),
            // Control planes come and go on purpose.
            "Deployment" if entry.object["metadata"]["namespace"] != "istio-system" => &mut self.apps,
            "Pod" => &mut self.pods,
            _ => return false,
        };
        let identity = super::identity(&entry.object);
        if entry.gone {
            objects.remove(&identity);
        } else {
            objects.insert(identity, Arc::new(entry.object.clone()));
        }
        true
    }

    fn scene(&self, now: Timestamp) -> Scene {
        let mesh = self.mesh.iter();
        let mesh =
            mesh.flat_map(|(kind, objects)| objects.values().map(|object| (*kind, Arc::clone(object))));
        Scene {
            now,
            mesh: mesh.collect(),
            apps: self.apps.values().cloned().collect(),
            pods: self.pods.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "objects are made where they are used"
)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::support::history::{History, entry};
    use crate::support::made::merged;

    const BEGIN: u64 = 10;

    /// An Istio on its way, with more on top.
    fn istio(version: u64, extra: Value) -> Entry {
        let batched = json!({"batchSize": 1, "readinessTimeout": "1m"});
        let spec = json!({"updateStrategy": {"workloadMigration": {"batched": batched, "paused": true}}});
        let ready =
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let migration = json!({"targetRevision": "new", "state": "InProgress", "totalWorkloads": 3, "migratedWorkloads": 1,
            "batched": {"currentBatch": 1}});
        let status = json!({"observedGeneration": 2, "conditions": ready, "workloadMigration": migration});
        let object = json!({"metadata": {"uid": "istio", "name": "default", "generation": 2}, "spec": spec, "status": status});
        entry(version, "Istio", merged(object, extra))
    }

    /// A workload that is up, sent to the new revision at this second if there is one, with more on top.
    fn app(version: u64, name: &str, sent: Option<u8>, extra: Value) -> Entry {
        let mark = sent.map(|second| {
            json!({"revision": "new", "batch": 1, "startedAt": format!("2026-01-01T00:00:{second:02}Z")})
                .to_string()
        });
        let annotations = json!({super::super::MARK: mark});
        let counts = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        let metadata = json!({"uid": name, "namespace": "shop", "name": name, "generation": 1, "annotations": annotations});
        let object = json!({"metadata": metadata, "spec": {"replicas": 1}, "status": counts});
        entry(version, "Deployment", merged(object, extra))
    }

    fn pod(version: u64, extra: Value) -> Entry {
        let metadata = json!({"uid": "pod", "namespace": "shop", "name": "a-1", "labels": {"app": "a"}, "annotations": {"istio.io/rev": "old"}});
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        entry(
            version,
            "Pod",
            merged(json!({"metadata": metadata, "status": status}), extra),
        )
    }

    fn revision(version: u64, extra: Value) -> Entry {
        let object = json!({"metadata": {"uid": "old", "name": "old", "generation": 1}});
        entry(version, "IstioRevision", merged(object, extra))
    }

    /// What is said at half past, when these came after a beginning at which all was well. Whoever hears of the last one first must not be misled.
    fn check(after: Vec<Entry>, expected: &str) {
        let mut entries = vec![
            istio(1, json!({})),
            app(2, "a", None, json!({})),
            app(3, "b", None, json!({})),
            pod(4, json!({})),
            revision(5, json!({})),
        ];
        entries.extend(after);
        entries.reverse();
        let history = History::new(entries, BEGIN);
        let half_past: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let broken = history.broken_moves_at(|_| half_past);
        let said: Vec<&str> = broken
            .iter()
            .filter_map(|line| Some(line.split_once(':')?.0))
            .collect();
        assert_eq!(said.join(" "), expected, "{broken:?}");
    }

    fn deleting() -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    }

    fn busy() -> Value {
        json!({"metadata": {"generation": 2}})
    }

    #[test]
    fn more_than_a_batch_at_once() {
        check(
            vec![app(11, "a", Some(1), busy()), app(12, "b", Some(2), busy())],
            "BatchSize",
        );
        check(
            vec![
                app(11, "a", Some(1), busy()),
                app(12, "a", Some(1), json!({})),
                app(13, "b", Some(2), busy()),
            ],
            "",
        );
        let older = istio(
            11,
            json!({"spec": {"updateStrategy": {"workloadMigration": {"batched": {"readinessTimeout": "10s"}}}}}),
        );
        check(
            vec![
                older,
                app(12, "a", Some(1), busy()),
                app(13, "b", Some(25), busy()),
            ],
            "",
        );
    }

    #[test]
    fn too_few_pods() {
        check(vec![pod(11, deleting())], "NoRestartDuringRollout");
        check(vec![pod(11, json!({"gone": true}))], "NoRestartDuringRollout");
        let gone = app(11, "a", None, json!({"gone": true}));
        check(vec![gone, pod(12, json!({"gone": true}))], "");
    }

    #[test]
    fn sent_to_the_same_place_again() {
        check(
            vec![app(11, "a", Some(1), json!({})), app(12, "a", Some(2), json!({}))],
            "NoRepeatedMove",
        );
        check(
            vec![app(11, "a", Some(1), json!({})), app(12, "a", Some(1), json!({}))],
            "",
        );
    }

    #[test]
    fn counts_that_do_not_fit() {
        let told = |extra: Value| vec![istio(11, json!({"status": {"workloadMigration": extra}}))];
        check(told(json!({"migratedWorkloads": 2, "failedWorkloads": 1})), "");
        check(
            told(json!({"migratedWorkloads": 2, "failedWorkloads": 2})),
            "CompleteCounts",
        );
        check(told(json!({"state": "Completed"})), "CompleteCounts");
        check(told(json!({"migratedWorkloads": 0})), "MonotonicProgress");
        check(
            told(json!({"migratedWorkloads": 0, "targetRevision": "another"})),
            "",
        );
    }

    #[test]
    fn statuses_that_go_back() {
        check(
            vec![istio(11, json!({"status": {"observedGeneration": 3}}))],
            "ObservedGeneration",
        );
        check(
            vec![istio(11, json!({"status": {"observedGeneration": 1}}))],
            "ObservedGeneration",
        );
        let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:09Z"}]}});
        check(vec![istio(11, ready("True"))], "TransitionTime");
        check(vec![istio(11, ready("False"))], "");
    }

    #[test]
    fn a_control_plane_that_is_needed_goes() {
        check(vec![revision(11, deleting())], "NoDeleteInUse");
        let gone = app(11, "a", None, json!({"gone": true}));
        check(vec![gone, pod(12, deleting()), revision(13, deleting())], "");
    }

    #[test]
    fn a_batch_while_all_is_paused() {
        let opened = json!({"status": {"workloadMigration": {"batched": {"currentBatch": 2}}}});
        check(vec![istio(11, opened.clone())], "PauseStartsNothing");
        let resumed = json!({"spec": {"updateStrategy": {"workloadMigration": {"paused": false}}}});
        check(vec![istio(11, merged(resumed, opened))], "");
    }

    #[test]
    fn a_failure_that_stops_others_or_does_not() {
        let told = |version: u64, policy: &str, failed: u8, state: &str| {
            let spec = json!({"updateStrategy": {"workloadMigration": {"failurePolicy": policy}}});
            let status = json!({"workloadMigration": {"failedWorkloads": failed, "state": state}});
            istio(version, json!({"spec": spec, "status": status}))
        };
        check(vec![told(11, "ContinueOnError", 1, "Failed")], "FailurePolicy");
        check(vec![told(11, "ContinueOnError", 2, "Failed")], "");
        check(vec![told(11, "FailFast", 1, "Failed")], "");
        let sent = |version: u64, name: &str| app(version, name, Some(1), json!({}));
        let late = |failed: u8| {
            vec![
                sent(11, "a"),
                told(12, "FailFast", failed, "InProgress"),
                sent(13, "b"),
            ]
        };
        check(late(1), "FailurePolicy");
        check(late(0), "");
        check(
            vec![
                sent(11, "a"),
                sent(12, "b"),
                told(13, "FailFast", 1, "InProgress"),
            ],
            "",
        );
        let mended = vec![
            told(11, "FailFast", 1, "InProgress"),
            told(12, "FailFast", 0, "InProgress"),
            sent(13, "a"),
        ];
        check(mended, "");
    }
}
