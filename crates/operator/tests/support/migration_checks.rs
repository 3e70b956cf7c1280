//! Checks migration invariants in every state of a cluster, independently of the operator. The simulator
//! provides every state, and a real server every written version.

pub mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const MIGRATION_RECORD: &str = "sailoperator.io/migration";

/// Objects of a cluster at a point in time.
pub struct ClusterView {
    pub now: Timestamp,
    /// Objects of the mesh with their kind.
    pub mesh: Vec<(&'static str, Arc<Value>)>,
    /// Deployments of users.
    pub apps: Vec<Arc<Value>>,
    pub pods: Vec<Arc<Value>>,
}

impl ClusterView {
    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        let mesh = self.mesh.iter().filter(move |(own, _)| *own == kind);
        mesh.map(|(_, object)| object)
    }
}

/// State of the checks.
#[derive(Default)]
pub struct MigrationChecks {
    /// Number of pods that must stay ready, for each workload that has been available.
    floors: BTreeMap<String, i64>,
    /// Migration records of each workload and revision.
    records: BTreeMap<(String, String), BTreeSet<String>>,
    /// Reported number of workloads migrated to each revision.
    migrated: BTreeMap<String, i64>,
    /// Observed generations of statuses.
    generations: BTreeMap<String, i64>,
    /// Status and transition time of conditions.
    conditions: BTreeMap<String, (String, String)>,
    /// Current batch at the time the migration was paused.
    paused: Option<i64>,
    /// Target of a failed migration, and the workloads that were migrated to it before.
    failed: Option<(String, BTreeSet<String>)>,
}

impl MigrationChecks {
    /// Checks a state and returns the violations.
    pub fn check(&mut self, view: &ClusterView) -> Vec<String> {
        let istio = view.of_kind("Istio").last().cloned().unwrap_or_default();
        let mut violations = Vec::new();
        violations.extend(check_batch_size(view, &istio));
        violations.extend(self.check_availability(view));
        violations.extend(self.check_repeated_migrations(&view.apps));
        violations.extend(self.check_counts(&istio));
        violations.extend(self.check_observed_generations(view));
        violations.extend(self.check_transition_times(view));
        violations.extend(check_in_use(view));
        violations.extend(self.check_pause(&istio));
        violations.extend(self.check_failures(&istio));
        violations
    }

