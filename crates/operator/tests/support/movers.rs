//! Whether workloads are moved as promised: takes each scene a cluster goes through, notes what must never be so. It looks at the cluster alone, not at
//! what the operator believes of it; the simulator shows it every state, a real server what was written, version by version.

pub mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

const MARK: &str = "sailoperator.io/migration";

/// What there is at a moment.
pub struct Scene {
    pub now: Timestamp,
    /// Objects of the mesh, each with its kind.
    pub mesh: Vec<(&'static str, Arc<Value>)>,
    /// Deployments of others.
    pub apps: Vec<Arc<Value>>,
    pub pods: Vec<Arc<Value>>,
}

impl Scene {
    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        let mesh = self.mesh.iter().filter(move |(of, _)| *of == kind);
        mesh.map(|(_, object)| object)
    }
}

/// What was seen so far.
#[derive(Default)]
pub struct Movers {
    /// Workloads that were up once, and how many of their pods must stay.
    floors: BTreeMap<String, i64>,
    /// The moments at which a workload was sent to a revision.
    sent: BTreeMap<(String, String), BTreeSet<String>>,
    /// How many were moved to a revision, as far as was told.
    moved: BTreeMap<String, i64>,
    /// What statuses were about.
    generations: BTreeMap<String, i64>,
    /// Status and moment of conditions.
    conditions: BTreeMap<String, (String, String)>,
    /// The batch that was open when all was paused.
    paused: Option<i64>,
    /// The revision on the way to which a failure was told that ends it, and who had been sent there.
    ended: Option<(String, BTreeSet<String>)>,
}

impl Movers {
    /// Looks at a scene; gives what is wrong in it.
    pub fn look(&mut self, scene: &Scene) -> Vec<String> {
        let istio = scene.of("Istio").last().cloned().unwrap_or_default();
        let mut wrong = Vec::new();
        wrong.extend(crowd(scene, &istio));
        wrong.extend(self.available(scene));
        wrong.extend(self.sent_twice(&scene.apps));
        wrong.extend(self.counts(&istio));
        wrong.extend(self.statuses(scene));
        wrong.extend(self.moments(scene));
        wrong.extend(in_use(scene));
        wrong.extend(self.pause(&istio));
        wrong.extend(self.failures(&istio));
        wrong
    }

    /// NoRestartDuringRollout: of a workload that was up, no more pods are missing than it allows itself.
    fn available(&mut self, scene: &Scene) -> Vec<String> {
        let mut wrong = Vec::new();
        for app in &scene.apps {
            let (name, space) = (&app["metadata"]["name"], &app["metadata"]["namespace"]);
            let ready = scene
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
            let key = name_of(app);
            // A quarter, rounded down, unless it says otherwise.
            if ready >= desired {
                self.floors.insert(key, desired - desired / 4);
            } else if let Some(floor) = self.floors.get(&key).filter(|floor| ready < **floor) {
                wrong.push(format!(
                    "NoRestartDuringRollout: {ready} of {desired} pods of {key} are ready, not {floor}"
                ));
            }
        }
        wrong
    }

    /// NoRepeatedMove: nothing is sent to the same revision twice.
    fn sent_twice(&mut self, apps: &[Arc<Value>]) -> Vec<String> {
        let mut wrong = Vec::new();
        for app in apps {
            let Some((mark, text)) = mark(app) else { continue };
            let revision = mark["revision"].as_str().unwrap_or_default().to_owned();
            let marks = self.sent.entry((name_of(app), revision)).or_default();
            marks.insert(text);
            if marks.len() > 1 {
                wrong.push(format!(
                    "NoRepeatedMove: {} is sent twice: {marks:?}",
                    name_of(app)
                ));
            }
        }
        wrong
    }

    /// CompleteCounts and MonotonicProgress: counts fit together, and what was moved stays counted.
    fn counts(&mut self, istio: &Value) -> Vec<String> {
        let status = &istio["status"]["workloadMigration"];
        let number = |key: &str| status[key].as_i64().unwrap_or(0);
        let [total, moved, failed, skipped] = [
            "totalWorkloads",
            "migratedWorkloads",
            "failedWorkloads",
            "skippedWorkloads",
        ]
        .map(number);
        let mut wrong = Vec::new();
        let fits =
            [moved, failed, skipped].iter().all(|part| *part >= 0) && moved + failed + skipped <= total;
        if !fits || (status["state"] == "Completed" && moved + skipped != total) {
            wrong.push(format!("CompleteCounts: {status}"));
        }
        let target = status["targetRevision"].as_str().unwrap_or_default().to_owned();
        let before = self.moved.insert(target, moved).unwrap_or(0);
        if moved < before {
            wrong.push(format!("MonotonicProgress: {moved} after {before} were moved"));
        }
        wrong
    }

