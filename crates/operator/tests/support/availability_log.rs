//! Records every version of every object of some kinds, in the order of the writes.
//!
//! The log consists of watch events, so it contains every state, including those between two reads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::World;
use super::history::{Availability, Entry, History};
use super::path::ObjectPath;
use super::world::UnmetCondition;

/// Kinds of recorded objects.
const KINDS: [&str; 8] = [
    "Istio",
    "IstioRevision",
    "IstioRevisionTag",
    "Namespace",
    "Deployment",
    "Pod",
    "EndpointSlice",
    "Event",
];

/// Totals of all logs of a test program.
pub struct Figures {
    logs: AtomicUsize,
    migrations: AtomicUsize,
    states: AtomicUsize,
    services: AtomicUsize,
    broken: AtomicUsize,
}

pub static FIGURES: Figures = Figures {
    logs: AtomicUsize::new(0),
    migrations: AtomicUsize::new(0),
    states: AtomicUsize::new(0),
    services: AtomicUsize::new(0),
    broken: AtomicUsize::new(0),
};

impl Figures {
    fn add(&self, history: &History, availability: &Availability) {
        self.logs.fetch_add(1, Ordering::Relaxed);
        self.migrations
            .fetch_add(history.migrations().len(), Ordering::Relaxed);
        self.states
            .fetch_add(availability.states_checked, Ordering::Relaxed);
        self.services
            .fetch_add(availability.services.len(), Ordering::Relaxed);
        self.broken
            .fetch_add(availability.violations.len(), Ordering::Relaxed);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        write!(
            f,
            "{} workloads migrated, {} services watched over {} instants in {} logs, {} below desired - maxUnavailable",
            count(&self.migrations),
            count(&self.services),
            count(&self.states),
            count(&self.logs),
            count(&self.broken),
        )
    }
}

/// A log in progress.
pub struct AvailabilityLog {
    entries: SharedEntries,
    begin: u64,
    recorders: Vec<JoinHandle<()>>,
}

#[derive(Clone, Default)]
struct SharedEntries(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    entries: Vec<Entry>,
    errors: Vec<String>,
}

impl SharedEntries {
    fn with<T>(&self, access: impl FnOnce(&mut Recorded) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, kind: &'static str, gone: bool, object: Value) -> u64 {
        let version = resource_version(&object);
        let at = Instant::now();
        let entry = Entry {
            version,
            at,
            kind,
            gone,
            object,
        };
        self.with(|recorded| recorded.entries.push(entry));
        version
    }
}

impl AvailabilityLog {
    /// Starts recording with the current objects.
    pub async fn start(world: &World) -> Self {
        let (entries, mut begin, mut recorders) = (SharedEntries::default(), 0, Vec::new());
        for kind in KINDS {
            let path = ObjectPath::cluster_scoped(kind, "").collection();
            let (code, mut list) = world.call("GET", &path, "", None).await;
            assert_eq!(code, 200, "{path}: {list}");
            let from = resource_version(&list);
            begin = begin.max(from);
            if let Value::Array(items) = list["items"].take() {
                for item in items {
                    entries.add(kind, false, item);
                }
            }
            let recorder = record(world.client(), Collection { kind, path, from }, entries.clone());
            recorders.push(tokio::spawn(recorder));
        }
        Self {
            entries,
            begin,
            recorders,
        }
    }

    /// Stops recording once the log is up to date, and checks that no Service had too few replicas and no
    /// namespace referred to a deleted control plane.
    pub async fn stop_and_check(self, world: &World) -> History {
        let history = self.stop(world).await;
        let availability = history.availability();
        FIGURES.add(&history, &availability);
        let violations = [availability.violations, history.missing_injectors()].concat();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        history
    }

    /// Stops recording once the log is up to date.
    pub async fn stop(self, world: &World) -> History {
        world
            .until("the log is up to date", async |world| {
                for kind in KINDS {
                    self.check_up_to_date(kind, &world.list(kind, "").await)?;
                }
                Ok::<(), UnmetCondition>(())
            })
            .await;
        let recorded = self.entries.with(std::mem::take);
        assert_eq!(recorded.errors, [""; 0], "the log has gaps");
        History::new(recorded.entries, self.begin)
    }

    /// Checks that the last recorded versions equal the current ones.
    fn check_up_to_date(&self, kind: &str, items: &[Value]) -> Result<(), UnmetCondition> {
        let known = self.entries.with(|recorded| {
            let mut known = BTreeMap::new();
            for entry in recorded.entries.iter().filter(|entry| entry.kind == kind) {
                let uid = entry.object["metadata"]["uid"].to_string();
                known.insert(uid, (entry.version, entry.gone));
            }
            known
        });
        let current: BTreeMap<String, (u64, bool)> = items
            .iter()
            .map(|item| {
                (
                    item["metadata"]["uid"].to_string(),
                    (resource_version(item), false),
                )
            })
            .collect();
        let known = known.into_iter().filter(|(_, (_, gone))| !gone);
        (known.eq(current))
            .then_some(())
            .ok_or(format!("the log of {kind} objects is behind").into())
    }
}

impl Drop for AvailabilityLog {
    fn drop(&mut self) {
        for recorder in &self.recorders {
            recorder.abort();
        }
    }
}

fn resource_version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// A collection, and the version after which it is watched.
struct Collection {
    kind: &'static str,
    path: String,
    from: u64,
}

/// Records the events of a collection. Resumes a watch that times out.
async fn record(client: Client, collection: Collection, entries: SharedEntries) {
    let Collection { kind, path, mut from } = collection;
    loop {
        let path = format!("{path}?watch=true&resourceVersion={from}&timeoutSeconds=290");
        let request = Request::get(path).body(Vec::new()).unwrap();
        let stream = match client.request_events::<Value>(request).await {
            Ok(stream) => stream,
            Err(error) => return entries.with(|recorded| recorded.errors.push(error.to_string())),
        };
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            from = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    entries.add(kind, false, object)
                }
                Ok(WatchEvent::Deleted(object)) => entries.add(kind, true, object),
                Ok(WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(status)) => {
                    return entries.with(|recorded| recorded.errors.push(status.message.clone()));
                }
                Err(error) => return entries.with(|recorded| recorded.errors.push(error.to_string())),
            };
        }
    }
}
