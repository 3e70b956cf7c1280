//! Publishes Kubernetes Events. Repetitions are counted in one Event, and a failed write is not an error of
//! the plan.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use mainstay_api::names;
use mainstay_mesh::Subject;
use mainstay_mesh::plan::Event;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::write::{Body, WriteError, Writer};

/// Timeout of one call: events must not delay reconciliation.
const CALL: Duration = Duration::from_secs(5);
/// Maximum interval between two updates of a series.
const HEARTBEAT: SignedDuration = SignedDuration::from_mins(30);
/// Maximum number of tracked series.
const MOST: usize = 1000;
/// Maximum length of a note accepted by the server.
const LONGEST_NOTE: usize = 1000;

/// Namespace of Events about cluster-scoped objects.
const DEFAULT: &str = "default";

/// Publisher of Events.
#[derive(Debug)]
pub struct Events {
    writer: Writer,
    instance: String,
    series: Mutex<BTreeMap<String, Series>>,
}

#[derive(Clone, Copy, Debug)]
struct Series {
    count: u64,
    written: Timestamp,
}

impl Events {
    /// Creates a publisher for the process `instance`.
    #[must_use]
    pub fn new(writer: Writer, instance: &str) -> Self {
        Self {
            writer,
            instance: instance.chars().take(128).collect(),
            series: Mutex::default(),
        }
    }

    /// Publishes an event if its count is due to be written. Returns whether something was written.
    pub async fn publish(&self, event: &Event, now: Timestamp) -> Result<bool, WriteError> {
        let name = name(event);
        let Some(count) = self.count(&name, now) else {
            return Ok(false);
        };
        let late = || WriteError::local(mainstay_mesh::ErrorClass::Other, "no response in time".into());
        let written = timeout(CALL, self.write(event, &name, count, now)).await;
        written.unwrap_or_else(|_| Err(late())).map(|()| true)
    }

    /// Returns the count if it is due: at every doubling, and after the maximum interval.
    fn count(&self, name: &str, now: Timestamp) -> Option<u64> {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.len() >= MOST && !series.contains_key(name) {
            series.clear();
        }
        let entry = series.entry(name.to_owned()).or_insert(Series {
            count: 0,
            written: now,
        });
        entry.count += 1;
        let is_due = entry.count.is_power_of_two() || now.duration_since(entry.written) >= HEARTBEAT;
        if is_due {
            entry.written = now;
        }
        is_due.then_some(entry.count)
    }

    async fn write(&self, event: &Event, name: &str, count: u64, now: Timestamp) -> Result<(), WriteError> {
        let collection = format!(
            "/apis/events.k8s.io/v1/namespaces/{}/events",
            namespace(&event.about.subject)
        );
        let path = format!("{collection}/{name}");
        if count > 1 {
            match self.repeat(&path, count, now).await {
                Err(error) if error.is_not_found() => {}
                done => return done,
            }
        }
        let body = Body::Json(self.body(event, name, now));
        match self.writer.call(Method::POST, &collection, Some(body)).await {
            // Published by a previous process.
            Err(error) if error.code == 409 => {
                let found = self.writer.call(Method::GET, &path, None).await?;
                let before = found
                    .pointer("/series/count")
                    .and_then(Value::as_u64)
                    .unwrap_or(1);
                self.repeat(&path, before + 1, now).await
            }
            done => done.map(|_| ()),
        }
    }

    async fn repeat(&self, path: &str, count: u64, now: Timestamp) -> Result<(), WriteError> {
        let body = json!({"series": {"count": count, "lastObservedTime": micro(now)}});
        self.writer
            .call(Method::PATCH, path, Some(Body::Merge(body)))
            .await
            .map(|_| ())
    }

    fn body(&self, event: &Event, name: &str, now: Timestamp) -> Value {
        let (api_version, kind) = match &event.about.subject {
            Subject::Object(kind, _) => (names::API_VERSION, kind.name()),
            Subject::Webhook(_) => ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
            Subject::Namespace(_) => ("v1", "Namespace"),
            Subject::Workload(key) => ("apps/v1", key.kind().name()),
        };
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace(&event.about.subject)},
            "eventTime": micro(now),
            "reportingController": "mainstay",
            "reportingInstance": self.instance,
            "action": "Reconcile",
            "reason": event.reason.name(),
            "regarding": {
                "apiVersion": api_version,
                "kind": kind,
                "name": event.about.name(),
                "uid": event.about.uid,
                "resourceVersion": event.about.resource_version,
            },
            "note": note(&event.message),
            "type": if event.warning { "Warning" } else { "Normal" },
        });
        if let (Subject::Workload(key), Some(Value::Object(regarding))) =
            (&event.about.subject, body.get_mut("regarding"))
        {
            regarding.insert("namespace".into(), key.namespace().into());
        }
        body
    }
}

/// An event about a namespaced object, in the namespace of the object.
#[derive(Clone, Copy, Debug)]
pub struct NamespacedEvent<'a> {
    /// Group and version of the object.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// The version that was read.
    pub resource_version: &'a str,
    /// The reason.
    pub reason: &'a str,
    /// Whether the type is `Warning`.
    pub is_warning: bool,
    /// The text.
    pub message: &'a str,
}

impl NamespacedEvent<'_> {
    /// Returns the path and body of the request that creates the event.
    #[must_use]
    pub fn request(&self, instance: &str, now: Timestamp) -> (String, Value) {
        let mut hasher = DefaultHasher::new();
        (self.uid, self.reason, self.message, now.as_nanosecond()).hash(&mut hasher);
        let object: String = self.name.chars().take(200).collect();
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": format!("{object}.{:016x}", hasher.finish()), "namespace": self.namespace},
            "eventTime": micro(now),
            "reportingController": "mainstay",
            "reportingInstance": instance,
            "action": "Reconcile",
            "reason": self.reason,
            "regarding": {
                "apiVersion": self.api_version,
                "kind": self.kind,
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
                "resourceVersion": self.resource_version,
            },
            "note": note(self.message),
            "type": if self.is_warning { "Warning" } else { "Normal" },
        });
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace);
        (path, body)
    }
}

fn namespace(subject: &Subject) -> &str {
    match subject {
        Subject::Workload(key) => key.namespace(),
        _ => DEFAULT,
    }
}

/// Events with the same content about the same object have the same name.
fn name(event: &Event) -> String {
    let mut hasher = DefaultHasher::new();
    (
        &event.about.uid,
        event.reason.name(),
        &event.message,
        event.warning,
    )
        .hash(&mut hasher);
    let object: String = event.about.name().chars().take(200).collect();
    format!("{object}.{:016x}", hasher.finish())
}

fn note(message: &str) -> String {
    let mut end = message.len().min(LONGEST_NOTE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
}

/// With exactly six fractional digits, as Go parses it.
fn micro(time: Timestamp) -> String {
    format!("{time:.6}")
}
