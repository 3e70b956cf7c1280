//! Whether workloads are moved as promised: takes each state a cluster is in, notes what must never be so. It looks at the cluster alone, not at what
//! the operator believes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_sim::State;
use mainstay_sim::object::Object;
use serde_json::Value;

const MARK: &str = "sailoperator.io/migration";

/// What was seen so far.
#[derive(Default)]
pub(super) struct Movers {
    /// Workloads that were up once, and how many of their pods must stay.
    floors: BTreeMap<String, i64>,
    /// The moments at which a workload was sent to a revision.
    sent: BTreeMap<(String, String), BTreeSet<String>>,
    /// How many were moved to a revision, as far as was told.
    moved: BTreeMap<String, i64>,
    /// Status and moment of conditions.
    conditions: BTreeMap<String, (String, String)>,
    /// The batch that was open when all was paused.
    paused: Option<i64>,
    shelf: Shelf,
}

/// Objects as they were read last: a look at the cluster reads only what has changed since the one before.
#[derive(Default)]
struct Shelf(BTreeMap<Box<str>, (u64, Arc<Value>)>);

impl Shelf {
    fn all(&mut self, state: &State, group: &str, plural: &str) -> Vec<Arc<Value>> {
        let objects = all(state, group, plural);
        objects.into_iter().map(|object| self.read(object)).collect()
    }

    fn read(&mut self, object: &Object) -> Arc<Value> {
        let meta = object.meta();
        let known = self
            .0
            .get(&meta.uid)
            .filter(|(version, _)| *version == meta.version);
        if let Some((_, value)) = known {
            return Arc::clone(value);
        }
        let value = Arc::new(object.value());
        self.0
            .insert(meta.uid.clone(), (meta.version, Arc::clone(&value)));
        value
    }
}

impl Movers {
    /// Looks at a state; gives what is wrong in it.
    pub(super) fn look(&mut self, state: &State) -> Vec<String> {
        let istio = self.shelf.all(state, "sailoperator.io", "istios").pop();
        let istio = istio.unwrap_or_default();
        let mut apps = self.shelf.all(state, "apps", "deployments");
        apps.retain(|app| app["metadata"]["namespace"] != "istio-system");
        let pods = self.shelf.all(state, "", "pods");
        let mut wrong = Vec::new();
        wrong.extend(crowd(state, &istio, &apps));
        wrong.extend(self.available(&pods, &apps));
        wrong.extend(self.sent_twice(&apps));
        wrong.extend(self.counts(&istio));
        wrong.extend(self.moments(state));
        wrong.extend(in_use(state, &pods));
        wrong.extend(self.pause(&istio));
        wrong
    }

    /// I2: of a workload that was up, no more pods are missing than it allows itself.
    fn available(&mut self, pods: &[Arc<Value>], apps: &[Arc<Value>]) -> Vec<String> {
        let mut wrong = Vec::new();
        for app in apps {
            let (name, space) = (&app["metadata"]["name"], &app["metadata"]["namespace"]);
            let ready = pods
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
                    "I2: {ready} of {desired} pods of {key} are ready, not {floor}"
                ));
            }
        }
        wrong
    }

    /// I3: nothing is sent to the same revision twice.
    fn sent_twice(&mut self, apps: &[Arc<Value>]) -> Vec<String> {
        let mut wrong = Vec::new();
        for app in apps {
            let Some((mark, text)) = mark(app) else { continue };
            let revision = mark["revision"].as_str().unwrap_or_default().to_owned();
            let marks = self.sent.entry((name_of(app), revision)).or_default();
            marks.insert(text);
            if marks.len() > 1 {
                wrong.push(format!("I3: {} is sent twice: {marks:?}", name_of(app)));
            }
        }
        wrong
    }

    /// I4 and I5: counts fit together, and what was moved stays counted.
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
            wrong.push(format!("I4: {status}"));
        }
        let target = status["targetRevision"].as_str().unwrap_or_default().to_owned();
        let before = self.moved.insert(target, moved).unwrap_or(0);
        if moved < before {
            wrong.push(format!("I5: {moved} after {before} were moved"));
        }
        wrong
    }

    /// I7: the moment of a condition moves only with its status.
    fn moments(&mut self, state: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        for plural in ["istios", "istiorevisions", "istiorevisiontags"] {
            for value in self.shelf.all(state, "sailoperator.io", plural) {
                for condition in value["status"]["conditions"].as_array().into_iter().flatten() {
                    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
                    let key = format!("{} {}", value["metadata"]["uid"], text("type"));
                    let now = (text("status"), text("lastTransitionTime"));
                    let old = self.conditions.insert(key, now.clone());
                    let same = old.filter(|(status, moment)| *status == now.0 && *moment != now.1);
                    if let Some((_, moment)) = same {
                        wrong.push(format!(
                            "I7: {plural}/{} {}: {moment} became {} without a change",
                            value["metadata"]["name"],
                            text("type"),
                            now.1
                        ));
                    }
                }
            }
        }
        wrong
    }

    /// I11: no batch is opened while all is paused.
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
            .then(|| format!("I11: batch {batch} is opened after {before}, while all is paused"))
            .into_iter()
            .collect()
    }
}

/// I1: no more workloads are disturbed by us than a batch holds.
fn crowd(state: &State, istio: &Value, apps: &[Arc<Value>]) -> Option<String> {
    let batched = &istio["spec"]["updateStrategy"]["workloadMigration"]["batched"];
    let most = usize::try_from(batched["batchSize"].as_i64().unwrap_or(1)).unwrap_or(1);
    let now = Timestamp::from_microsecond(state.now().as_micros()).unwrap();
    let disturbed: Vec<String> = apps
        .iter()
        .filter(|app| {
            let started =
                mark(app).and_then(|(mark, _)| mark["startedAt"].as_str()?.parse::<Timestamp>().ok());
            // All plays give a minute.
            let in_time = started
                .and_then(|started| started.checked_add(SignedDuration::from_mins(1)).ok())
                .is_some_and(|deadline| deadline > now);
            in_time && !is_complete(app)
        })
        .map(|app| name_of(app))
        .collect();
    (disturbed.len() > most).then(|| format!("I1: {} are disturbed at once", disturbed.join(", ")))
}

/// I8: whose proxy runs is not deleted.
fn in_use(state: &State, pods: &[Arc<Value>]) -> Vec<String> {
    let leaving: BTreeSet<String> = all(state, "sailoperator.io", "istiorevisions")
        .iter()
        .filter(|revision| revision.meta().deleting)
        .map(|revision| revision.meta().name.to_string())
        .collect();
    if leaving.is_empty() {
        return Vec::new();
    }
    let running = pods
        .iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let by = running.filter_map(|pod| {
        pod["metadata"]["annotations"]["istio.io/rev"]
            .as_str()
            .map(str::to_owned)
    });
    by.filter(|revision| leaving.contains(revision))
        .map(|revision| format!("I8: {revision} is deleted while a pod runs its proxy"))
        .collect()
}

fn all<'a>(state: &'a State, group: &str, plural: &str) -> Vec<&'a Arc<Object>> {
    let resource = state.resources.preferred(group, plural);
    resource.map_or_else(Vec::new, |resource| state.store.all(&resource.table).collect())
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
