//! History of a cluster: derives migrations, statuses and availability from every version of every object.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

/// One version of one object.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Resource version. Versions of all kinds share one sequence, in the order of the writes.
    pub version: u64,
    /// Time of the observation.
    pub at: Instant,
    pub kind: &'static str,
    /// Whether the object was deleted.
    pub gone: bool,
    pub object: Value,
}

/// All versions in the order of the writes.
#[derive(Debug)]
pub struct History {
    entries: Vec<Entry>,
    /// Version at the start of the recording. Older versions existed before.
    begin: u64,
}

/// A migration of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Migration {
    pub workload: String,
    pub to: String,
    pub batch: i64,
    pub version: u64,
    pub at: Instant,
    /// Version and time at which its rollout was complete; `None` if it never was.
    pub complete: Option<(u64, Instant)>,
}

/// Lowest availability of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowestAvailability {
    pub desired: i64,
    /// Number of replicas that are guaranteed to be ready at any time.
    pub guaranteed: i64,
    /// Minimum number of ready endpoints.
    pub endpoints: i64,
    /// Minimum number of ready pods.
    pub pods: i64,
}

/// Availability of the Services.
#[derive(Clone, Debug, Default)]
pub struct Availability {
    /// Number of checked states.
    pub states_checked: usize,
    pub services: BTreeMap<String, LowestAvailability>,
    /// States in which a Service had too few replicas.
    pub violations: Vec<String>,
    /// Services that have been available. A new Service is not checked before it is available.
    available_once: BTreeSet<String>,
}

const MIGRATION_RECORD: &str = "sailoperator.io/migration";
const SERVICE: &str = "kubernetes.io/service-name";

impl History {
    pub fn new(mut entries: Vec<Entry>, begin: u64) -> Self {
        entries.sort_by_key(|entry| entry.version);
        Self { entries, begin }
    }

    /// Returns a description of each state in which a namespace referred to a deleted control plane.
    pub fn missing_injectors(&self) -> Vec<String> {
        super::injector_history::missing_injectors(&self.entries)
    }

    /// Returns the violations of migration invariants.
    pub fn migration_violations(&self) -> Vec<String> {
        let (here, now) = (Instant::now(), Timestamp::now());
        let time = |at: Instant| {
            let since = SignedDuration::try_from(here.duration_since(at)).unwrap_or_default();
            now.saturating_sub(since).unwrap_or(now)
        };
        self.migration_violations_at(time).into_iter().collect()
    }

