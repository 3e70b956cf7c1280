//! What happened, asked afterwards: takes every version of every object in order, gives moves, statuses and availability. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Versions of all kinds are in one order: that of the writes.
    pub version: u64,
    /// When it was heard of.
    pub at: Instant,
    pub kind: &'static str,
    /// It was deleted.
    pub gone: bool,
    pub object: Value,
}

/// Everything in the order in which it was written.
#[derive(Debug)]
pub struct History {
    entries: Vec<Entry>,
    /// What is older was there before anybody looked.
    begin: u64,
}

/// A workload that was sent somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub workload: String,
    pub to: String,
    pub batch: i64,
    pub version: u64,
    pub at: Instant,
    /// When it was complete on its new template, if ever.
    pub complete: Option<(u64, Instant)>,
}

/// What was ready of a Service at the worst moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low {
    pub desired: i64,
    /// What must always be ready.
    pub floor: i64,
    /// The least that ever was, by its endpoints.
    pub endpoints: i64,
    /// The least that ever was, by its pods.
    pub pods: i64,
}

/// How available the Services were.
#[derive(Clone, Debug, Default)]
pub struct Availability {
    /// How many states were looked at.
    pub instants: usize,
    pub services: BTreeMap<String, Low>,
    /// Each moment at which there was too little.
    pub broken: Vec<String>,
    /// Those that were up once: what is only just being made promises nothing yet.
    risen: BTreeSet<String>,
}

const MARK: &str = "sailoperator.io/migration";
const SERVICE: &str = "kubernetes.io/service-name";

impl History {
    pub fn new(mut entries: Vec<Entry>, begin: u64) -> Self {
        entries.sort_by_key(|entry| entry.version);
        Self { entries, begin }
    }

    /// The moments at which a namespace named a control plane that was gone.
    pub fn lost_injectors(&self) -> Vec<String> {
        super::injectors::lost(&self.entries)
    }

    /// What the moves broke of what is promised of them.
    pub fn broken_moves(&self) -> Vec<String> {
        let (here, now) = (Instant::now(), Timestamp::now());
        let moment = |at: Instant| {
            let since = SignedDuration::try_from(here.duration_since(at)).unwrap_or_default();
            now.saturating_sub(since).unwrap_or(now)
        };
        self.broken_moves_at(moment).into_iter().collect()
    }

