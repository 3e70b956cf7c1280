//! Publishes Kubernetes Events. Repeated events are counted in one Event object. A failed write does not
//! fail the plan.

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

/// Timeout of one call. It is short, because Events must not delay reconciliation.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval after which a repetition is written even if its count is not a power of two.
const HEARTBEAT: SignedDuration = SignedDuration::from_mins(30);
/// Maximum number of tracked series. If it is exceeded, counting starts again.
const MAX_SERIES: usize = 1000;
/// Maximum length of a note that the server accepts, in bytes.
const MAX_NOTE_LENGTH: usize = 1000;

/// Namespace of Events about cluster-scoped objects.
const CLUSTER_SCOPED_NAMESPACE: &str = "default";

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
    /// Creates a publisher. `instance` identifies the process.
    #[must_use]
    pub fn new(writer: Writer, instance: &str) -> Self {
        Self {
            writer,
            instance: instance.chars().take(128).collect(),
            series: Mutex::default(),
        }
    }

    /// Counts an event, and publishes it if the count is due. Returns whether an Event was written.
    pub async fn publish(&self, event: &Event, now: Timestamp) -> Result<bool, WriteError> {
        let name = name(event);
        let Some(count) = self.count_repetition(&name, now) else {
            return Ok(false);
        };
        let late = || WriteError::local(mainstay_mesh::ErrorClass::Other, "no response in time".into());
        let written = timeout(CALL_TIMEOUT, self.write(event, &name, count, now)).await;
        written.unwrap_or_else(|_| Err(late())).map(|()| true)
    }

    /// Counts an event. Returns the count if it is due, which is at every power of two and after the
    /// interval.
    fn count_repetition(&self, name: &str, now: Timestamp) -> Option<u64> {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if series.len() >= MAX_SERIES && !series.contains_key(name) {
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
            match self.update_series(&path, count, now).await {
                Err(error) if error.is_not_found() => {}
                done => return done,
            }
        }
        let body = Body::Json(self.body(event, name, now));
        match self.writer.call(Method::POST, &collection, Some(body)).await {
            // A previous process has published the Event.
            Err(error) if error.code == 409 => {
                let found = self.writer.call(Method::GET, &path, None).await?;
                let before = found
                    .pointer("/series/count")
                    .and_then(Value::as_u64)
                    .unwrap_or(1);
                self.update_series(&path, before + 1, now).await
            }
            done => done.map(|_| ()),
        }
    }

    async fn update_series(&self, path: &str, count: u64, now: Timestamp) -> Result<(), WriteError> {
        let body = json!({"series": {"count": count, "lastObservedTime": format_micro_time(now)}});
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
            "eventTime": format_micro_time(now),
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
            "note": truncate_note(&event.message),
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

/// An Event about a namespaced object. It is created in the namespace of the object.
#[derive(Clone, Copy, Debug)]
pub struct NamespacedEvent<'a> {
    /// Group and version of the object.
    pub api_version: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// UID of the object.
    pub uid: &'a str,
    /// Resource version of the object.
    pub resource_version: &'a str,
    /// Reason in upper camel case, such as `ReleaseDrifted`.
    pub reason: &'a str,
    /// Whether the type is `Warning`.
    pub is_warning: bool,
    /// Text of the note.
    pub message: &'a str,
}

impl NamespacedEvent<'_> {
    /// Returns the path and body of the request that creates the Event.
    #[must_use]
    pub fn request(&self, instance: &str, now: Timestamp) -> (String, Value) {
        let mut hasher = DefaultHasher::new();
        (self.uid, self.reason, self.message, now.as_nanosecond()).hash(&mut hasher);
        let object: String = self.name.chars().take(200).collect();
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": format!("{object}.{:016x}", hasher.finish()), "namespace": self.namespace},
            "eventTime": format_micro_time(now),
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
            "note": truncate_note(self.message),
            "type": if self.is_warning { "Warning" } else { "Normal" },
        });
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace);
        (path, body)
    }
}

fn namespace(subject: &Subject) -> &str {
    match subject {
        Subject::Workload(key) => key.namespace(),
        _ => CLUSTER_SCOPED_NAMESPACE,
    }
}

/// Returns the name of an Event. Events with equal content about the same object have the same name.
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

fn truncate_note(message: &str) -> String {
    let mut end = message.len().min(MAX_NOTE_LENGTH);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default().to_owned()
}

/// Formats a time as `MicroTime`: Go requires exactly six fractional digits.
fn format_micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}