    /// Checks `NoRestartDuringRollout`: the number of ready pods of an available workload is not lower than
    /// its strategy allows.
    fn check_availability(&mut self, view: &ClusterView) -> Vec<String> {
        let mut violations = Vec::new();
        for app in &view.apps {
            let (name, space) = (&app["metadata"]["name"], &app["metadata"]["namespace"]);
            let ready = view
                .pods
                .iter()
                .filter(|pod| {
                    pod["metadata"]["namespace"] == *space && pod["metadata"]["labels"]["app"] == *name
                })
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null() && is_ready(pod))
                .count();
            let (ready, desired) = (
                i64::try_from(ready).unwrap_or(0),
                app["spec"]["replicas"].as_i64().unwrap_or(1),
            );
            let key = namespaced_name(app);
            // The default of maxUnavailable is 25 %, rounded down.
            if ready >= desired {
                self.floors.insert(key, desired - desired / 4);
            } else if let Some(floor) = self.floors.get(&key).filter(|floor| ready < **floor) {
                violations.push(format!(
                    "NoRestartDuringRollout: {ready} of {desired} pods of {key} are ready, not {floor}"
                ));
            }
        }
        violations
    }

    /// Checks `NoRepeatedMove`: no workload is migrated to the same revision twice.
    fn check_repeated_migrations(&mut self, apps: &[Arc<Value>]) -> Vec<String> {
        let mut violations = Vec::new();
        for app in apps {
            let Some((record, text)) = migration_record(app) else {
                continue;
            };
            let revision = record["revision"].as_str().unwrap_or_default().to_owned();
            let records = self.records.entry((namespaced_name(app), revision)).or_default();
            records.insert(text);
            if records.len() > 1 {
                violations.push(format!(
                    "NoRepeatedMove: {} is migrated twice: {records:?}",
                    namespaced_name(app)
                ));
            }
        }
        violations
    }

    /// Checks `CompleteCounts` and `MonotonicProgress`: counts are consistent, and the number of migrated
    /// workloads never decreases.
    fn check_counts(&mut self, istio: &Value) -> Vec<String> {
        let status = &istio["status"]["workloadMigration"];
        let number = |key: &str| status[key].as_i64().unwrap_or(0);
        let [total, moved, failed, skipped] = [
            "totalWorkloads",
            "migratedWorkloads",
            "failedWorkloads",
            "skippedWorkloads",
        ]
        .map(number);
        let mut violations = Vec::new();
        let fits =
            [moved, failed, skipped].iter().all(|part| *part >= 0) && moved + failed + skipped <= total;
        if !fits || (status["state"] == "Completed" && moved + skipped != total) {
            violations.push(format!("CompleteCounts: {status}"));
        }
        let target = status["targetRevision"].as_str().unwrap_or_default().to_owned();
        let before = self.migrated.insert(target, moved).unwrap_or(0);
        if moved < before {
            violations.push(format!("MonotonicProgress: {moved} migrated after {before}"));
        }
        violations
    }

    /// Checks `FailurePolicy`: with `FailFast`, no workload is migrated after a failure. Otherwise, a
    /// failure does not stop other workloads.
    fn check_failures(&mut self, istio: &Value) -> Vec<String> {
        let status = &istio["status"]["workloadMigration"];
        let number = |key: &str| status[key].as_i64().unwrap_or(0);
        let failed = number("failedWorkloads");
        if istio["spec"]["updateStrategy"]["workloadMigration"]["failurePolicy"] != "FailFast" {
            self.failed = None;
            let ended = number("migratedWorkloads") + failed + number("skippedWorkloads");
            let left = status["state"] == "Failed" && ended < number("totalWorkloads");
            return Vec::from_iter(left.then(|| format!("FailurePolicy: a failure stops others: {status}")));
        }
        let target = status["targetRevision"].as_str().unwrap_or_default();
        let migrated = self.records.keys().filter(|(_, revision)| revision == target);
        let migrated: BTreeSet<String> = migrated.map(|(name, _)| name.clone()).collect();
        let mut violations = Vec::new();
        if let Some((revision, before)) = &self.failed
            && revision == target
        {
            let late = migrated.difference(before);
            violations.extend(late.map(|name| format!("FailurePolicy: {name} is migrated after a failure")));
        }
        self.failed = (failed > 0).then(|| (target.to_owned(), migrated));
        violations
    }

    /// Checks `ObservedGeneration`: the observed generation exists and never decreases.
    fn check_observed_generations(&mut self, view: &ClusterView) -> Vec<String> {
        let mut violations = Vec::new();
        for (kind, object) in &view.mesh {
            let observed = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
            let before = self.generations.insert(object_uid(object), observed).unwrap_or(0);
            if observed > generation || observed < before {
                let name = &object["metadata"]["name"];
                violations.push(format!(
                    "ObservedGeneration: {kind} {name} of generation {generation} reports {observed} after {before}"
                ));
            }
        }
        violations
    }

    /// Checks `TransitionTime`: the transition time of a condition changes only with its status.
    fn check_transition_times(&mut self, view: &ClusterView) -> Vec<String> {
        let mut violations = Vec::new();
        for (kind, object) in &view.mesh {
            for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
                let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
                let key = format!("{} {}", object_uid(object), text("type"));
                let now = (text("status"), text("lastTransitionTime"));
                let old = self.conditions.insert(key, now.clone());
                let same = old.filter(|(status, time)| *status == now.0 && *time != now.1);
                if let Some((_, time)) = same {
                    let (name, condition_type) = (&object["metadata"]["name"], text("type"));
                    violations.push(format!(
                        "TransitionTime: {kind} {name} {condition_type}: {time} became {} without a change",
                        now.1
                    ));
                }
            }
        }
        violations
    }

    /// Checks `PauseStartsNothing`: no batch starts while the migration is paused.
    fn check_pause(&mut self, istio: &Value) -> Vec<String> {
        let batch = istio["status"]["workloadMigration"]["batched"]["currentBatch"]
            .as_i64()
            .unwrap_or(0);
        if istio["spec"]["updateStrategy"]["workloadMigration"]["paused"] != true {
            self.paused = None;
            return Vec::new();
        }
        let before = *self.paused.get_or_insert(batch);
        let opened = batch > before;
        opened
            .then(|| format!("PauseStartsNothing: batch {batch} starts after {before} while paused"))
            .into_iter()
            .collect()
    }
}