    /// The same where the moments are known.
    pub fn broken_moves_at(&self, moment: impl Fn(Instant) -> Timestamp) -> BTreeSet<String> {
        super::movers::replay::broken(&self.entries, self.begin, moment)
    }

    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.kind == kind)
    }

    /// The first version of an object that `check` is content with, among those written while somebody looked.
    pub fn first(&self, kind: &str, name: &str, check: impl Fn(&Value) -> bool) -> Option<u64> {
        let mut versions = self.of(kind).filter(|entry| entry.version > self.begin);
        let found = versions
            .find(|entry| entry.object["metadata"]["name"] == name && check(&entry.object) && !entry.gone);
        found.map(|entry| entry.version)
    }

    /// What the Istio `default` said of its migration, each different state of it once.
    pub fn statuses(&self) -> Vec<(Instant, Value)> {
        let mut statuses: Vec<(Instant, Value)> = Vec::new();
        for entry in self
            .of("Istio")
            .filter(|entry| entry.object["metadata"]["name"] == "default")
        {
            let status = &entry.object["status"]["workloadMigration"];
            if statuses.last().is_none_or(|(_, last)| last != status) {
                statuses.push((entry.at, status.clone()));
            }
        }
        statuses
    }

    /// The states it went through, each once in a row.
    pub fn states(&self) -> Vec<String> {
        let mut states: Vec<String> = self
            .statuses()
            .iter()
            .map(|(_, status)| status["state"].as_str().unwrap_or("-").to_owned())
            .collect();
        states.dedup();
        states
    }

    /// Every workload that was sent somewhere, in order.
    pub fn sent(&self) -> Vec<Sent> {
        let mut marks: BTreeMap<String, String> = BTreeMap::new();
        let mut sent: Vec<Sent> = Vec::new();
        for entry in self.of("Deployment") {
            let workload = place(&entry.object);
            let text = entry.object["metadata"]["annotations"][MARK].as_str();
            let known = marks.get(&workload).map(String::as_str);
            if let Some(text) = text.filter(|text| Some(*text) != known) {
                marks.insert(workload.clone(), text.to_owned());
                if entry.version > self.begin {
                    sent.push(Sent::of(&workload, text, entry));
                }
            }
            if is_complete(&entry.object)
                && let Some(last) = sent.iter_mut().rev().find(|one| one.workload == workload)
            {
                last.complete.get_or_insert((entry.version, entry.at));
            }
        }
        sent
    }

    /// Who was sent in which batch, batch by batch.
    pub fn batches(&self) -> Vec<BTreeSet<String>> {
        let mut batches: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        for one in self.sent() {
            batches.entry(one.batch).or_default().insert(one.workload);
        }
        batches.into_values().collect()
    }

    /// How often the template of a workload changed.
    pub fn template_changes(&self, namespace: &str, name: &str) -> usize {
        let versions = self.of("Deployment").filter(|entry| {
            entry.object["metadata"]["namespace"] == namespace && entry.object["metadata"]["name"] == name
        });
        let mut templates: Vec<&Value> = versions.map(|entry| &entry.object["spec"]["template"]).collect();
        templates.dedup();
        templates.len().saturating_sub(1)
    }

    /// How many workloads that were sent somewhere had not come up, at the worst moment.
    pub fn most_disturbed(&self) -> usize {
        let (mut disturbed, mut most) = (BTreeSet::new(), 0);
        let seen = self.of("Deployment").filter(|entry| entry.version > self.begin);
        for entry in seen {
            let marked = entry.object["metadata"]["annotations"][MARK].is_string();
            let workload = place(&entry.object);
            if marked && !entry.gone && !is_complete(&entry.object) {
                disturbed.insert(workload);
            } else {
                disturbed.remove(&workload);
            }
            most = most.max(disturbed.len());
        }
        most
    }

    /// What people were told about the Istio `default`, `REASON message` each.
    pub fn events(&self) -> Vec<String> {
        let about = |entry: &&Entry| {
            let regarding = &entry.object["regarding"];
            regarding["kind"] == "Istio" && regarding["name"] == "default" && entry.version > self.begin
        };
        let text = |entry: &Entry| {
            let word = |key: &str| entry.object[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", word("reason"), word("note"))
        };
        let mut told: Vec<String> = Vec::new();
        for entry in self.of("Event").filter(about) {
            // Told again, it is the same object with a count.
            let text = text(entry);
            if !entry.gone && !told.contains(&text) {
                told.push(text);
            }
        }
        told
    }

    /// How much of every Service was ready, at every moment: endpoints and pods never less than the workload of the same name
    /// promises.
    pub fn availability(&self) -> Availability {
        let (mut scene, mut seen) = (Scene::default(), Availability::default());
        let (before, after): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().partition(|entry| entry.version <= self.begin);
        for entry in before {
            scene.put(entry);
        }
        for service in scene.wanted.keys() {
            seen.look(&scene, service, self.begin);
        }
        for entry in after {
            if let Some(service) = scene.put(entry) {
                seen.look(&scene, &service, entry.version);
            }
        }
        seen
    }
}

impl Sent {
    fn of(workload: &str, text: &str, entry: &Entry) -> Self {
        let mark: Value = serde_json::from_str(text).unwrap_or_default();
        Self {
            workload: workload.to_owned(),
            to: mark["revision"].as_str().unwrap_or_default().to_owned(),
            batch: mark["batch"].as_i64().unwrap_or_default(),
            version: entry.version,
            at: entry.at,
            complete: None,
        }
    }
}

impl Availability {
    fn look(&mut self, scene: &Scene, service: &str, version: u64) {
        self.instants += 1;
        let Some(low) = scene.low(service) else {
            self.risen.remove(service);
            return;
        };
        let enough = low.endpoints >= low.floor && low.pods >= low.floor;
        if enough {
            self.risen.insert(service.to_owned());
        } else if !self.risen.contains(service) {
            return;
        } else {
            self.broken
                .push(format!("{service} at version {version}: {low:?}"));
        }
        let worst = self.services.entry(service.to_owned()).or_insert(low);
        worst.desired = low.desired;
        worst.floor = low.floor;
        worst.endpoints = worst.endpoints.min(low.endpoints);
        worst.pods = worst.pods.min(low.pods);
    }