    /// Like [`History::migration_violations`], with a function that returns the time of an observation.
    pub fn migration_violations_at(&self, time: impl Fn(Instant) -> Timestamp) -> BTreeSet<String> {
        super::migration_checks::replay::violations(&self.entries, self.begin, time)
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.kind == kind)
    }

    /// Returns the first recorded version of an object that `check` accepts.
    pub fn first_version(&self, kind: &str, name: &str, check: impl Fn(&Value) -> bool) -> Option<u64> {
        let mut versions = self.of_kind(kind).filter(|entry| entry.version > self.begin);
        let found = versions
            .find(|entry| entry.object["metadata"]["name"] == name && check(&entry.object) && !entry.gone);
        found.map(|entry| entry.version)
    }

    /// Returns the migration statuses of the Istio `default`, without repetitions.
    pub fn statuses(&self) -> Vec<(Instant, Value)> {
        let mut statuses: Vec<(Instant, Value)> = Vec::new();
        for entry in self
            .of_kind("Istio")
            .filter(|entry| entry.object["metadata"]["name"] == "default")
        {
            let status = &entry.object["status"]["workloadMigration"];
            if statuses.last().is_none_or(|(_, last)| last != status) {
                statuses.push((entry.at, status.clone()));
            }
        }
        statuses
    }

    /// Returns the migration states, without repetitions.
    pub fn states(&self) -> Vec<String> {
        let mut states: Vec<String> = self
            .statuses()
            .iter()
            .map(|(_, status)| status["state"].as_str().unwrap_or("-").to_owned())
            .collect();
        states.dedup();
        states
    }

    /// Returns every migration of a workload, in order.
    pub fn migrations(&self) -> Vec<Migration> {
        let mut records: BTreeMap<String, String> = BTreeMap::new();
        let mut migrations: Vec<Migration> = Vec::new();
        for entry in self.of_kind("Deployment") {
            let workload = namespaced_name(&entry.object);
            let text = entry.object["metadata"]["annotations"][MIGRATION_RECORD].as_str();
            let known = records.get(&workload).map(String::as_str);
            if let Some(text) = text.filter(|text| Some(*text) != known) {
                records.insert(workload.clone(), text.to_owned());
                if entry.version > self.begin {
                    migrations.push(Migration::new(&workload, text, entry));
                }
            }
            if is_complete(&entry.object)
                && let Some(last) = migrations.iter_mut().rev().find(|one| one.workload == workload)
            {
                last.complete.get_or_insert((entry.version, entry.at));
            }
        }
        migrations
    }

    /// Returns the workloads of each batch.
    pub fn batches(&self) -> Vec<BTreeSet<String>> {
        let mut batches: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        for one in self.migrations() {
            batches.entry(one.batch).or_default().insert(one.workload);
        }
        batches.into_values().collect()
    }

    /// Returns the number of changes of a workload's template.
    pub fn template_changes(&self, namespace: &str, name: &str) -> usize {
        let versions = self.of_kind("Deployment").filter(|entry| {
            entry.object["metadata"]["namespace"] == namespace && entry.object["metadata"]["name"] == name
        });
        let mut templates: Vec<&Value> = versions.map(|entry| &entry.object["spec"]["template"]).collect();
        templates.dedup();
        templates.len().saturating_sub(1)
    }

    /// Returns the maximum number of concurrently migrating workloads.
    pub fn max_migrating(&self) -> usize {
        let (mut migrating, mut most) = (BTreeSet::new(), 0);
        let recorded = self
            .of_kind("Deployment")
            .filter(|entry| entry.version > self.begin);
        for entry in recorded {
            let has_record = entry.object["metadata"]["annotations"][MIGRATION_RECORD].is_string();
            let workload = namespaced_name(&entry.object);
            if has_record && !entry.gone && !is_complete(&entry.object) {
                migrating.insert(workload);
            } else {
                migrating.remove(&workload);
            }
            most = most.max(migrating.len());
        }
        most
    }

    /// Returns the Events of the Istio `default` as `REASON message`.
    pub fn events(&self) -> Vec<String> {
        let is_about_istio = |entry: &&Entry| {
            let regarding = &entry.object["regarding"];
            regarding["kind"] == "Istio" && regarding["name"] == "default" && entry.version > self.begin
        };
        let format_event = |entry: &Entry| {
            let text = |key: &str| entry.object[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("reason"), text("note"))
        };
        let mut events: Vec<String> = Vec::new();
        for entry in self.of_kind("Event").filter(is_about_istio) {
            // A repeated Event is the same object with a count.
            let text = format_event(entry);
            if !entry.gone && !events.contains(&text) {
                events.push(text);
            }
        }
        events
    }

    /// Returns the availability of every Service in every state: its ready endpoints and pods compared with
    /// the replicas that the rollout strategy of its workload guarantees. The workload has the name of the
    /// Service.
    pub fn availability(&self) -> Availability {
        let (mut state, mut availability) = (AvailabilityState::default(), Availability::default());
        let (before, after): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().partition(|entry| entry.version <= self.begin);
        for entry in before {
            state.apply(entry);
        }
        for service in state.replicas.keys() {
            availability.check_service(&state, service, self.begin);
        }
        for entry in after {
            if let Some(service) = state.apply(entry) {
                availability.check_service(&state, &service, entry.version);
            }
        }
        availability
    }
}

