//! A diary of a world: takes kinds to watch, gives every version of every object of them, in the order in which they were written.
//!
//! It hears of changes by watches and never asks again, so no moment lies between two looks.

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
use super::at::At;
use super::history::{Availability, Entry, History};

/// What is written down.
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

/// What all diaries of a program hold together.
pub struct Figures {
    diaries: AtomicUsize,
    moves: AtomicUsize,
    instants: AtomicUsize,
    services: AtomicUsize,
    broken: AtomicUsize,
}

pub static FIGURES: Figures = Figures {
    diaries: AtomicUsize::new(0),
    moves: AtomicUsize::new(0),
    instants: AtomicUsize::new(0),
    services: AtomicUsize::new(0),
    broken: AtomicUsize::new(0),
};

impl Figures {
    fn add(&self, history: &History, seen: &Availability) {
        self.diaries.fetch_add(1, Ordering::Relaxed);
        self.moves.fetch_add(history.sent().len(), Ordering::Relaxed);
        self.instants.fetch_add(seen.instants, Ordering::Relaxed);
        self.services.fetch_add(seen.services.len(), Ordering::Relaxed);
        self.broken.fetch_add(seen.broken.len(), Ordering::Relaxed);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |figure: &AtomicUsize| figure.load(Ordering::Relaxed);
        write!(
            f,
            "{} workloads moved, {} services watched over {} instants in {} diaries, {} below desired - maxUnavailable",
            count(&self.moves),
            count(&self.services),
            count(&self.instants),
            count(&self.diaries),
            count(&self.broken),
        )
    }
}

/// A diary that is being written.
pub struct Diary {
    pages: Pages,
    begin: u64,
    writers: Vec<JoinHandle<()>>,
}

#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    entries: Vec<Entry>,
    trouble: Vec<String>,
}

impl Pages {
    fn with<T>(&self, act: impl FnOnce(&mut Written) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, kind: &'static str, gone: bool, object: Value) -> u64 {
        let version = version(&object);
        let at = Instant::now();
        let entry = Entry {
            version,
            at,
            kind,
            gone,
            object,
        };
        self.with(|written| written.entries.push(entry));
        version
    }
}

impl Diary {
    /// From what is there now on.
    pub async fn begin(world: &World) -> Self {
        let (pages, mut begin, mut writers) = (Pages::default(), 0, Vec::new());
        for kind in KINDS {
            let path = At::cluster(kind, "").collection();
            let (code, mut list) = world.call("GET", &path, "", None).await;
            assert_eq!(code, 200, "{path}: {list}");
            let from = version(&list);
            begin = begin.max(from);
            if let Value::Array(items) = list["items"].take() {
                for item in items {
                    pages.add(kind, false, item);
                }
            }
            let writer = write(world.client(), (kind, path, from), pages.clone());
            writers.push(tokio::spawn(writer));
        }
        Self {
            pages,
            begin,
            writers,
        }
    }

    /// Ends it once it knows all that is there now. Whatever happened, no Service may have had less than was promised, and no
    /// namespace may have named a control plane that was gone.
    pub async fn close(self, world: &World) -> History {
        let history = self.close_unjudged(world).await;
        let seen = history.availability();
        FIGURES.add(&history, &seen);
        let broken = [seen.broken, history.lost_injectors()].concat();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        history
    }

    /// Ends it once it knows all that is there now.
    pub async fn close_unjudged(self, world: &World) -> History {
        world
            .until("the diary is up to date", async |world| {
                for kind in KINDS {
                    self.compare(kind, &world.list(kind, "").await)?;
                }
                Ok(())
            })
            .await;
        let written = self.pages.with(std::mem::take);
        assert_eq!(written.trouble, [""; 0], "the diary has gaps");
        History::new(written.entries, self.begin)
    }

    /// Whether what is there is what was written down last.
    fn compare(&self, kind: &str, items: &[Value]) -> Result<(), String> {
        let known = self.pages.with(|written| {
            let mut known = BTreeMap::new();
            for entry in written.entries.iter().filter(|entry| entry.kind == kind) {
                let uid = entry.object["metadata"]["uid"].to_string();
                known.insert(uid, (entry.version, entry.gone));
            }
            known
        });
        let there: BTreeMap<String, (u64, bool)> = items
            .iter()
            .map(|item| (item["metadata"]["uid"].to_string(), (version(item), false)))
            .collect();
        let known = known.into_iter().filter(|(_, (_, gone))| !gone);
        (known.eq(there))
            .then_some(())
            .ok_or(format!("{kind} are behind"))
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        for writer in &self.writers {
            writer.abort();
        }
    }
}

fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Writes down what is heard of a kind; a watch that ends in time is taken up where it ended.
async fn write(client: Client, (kind, path, mut from): (&'static str, String, u64), pages: Pages) {
    loop {
        let path = format!("{path}?watch=true&resourceVersion={from}&timeoutSeconds=290");
        let request = Request::get(path).body(Vec::new()).unwrap();
        let stream = match client.request_events::<Value>(request).await {
            Ok(stream) => stream,
            Err(error) => return pages.with(|written| written.trouble.push(error.to_string())),
        };
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            from = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    pages.add(kind, false, object)
                }
                Ok(WatchEvent::Deleted(object)) => pages.add(kind, true, object),
                Ok(WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(status)) => {
                    return pages.with(|written| written.trouble.push(status.message.clone()));
                }
                Err(error) => return pages.with(|written| written.trouble.push(error.to_string())),
            };
        }
    }
}