/// Checks `BatchSize`: the number of workloads that migrate at the same time does not exceed the batch
/// size.
fn check_batch_size(view: &ClusterView, istio: &Value) -> Option<String> {
    let batched = &istio["spec"]["updateStrategy"]["workloadMigration"]["batched"];
    let most = usize::try_from(batched["batchSize"].as_i64().unwrap_or(1)).unwrap_or(1);
    let timeout = batched["readinessTimeout"].as_str();
    let timeout = timeout.and_then(|text| text.parse::<SignedDuration>().ok());
    let migrating: Vec<String> = view
        .apps
        .iter()
        .filter(|app| is_within_timeout(app, timeout, view.now) && !is_complete(app))
        .map(|app| namespaced_name(app))
        .collect();
    (migrating.len() > most).then(|| format!("BatchSize: {} migrate at once", migrating.join(", ")))
}

/// Whether a workload was restarted by a migration and is within its readiness timeout.
fn is_within_timeout(app: &Value, timeout: Option<SignedDuration>, now: Timestamp) -> bool {
    let started =
        migration_record(app).and_then(|(record, _)| record["startedAt"].as_str()?.parse::<Timestamp>().ok());
    let Some(started) = started else { return false };
    let deadline = timeout.and_then(|timeout| started.checked_add(timeout).ok());
    deadline.is_none_or(|deadline| deadline > now)
}

/// Checks `NoDeleteInUse`: a revision is not deleted while a pod runs its proxy.
fn check_in_use(view: &ClusterView) -> Vec<String> {
    let is_deleting = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    let deleting: BTreeSet<&str> = view
        .of_kind("IstioRevision")
        .filter(|revision| is_deleting(revision))
        .filter_map(|revision| revision["metadata"]["name"].as_str())
        .collect();
    if deleting.is_empty() {
        return Vec::new();
    }
    let running = view.pods.iter().filter(|pod| !is_deleting(pod));
    let by = running.filter_map(|pod| pod["metadata"]["annotations"]["istio.io/rev"].as_str());
    by.filter(|revision| deleting.contains(revision))
        .map(|revision| format!("NoDeleteInUse: {revision} is deleted while a pod runs its proxy"))
        .collect()
}

fn object_uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn namespaced_name(app: &Value) -> String {
    let text = |key: &str| app["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn migration_record(app: &Value) -> Option<(Value, String)> {
    let text = app["metadata"]["annotations"][MIGRATION_RECORD].as_str()?;
    Some((serde_json::from_str(text).ok()?, text.to_owned()))
}

fn is_complete(app: &Value) -> bool {
    let (status, desired) = (&app["status"], app["spec"]["replicas"].as_i64().unwrap_or(1));
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    let is_observed = status["observedGeneration"] == app["metadata"]["generation"];
    let settled = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Progressing" && one["reason"] == "NewReplicaSetAvailable");
    is_observed && (settled || counts.iter().all(|key| status[key].as_i64() == Some(desired)))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}