impl Migration {
    fn new(workload: &str, text: &str, entry: &Entry) -> Self {
        let record: Value = serde_json::from_str(text).unwrap_or_default();
        Self {
            workload: workload.to_owned(),
            to: record["revision"].as_str().unwrap_or_default().to_owned(),
            batch: record["batch"].as_i64().unwrap_or_default(),
            version: entry.version,
            at: entry.at,
            complete: None,
        }
    }
}

impl Availability {
    fn check_service(&mut self, state: &AvailabilityState, service: &str, version: u64) {
        self.states_checked += 1;
        let Some(low) = state.current_availability(service) else {
            self.available_once.remove(service);
            return;
        };
        let enough = low.endpoints >= low.guaranteed && low.pods >= low.guaranteed;
        if enough {
            self.available_once.insert(service.to_owned());
        } else if !self.available_once.contains(service) {
            return;
        } else {
            self.violations
                .push(format!("{service} at version {version}: {low:?}"));
        }
        let worst = self.services.entry(service.to_owned()).or_insert(low);
        worst.desired = low.desired;
        worst.guaranteed = low.guaranteed;
        worst.endpoints = worst.endpoints.min(low.endpoints);
        worst.pods = worst.pods.min(low.pods);
    }

    /// Panics if a Service had too few replicas in any state, or if the number of recorded Services
    /// differs.
    pub fn check(&self, services: usize) {
        assert!(self.violations.is_empty(), "{}", self.violations.join("\n"));
        assert_eq!(self.services.len(), services, "{:?}", self.services);
        assert!(self.states_checked > 0, "nothing was recorded");
    }
}