    /// Fails the test if there ever was too little, or if not so many Services were seen.
    pub fn check(&self, services: usize) {
        assert!(self.broken.is_empty(), "{}", self.broken.join("\n"));
        assert_eq!(self.services.len(), services, "{:?}", self.services);
        assert!(self.instants > 0, "nobody looked");
    }
}

fn place(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// The controller has seen the last change, and nothing is left to do.
fn is_complete(deployment: &Value) -> bool {
    let (status, desired) = (&deployment["status"], &deployment["spec"]["replicas"]);
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && counts.iter().all(|count| status[*count] == *desired)
}

/// What there is at a moment: only what availability needs.
#[derive(Default)]
struct Scene {
    /// Desired and floor, of Deployments.
    wanted: BTreeMap<String, (i64, i64)>,
    /// Ready endpoints of each slice of a Service.
    slices: BTreeMap<String, BTreeMap<String, i64>>,
    /// Whether each pod of a workload is ready.
    pods: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Scene {
    /// Takes a version in; gives the Service it is about.
    fn put(&mut self, entry: &Entry) -> Option<String> {
        let object = &entry.object;
        // Control planes come and go on purpose.
        let home = object["metadata"]["namespace"]
            .as_str()
            .filter(|home| *home != "istio-system")?;
        let label = |key: &str| Some(format!("{home}/{}", object["metadata"]["labels"][key].as_str()?));
        let own = place(object);
        match entry.kind {
            "Deployment" => {
                put(&mut self.wanted, &own, entry.gone, promise(object));
                Some(own)
            }
            "EndpointSlice" => {
                let service = label(SERVICE)?;
                let slices = self.slices.entry(service.clone()).or_default();
                put(slices, &own, entry.gone, ready_endpoints(object));
                Some(service)
            }
            "Pod" => {
                let service = label("app")?;
                let pods = self.pods.entry(service.clone()).or_default();
                put(pods, &own, entry.gone, is_ready(object));
                Some(service)
            }
            _ => None,
        }
    }

    /// What is ready of a Service that a workload stands behind.
    fn low(&self, service: &str) -> Option<Low> {
        let (desired, floor) = *self.wanted.get(service)?;
        let endpoints = self.slices.get(service)?.values().sum();
        let pods = self.pods.get(service)?.values().filter(|ready| **ready).count();
        Some(Low {
            desired,
            floor,
            endpoints,
            pods: i64::try_from(pods).unwrap_or_default(),
        })
    }
}

fn put<T>(map: &mut BTreeMap<String, T>, key: &str, gone: bool, value: T) {
    if gone {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

fn ready_endpoints(slice: &Value) -> i64 {
    let endpoints = slice["endpoints"].as_array();
    let ready = endpoints
        .into_iter()
        .flatten()
        .filter(|one| one["conditions"]["ready"] == true);
    i64::try_from(ready.count()).unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions
            .into_iter()
            .flatten()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// How many pods a Deployment wants, and how many it promises at any moment.
fn promise(deployment: &Value) -> (i64, i64) {
    let spec = &deployment["spec"];
    let desired = spec["replicas"].as_i64().unwrap_or(1);
    let rolling = &spec["strategy"]["rollingUpdate"];
    let missing = match &rolling["maxUnavailable"] {
        _ if spec["strategy"]["type"] == "Recreate" => desired,
        Value::String(share) => {
            let percent: i64 = share.trim_end_matches('%').parse().unwrap_or_default();
            desired * percent / 100
        }
        count => count.as_i64().unwrap_or_default(),
    };
    let surge = &rolling["maxSurge"];
    let stuck = missing == 0 && (*surge == 0 || *surge == "0%");
    (desired, desired - missing - i64::from(stuck))
}

/// For tests of judges: an object that says `gone` is.
#[cfg(test)]
pub(super) fn entry(version: u64, kind: &'static str, object: Value) -> Entry {
    Entry {
        version,
        at: Instant::now(),
        kind,
        gone: object["gone"] == true,
        object,
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

    fn deployment(unavailable: Value) -> Value {
        json!({"metadata": {"namespace": "shop", "name": "cart"},
            "spec": {"replicas": 2, "strategy": {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": "25%"}}}})
    }

    fn slice(ready: [bool; 2]) -> Value {
        let endpoints = ready.map(|ready| json!({"conditions": {"ready": ready}}));
        json!({"metadata": {"namespace": "shop", "name": "cart-1", "labels": {SERVICE: "cart"}}, "endpoints": endpoints})
    }

    fn pod(name: &str, ready: bool) -> Value {
        let status = if ready { "True" } else { "False" };
        json!({"metadata": {"namespace": "shop", "name": name, "labels": {"app": "cart"}},
            "status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    /// What is seen of one moment with these endpoints, after a beginning at which all was well.
    fn broken(unavailable: Value, last: Entry) -> usize {
        let entries = vec![
            entry(1, "Deployment", deployment(unavailable)),
            entry(2, "EndpointSlice", slice([true, true])),
            entry(3, "Pod", pod("a", true)),
            entry(4, "Pod", pod("b", true)),
            last,
        ];
        let seen = History::new(entries, 4).availability();
        assert_eq!(
            (seen.instants, seen.services.len()),
            (2, 1),
            "the beginning and one more"
        );
        seen.broken.len()
    }

    #[test]
    fn one_moment_with_too_little_is_enough() {
        assert_eq!(
            broken(json!("25%"), entry(5, "EndpointSlice", slice([true, true]))),
            0
        );
        assert_eq!(
            broken(json!("25%"), entry(5, "EndpointSlice", slice([true, false]))),
            1
        );
        assert_eq!(
            broken(json!(1), entry(5, "EndpointSlice", slice([true, false]))),
            0
        );
        assert_eq!(
            broken(json!(1), entry(5, "EndpointSlice", slice([false, false]))),
            1
        );
        assert_eq!(broken(json!("25%"), entry(5, "Pod", pod("b", false))), 1);
        let mut leaving = pod("b", true);
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(broken(json!("25%"), entry(5, "Pod", leaving)), 1);
    }

    #[test]
    fn what_a_deployment_promises() {
        let check = |strategy: Value, replicas: i64, expected: i64| {
            let object = json!({"spec": {"replicas": replicas, "strategy": strategy}});
            assert_eq!(promise(&object), (replicas, expected), "{strategy}");
        };
        let rolling = |unavailable: Value, surge: Value| json!({"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}});
        check(rolling(json!("25%"), json!("25%")), 4, 3);
        check(rolling(json!("25%"), json!("25%")), 3, 3);
        check(rolling(json!(0), json!(1)), 3, 3);
        check(rolling(json!(0), json!(0)), 3, 2);
        check(rolling(json!(2), json!(0)), 3, 1);
        check(json!({"type": "Recreate"}), 3, 0);
    }

    #[test]
    fn versions_are_put_in_order_and_marks_are_moves() {
        let marked = |version: u64, batch: i64, done: bool| {
            let mark =
                json!({"revision": "new", "batch": batch, "startedAt": "2026-01-01T00:00:00Z"}).to_string();
            let count = i64::from(done);
            let object = json!({"metadata": {"namespace": "shop", "name": "cart", "generation": 2, "annotations": {MARK: mark}},
                "spec": {"replicas": 1, "template": {"batch": batch}},
                "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": count, "readyReplicas": 1, "availableReplicas": 1}});
            entry(version, "Deployment", object)
        };
        let history = History::new(
            vec![marked(9, 2, true), marked(8, 2, false), marked(7, 1, true)],
            7,
        );
        let sent = history.sent();
        assert_eq!(sent.len(), 1, "what was there before is no news");
        assert_eq!((sent[0].batch, sent[0].version), (2, 8));
        assert_eq!(sent[0].complete.map(|(version, _)| version), Some(9));
        assert_eq!(history.template_changes("shop", "cart"), 1);
        assert_eq!(history.most_disturbed(), 1);
    }
}
