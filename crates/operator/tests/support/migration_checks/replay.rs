//! Replays every version of every object and returns the violations of migration invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{ClusterView, MigrationChecks};
use crate::support::history::Entry;

/// Returns each violation once. Versions up to `begin` existed before the recording. `time` converts the
/// time of an observation, which is not before the time of the write.
pub fn violations(entries: &[Entry], begin: u64, time: impl Fn(Instant) -> Timestamp) -> BTreeSet<String> {
    let (mut checks, mut state) = (MigrationChecks::default(), ReplayState::default());
    let (before, after) = entries.split_at(entries.partition_point(|entry| entry.version <= begin));
    for entry in before {
        state.apply(entry);
    }
    let mut violations = BTreeSet::new();
    if let Some(last) = before.last() {
        violations.extend(checks.check(&state.view(time(last.at))));
    }
    for entry in after {
        if state.apply(entry) {
            violations.extend(checks.check(&state.view(time(entry.at))));
        }
    }
    violations
}

type Objects = BTreeMap<String, Arc<Value>>;

/// Current objects by UID.
#[derive(Default)]
struct ReplayState {
    mesh: BTreeMap<&'static str, Objects>,
    apps: Objects,
    pods: Objects,
}

impl ReplayState {
    /// Applies a version and returns whether it is relevant.
    fn apply(&mut self, entry: &Entry) -> bool {
        let objects = match entry.kind {
            "Istio" | "IstioRevision" | "IstioRevisionTag" => self.mesh.entry(entry.kind).or_default(),
            // Control planes are ignored, because upgrades replace them.
            "Deployment" if entry.object["metadata"]["namespace"] != "istio-system" => &mut self.apps,
            "Pod" => &mut self.pods,
            _ => return false,
        };
        let identity = super::object_uid(&entry.object);
        if entry.gone {
            objects.remove(&identity);
        } else {
            objects.insert(identity, Arc::new(entry.object.clone()));
        }
        true
    }

    fn view(&self, now: Timestamp) -> ClusterView {
        let mesh = self.mesh.iter();
        let mesh =
            mesh.flat_map(|(kind, objects)| objects.values().map(|object| (*kind, Arc::clone(object))));
        ClusterView {
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

    use crate::support::fixtures::merged;
    use crate::support::history::{History, entry};

    const BEGIN: u64 = 10;

    /// Returns a migrating Istio. `extra` is merged into it.
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

    /// Returns an available workload. `migrated` is the second of its migration to the new revision, and
    /// `extra` is merged into it.
    fn app(version: u64, name: &str, migrated: Option<u8>, extra: Value) -> Entry {
        let record = migrated.map(|second| {
            json!({"revision": "new", "batch": 1, "startedAt": format!("2026-01-01T00:00:{second:02}Z")})
                .to_string()
        });
        let annotations = json!({super::super::MIGRATION_RECORD: record});
        let counts = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        let metadata = json!({"uid": name, "namespace": "apps", "name": name, "generation": 1, "annotations": annotations});
        let object = json!({"metadata": metadata, "spec": {"replicas": 1}, "status": counts});
        entry(version, "Deployment", merged(object, extra))
    }

    fn pod(version: u64, extra: Value) -> Entry {
        let metadata = json!({"uid": "pod", "namespace": "apps", "name": "a-1", "labels": {"app": "a"}, "annotations": {"istio.io/rev": "old"}});
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

    /// Checks the violations at 00:00:30 after these entries are added to a state without violations. The
    /// entries are passed in reverse order, because the order of observation must not matter.
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
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let violations = history.migration_violations_at(|_| now);
        let names: Vec<&str> = violations
            .iter()
            .filter_map(|line| Some(line.split_once(':')?.0))
            .collect();
        assert_eq!(names.join(" "), expected, "{violations:?}");
    }

    fn deleting() -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    }

    fn rolling_out() -> Value {
        json!({"metadata": {"generation": 2}})
    }

    #[test]
    fn more_workloads_than_the_batch_size() {
        check(
            vec![
                app(11, "a", Some(1), rolling_out()),
                app(12, "b", Some(2), rolling_out()),
            ],
            "BatchSize",
        );
        check(
            vec![
                app(11, "a", Some(1), rolling_out()),
                app(12, "a", Some(1), json!({})),
                app(13, "b", Some(2), rolling_out()),
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
                app(12, "a", Some(1), rolling_out()),
                app(13, "b", Some(25), rolling_out()),
            ],
            "",
        );
    }

    #[test]
    fn too_few_ready_pods() {
        check(vec![pod(11, deleting())], "NoRestartDuringRollout");
        check(vec![pod(11, json!({"gone": true}))], "NoRestartDuringRollout");
        let gone = app(11, "a", None, json!({"gone": true}));
        check(vec![gone, pod(12, json!({"gone": true}))], "");
    }

    #[test]
    fn migrated_to_the_same_revision_again() {
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
    fn inconsistent_counts() {
        let status = |extra: Value| vec![istio(11, json!({"status": {"workloadMigration": extra}}))];
        check(status(json!({"migratedWorkloads": 2, "failedWorkloads": 1})), "");
        check(
            status(json!({"migratedWorkloads": 2, "failedWorkloads": 2})),
            "CompleteCounts",
        );
        check(status(json!({"state": "Completed"})), "CompleteCounts");
        check(status(json!({"migratedWorkloads": 0})), "MonotonicProgress");
        check(
            status(json!({"migratedWorkloads": 0, "targetRevision": "another"})),
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
    fn a_revision_in_use_is_deleted() {
        check(vec![revision(11, deleting())], "NoDeleteInUse");
        let gone = app(11, "a", None, json!({"gone": true}));
        check(vec![gone, pod(12, deleting()), revision(13, deleting())], "");
    }

    #[test]
    fn a_batch_starts_while_paused() {
        let opened = json!({"status": {"workloadMigration": {"batched": {"currentBatch": 2}}}});
        check(vec![istio(11, opened.clone())], "PauseStartsNothing");
        let resumed = json!({"spec": {"updateStrategy": {"workloadMigration": {"paused": false}}}});
        check(vec![istio(11, merged(resumed, opened))], "");
    }

    #[test]
    fn failure_policies() {
        let failing = |version: u64, policy: &str, failed: u8, state: &str| {
            let spec = json!({"updateStrategy": {"workloadMigration": {"failurePolicy": policy}}});
            let status = json!({"workloadMigration": {"failedWorkloads": failed, "state": state}});
            istio(version, json!({"spec": spec, "status": status}))
        };
        check(vec![failing(11, "ContinueOnError", 1, "Failed")], "FailurePolicy");
        check(vec![failing(11, "ContinueOnError", 2, "Failed")], "");
        check(vec![failing(11, "FailFast", 1, "Failed")], "");
        let migrated = |version: u64, name: &str| app(version, name, Some(1), json!({}));
        let late = |failed: u8| {
            vec![
                migrated(11, "a"),
                failing(12, "FailFast", failed, "InProgress"),
                migrated(13, "b"),
            ]
        };
        check(late(1), "FailurePolicy");
        check(late(0), "");
        check(
            vec![
                migrated(11, "a"),
                migrated(12, "b"),
                failing(13, "FailFast", 1, "InProgress"),
            ],
            "",
        );
        let recovered = vec![
            failing(11, "FailFast", 1, "InProgress"),
            failing(12, "FailFast", 0, "InProgress"),
            migrated(13, "a"),
        ];
        check(recovered, "");
    }
}