fn namespaced_name(object: &Value) -> String {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// Whether the rollout of the last change of a Deployment is complete.
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

/// Current objects that determine availability.
#[derive(Default)]
struct AvailabilityState {
    /// Desired and guaranteed replicas of Deployments.
    replicas: BTreeMap<String, (i64, i64)>,
    /// Ready endpoints of each slice of a Service.
    slices: BTreeMap<String, BTreeMap<String, i64>>,
    /// Whether each pod of a workload is ready.
    pods: BTreeMap<String, BTreeMap<String, bool>>,
}

impl AvailabilityState {
    /// Applies a version and returns the Service it affects.
    fn apply(&mut self, entry: &Entry) -> Option<String> {
        let object = &entry.object;
        // Control planes are ignored, because upgrades replace them.
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .filter(|namespace| *namespace != "istio-system")?;
        let label = |key: &str| {
            Some(format!(
                "{namespace}/{}",
                object["metadata"]["labels"][key].as_str()?
            ))
        };
        let own = namespaced_name(object);
        match entry.kind {
            "Deployment" => {
                insert_or_remove(&mut self.replicas, &own, entry.gone, guaranteed_replicas(object));
                Some(own)
            }
            "EndpointSlice" => {
                let service = label(SERVICE)?;
                let slices = self.slices.entry(service.clone()).or_default();
                insert_or_remove(slices, &own, entry.gone, ready_endpoints(object));
                Some(service)
            }
            "Pod" => {
                let service = label("app")?;
                let pods = self.pods.entry(service.clone()).or_default();
                insert_or_remove(pods, &own, entry.gone, is_ready(object));
                Some(service)
            }
            _ => None,
        }
    }

    /// Returns the current availability of a Service, or `None` if it has no workload.
    fn current_availability(&self, service: &str) -> Option<LowestAvailability> {
        let (desired, guaranteed) = *self.replicas.get(service)?;
        let endpoints = self.slices.get(service)?.values().sum();
        let pods = self.pods.get(service)?.values().filter(|ready| **ready).count();
        Some(LowestAvailability {
            desired,
            guaranteed,
            endpoints,
            pods: i64::try_from(pods).unwrap_or_default(),
        })
    }
}

fn insert_or_remove<T>(map: &mut BTreeMap<String, T>, key: &str, gone: bool, value: T) {
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

/// Returns the desired and the guaranteed number of pods of a Deployment.
fn guaranteed_replicas(deployment: &Value) -> (i64, i64) {
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

/// Returns an entry for tests. The field `gone: true` of the object marks it as deleted.
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
        json!({"metadata": {"namespace": "apps", "name": "cart"},
            "spec": {"replicas": 2, "strategy": {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": "25%"}}}})
    }

    fn slice(ready: [bool; 2]) -> Value {
        let endpoints = ready.map(|ready| json!({"conditions": {"ready": ready}}));
        json!({"metadata": {"namespace": "apps", "name": "cart-1", "labels": {SERVICE: "cart"}}, "endpoints": endpoints})
    }

    fn pod(name: &str, ready: bool) -> Value {
        let status = if ready { "True" } else { "False" };
        json!({"metadata": {"namespace": "apps", "name": name, "labels": {"app": "cart"}},
            "status": {"conditions": [{"type": "Ready", "status": status}]}})
    }

    /// Returns the number of violations after this last entry. All pods were ready before.
    fn violations(unavailable: Value, last: Entry) -> usize {
        let entries = vec![
            entry(1, "Deployment", deployment(unavailable)),
            entry(2, "EndpointSlice", slice([true, true])),
            entry(3, "Pod", pod("a", true)),
            entry(4, "Pod", pod("b", true)),
            last,
        ];
        let availability = History::new(entries, 4).availability();
        assert_eq!(
            (availability.states_checked, availability.services.len()),
            (2, 1),
            "the initial state and one more"
        );
        availability.violations.len()
    }

    #[test]
    fn a_single_state_with_too_few_replicas_is_detected() {
        assert_eq!(
            violations(json!("25%"), entry(5, "EndpointSlice", slice([true, true]))),
            0
        );
        assert_eq!(
            violations(json!("25%"), entry(5, "EndpointSlice", slice([true, false]))),
            1
        );
        assert_eq!(
            violations(json!(1), entry(5, "EndpointSlice", slice([true, false]))),
            0
        );
        assert_eq!(
            violations(json!(1), entry(5, "EndpointSlice", slice([false, false]))),
            1
        );
        assert_eq!(violations(json!("25%"), entry(5, "Pod", pod("b", false))), 1);
        let mut terminating = pod("b", true);
        terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(violations(json!("25%"), entry(5, "Pod", terminating)), 1);
    }

    #[test]
    fn guaranteed_replicas_of_a_deployment() {
        let check = |strategy: Value, replicas: i64, expected: i64| {
            let object = json!({"spec": {"replicas": replicas, "strategy": strategy}});
            assert_eq!(guaranteed_replicas(&object), (replicas, expected), "{strategy}");
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
    fn versions_are_sorted_and_records_are_migrations() {
        let deployment = |version: u64, batch: i64, is_complete: bool| {
            let record =
                json!({"revision": "new", "batch": batch, "startedAt": "2026-01-01T00:00:00Z"}).to_string();
            let count = i64::from(is_complete);
            let object = json!({"metadata": {"namespace": "apps", "name": "cart", "generation": 2, "annotations": {MIGRATION_RECORD: record}},
                "spec": {"replicas": 1, "template": {"batch": batch}},
                "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": count, "readyReplicas": 1, "availableReplicas": 1}});
            entry(version, "Deployment", object)
        };
        let history = History::new(
            vec![
                deployment(9, 2, true),
                deployment(8, 2, false),
                deployment(7, 1, true),
            ],
            7,
        );
        let migrations = history.migrations();
        assert_eq!(migrations.len(), 1, "earlier records do not count");
        assert_eq!((migrations[0].batch, migrations[0].version), (2, 8));
        assert_eq!(migrations[0].complete.map(|(version, _)| version), Some(9));
        assert_eq!(history.template_changes("apps", "cart"), 1);
        assert_eq!(history.max_migrating(), 1);
    }
}