    /// FailurePolicy: under `FailFast` nobody is sent after a failure was told; otherwise a failure stops nobody.
    fn failures(&mut self, istio: &Value) -> Vec<String> {
        let status = &istio["status"]["workloadMigration"];
        let number = |key: &str| status[key].as_i64().unwrap_or(0);
        let failed = number("failedWorkloads");
        if istio["spec"]["updateStrategy"]["workloadMigration"]["failurePolicy"] != "FailFast" {
            self.ended = None;
            let ended = number("migratedWorkloads") + failed + number("skippedWorkloads");
            let left = status["state"] == "Failed" && ended < number("totalWorkloads");
            return Vec::from_iter(left.then(|| format!("FailurePolicy: a failure stops others: {status}")));
        }
        let target = status["targetRevision"].as_str().unwrap_or_default();
        let sent = self.sent.keys().filter(|(_, revision)| revision == target);
        let sent: BTreeSet<String> = sent.map(|(name, _)| name.clone()).collect();
        let mut wrong = Vec::new();
        if let Some((revision, before)) = &self.ended
            && revision == target
        {
            let late = sent.difference(before);
            wrong.extend(late.map(|name| format!("FailurePolicy: {name} is sent after a failure")));
        }
        self.ended = (failed > 0).then(|| (target.to_owned(), sent));
        wrong
    }

    /// ObservedGeneration: a status is about a generation that was, and never about an older one than before.
    fn statuses(&mut self, scene: &Scene) -> Vec<String> {
        let mut wrong = Vec::new();
        for (kind, object) in &scene.mesh {
            let about = object["status"]["observedGeneration"].as_i64().unwrap_or(0);
            let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
            let before = self.generations.insert(identity(object), about).unwrap_or(0);
            if about > generation || about < before {
                let name = &object["metadata"]["name"];
                wrong.push(format!(
                    "ObservedGeneration: {kind} {name} of generation {generation} says {about} after {before}"
                ));
            }
        }
        wrong
    }

    /// TransitionTime: the moment of a condition moves only with its status.
    fn moments(&mut self, scene: &Scene) -> Vec<String> {
        let mut wrong = Vec::new();
        for (kind, object) in &scene.mesh {
            for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
                let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
                let key = format!("{} {}", identity(object), text("type"));
                let now = (text("status"), text("lastTransitionTime"));
                let old = self.conditions.insert(key, now.clone());
                let same = old.filter(|(status, moment)| *status == now.0 && *moment != now.1);
                if let Some((_, moment)) = same {
                    let (name, of) = (&object["metadata"]["name"], text("type"));
                    wrong.push(format!(
                        "TransitionTime: {kind} {name} {of}: {moment} became {} without a change",
                        now.1
                    ));
                }
            }
        }
        wrong
    }

    /// PauseStartsNothing: no batch is opened while all is paused.
    fn pause(&mut self, istio: &Value) -> Vec<String> {
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
            .then(|| {
                format!("PauseStartsNothing: batch {batch} is opened after {before}, while all is paused")
            })
            .into_iter()
            .collect()
    }
}

/// BatchSize: no more workloads are disturbed by us than a batch holds.
fn crowd(scene: &Scene, istio: &Value) -> Option<String> {
    let batched = &istio["spec"]["updateStrategy"]["workloadMigration"]["batched"];
    let most = usize::try_from(batched["batchSize"].as_i64().unwrap_or(1)).unwrap_or(1);
    let given = batched["readinessTimeout"].as_str();
    let given = given.and_then(|text| text.parse::<SignedDuration>().ok());
    let disturbed: Vec<String> = scene
        .apps
        .iter()
        .filter(|app| is_awaited(app, given, scene.now) && !is_complete(app))
        .map(|app| name_of(app))
        .collect();
    (disturbed.len() > most).then(|| format!("BatchSize: {} are disturbed at once", disturbed.join(", ")))
}

/// It was sent somewhere, and what it was given to come up is not over.
fn is_awaited(app: &Value, given: Option<SignedDuration>, now: Timestamp) -> bool {
    let started = mark(app).and_then(|(mark, _)| mark["startedAt"].as_str()?.parse::<Timestamp>().ok());
    let Some(started) = started else { return false };
    let deadline = given.and_then(|given| started.checked_add(given).ok());
    deadline.is_none_or(|deadline| deadline > now)
}

/// NoDeleteInUse: whose proxy runs is not deleted.
fn in_use(scene: &Scene) -> Vec<String> {
    let is_leaving = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    let leaving: BTreeSet<&str> = scene
        .of("IstioRevision")
        .filter(|revision| is_leaving(revision))
        .filter_map(|revision| revision["metadata"]["name"].as_str())
        .collect();
    if leaving.is_empty() {
        return Vec::new();
    }
    let running = scene.pods.iter().filter(|pod| !is_leaving(pod));
    let by = running.filter_map(|pod| pod["metadata"]["annotations"]["istio.io/rev"].as_str());
    by.filter(|revision| leaving.contains(revision))
        .map(|revision| format!("NoDeleteInUse: {revision} is deleted while a pod runs its proxy"))
        .collect()
}

fn identity(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn name_of(app: &Value) -> String {
    let text = |key: &str| app["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn mark(app: &Value) -> Option<(Value, String)> {
    let text = app["metadata"]["annotations"][MARK].as_str()?;
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
    let seen = status["observedGeneration"] == app["metadata"]["generation"];
    let settled = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Progressing" && one["reason"] == "NewReplicaSetAvailable");
    seen && (settled || counts.iter().all(|key| status[key].as_i64() == Some(desired)))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == "Ready" && one["status"] == "True")
}
