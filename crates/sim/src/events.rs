//! Records Event objects like the recorder of client-go: repeated events increase a count, similar events are
//! aggregated, and events expire after an hour. Because there are many events, they are recorded only if
//! [`crate::Options::events`] is set.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Instant;
use crate::context::Context;
use crate::state::State;
use crate::tree;
use crate::write::{self, Target};

/// Number of distinct messages about one object with one reason at which events are aggregated.
const AGGREGATE_THRESHOLD: usize = 10;
/// Period in which similar events are aggregated.
const AGGREGATE_WINDOW: Duration = Duration::from_mins(10);
/// Burst size of the rate limit per component and object.
const BURST: f64 = 25.0;
/// Time after which the rate limit allows one more event.
const REFILL: Duration = Duration::from_mins(5);
/// Time to live of an event.
const EVENT_TTL: Duration = Duration::from_hours(1);
/// Maximum number of keys in each cache.
const MAX_CACHED_KEYS: usize = 4096;

/// An event to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEvent<'a> {
    /// Reporting component, such as `deployment-controller`.
    pub(crate) component: &'a str,
    /// Node of the component, or empty.
    pub(crate) node: &'a str,
    /// Involved object, with `kind`, `apiVersion` and `metadata`.
    pub(crate) object: &'a Value,
    /// Field path in the object, or empty.
    pub(crate) field_path: &'a str,
    /// Whether the type is `Warning`.
    pub(crate) warning: bool,
    /// Machine-readable reason.
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> NewEvent<'a> {
    /// Creates an event of type `Normal`.
    pub(crate) fn normal(component: &'a str, object: &'a Value, reason: &'a str, message: &'a str) -> Self {
        Self {
            component,
            node: "",
            object,
            field_path: "",
            warning: false,
            reason,
            message,
        }
    }

    /// Creates an event of type `Warning`.
    pub(crate) fn warning(component: &'a str, object: &'a Value, reason: &'a str, message: &'a str) -> Self {
        Self {
            warning: true,
            ..Self::normal(component, object, reason, message)
        }
    }

    fn meta(&self, field: &str) -> &'a str {
        tree::text(self.object, &["metadata", field])
    }

    /// Returns the key that similar events share.
    fn aggregate_key(&self) -> String {
        let Self {
            component,
            field_path,
            reason,
            ..
        } = self;
        format!(
            "{component}\n{}\n{field_path}\n{}\n{reason}",
            self.meta("uid"),
            self.warning
        )
    }
}

/// Caches of the recorders of all components.
#[derive(Debug, Default)]
pub struct Recorder {
    aggregates: HashMap<String, Aggregate>,
    recorded: HashMap<String, RecordedEvent>,
    buckets: HashMap<String, Bucket>,
    expiry: VecDeque<(Instant, Box<str>)>,
}

#[derive(Debug)]
struct Aggregate {
    /// Time of the last event.
    last: Instant,
    messages: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct RecordedEvent {
    name: String,
    count: i64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Recorder {
    /// Returns the message to write and the key under which the event is counted.
    fn aggregate(&mut self, event: &NewEvent<'_>, now: Instant) -> (String, String) {
        let aggregate_key = event.aggregate_key();
        let aggregate = self
            .aggregates
            .entry(aggregate_key.clone())
            .or_insert_with(|| Aggregate {
                last: now,
                messages: BTreeSet::new(),
            });
        if now.since(aggregate.last) > AGGREGATE_WINDOW {
            aggregate.messages.clear();
        }
        aggregate.last = now;
        aggregate.messages.insert(event.message.to_owned());
        if aggregate.messages.len() < AGGREGATE_THRESHOLD {
            return (
                event.message.to_owned(),
                format!("{aggregate_key}\n{}", event.message),
            );
        }
        aggregate.messages.pop_first();
        (
            format!("(combined from similar events): {}", event.message),
            aggregate_key,
        )
    }

    /// Returns whether a component exceeds its rate limit for an object.
    fn is_rate_limited(&mut self, event: &NewEvent<'_>, now: Instant) -> bool {
        let key = format!("{}\n{}", event.component, event.meta("uid"));
        let bucket = self.buckets.entry(key).or_insert(Bucket {
            tokens: BURST,
            at: now,
        });
        let gained = now.since(bucket.at).as_secs_f64() / REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + gained).min(BURST);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return true;
        }
        bucket.tokens -= 1.0;
        false
    }

    fn limit_caches(&mut self) {
        for len in [self.aggregates.len(), self.recorded.len(), self.buckets.len()] {
            if len > MAX_CACHED_KEYS {
                self.aggregates.clear();
                self.recorded.clear();
                self.buckets.clear();
            }
        }
    }
}

/// Writes an event if events are enabled.
pub(crate) fn record(state: &mut State, event: &NewEvent<'_>) {
    if !state.options.events {
        return;
    }
    let now = state.now();
    delete_expired(state, now);
    state.events.limit_caches();
    let (message, key) = state.events.aggregate(event, now);
    let before = state.events.recorded.get(&key).cloned();
    let count = before.as_ref().map_or(1, |before| before.count + 1);
    if state.events.is_rate_limited(event, now) {
        return;
    }
    let updated = before.filter(|before| increase_count(state, event, before, &message, now));
    let (name, count) = match updated {
        Some(before) => (before.name, count),
        None => (create_event(state, event, &message, now), 1),
    };
    let location = crate::object::key(event_namespace(event), &name);
    state.events.expiry.push_back((now, location.into()));
    state.events.recorded.insert(key, RecordedEvent { name, count });
}

/// Returns the namespace of the Event object: that of the object, or `default` for cluster-scoped objects.
fn event_namespace<'a>(event: &NewEvent<'a>) -> &'a str {
    match event.meta("namespace") {
        "" => "default",
        namespace => namespace,
    }
}

fn event_context(event: &NewEvent<'_>) -> Context {
    let mut context = Context::for_controller(event.component);
    if event.component.ends_with("-controller") {
        "kube-controller-manager".clone_into(&mut context.manager);
    }
    context
}

fn create_event(state: &mut State, event: &NewEvent<'_>, message: &str, now: Instant) -> String {
    let name = format!("{}.{:016x}", event.meta("name"), state.random.next_u64() >> 3);
    let mut involved_object = json!({
        "kind": tree::text(event.object, &["kind"]), "apiVersion": tree::text(event.object, &["apiVersion"]),
        "name": event.meta("name"), "uid": event.meta("uid"), "resourceVersion": event.meta("resourceVersion"),
    });
    if !event.meta("namespace").is_empty() {
        tree::set(&mut involved_object, &["namespace"], event.meta("namespace"));
    }
    if !event.field_path.is_empty() {
        tree::set(&mut involved_object, &["fieldPath"], event.field_path);
    }
    let mut source = json!({"component": event.component});
    if !event.node.is_empty() {
        tree::set(&mut source, &["host"], event.node);
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": event_namespace(event)},
        "involvedObject": involved_object, "reason": event.reason, "message": message, "source": source,
        "firstTimestamp": now.rfc3339(), "lastTimestamp": now.rfc3339(), "count": 1,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reportingComponent": event.component, "reportingInstance": event.node,
    });
    let Some(resource) = state.resources.preferred("", "events").cloned() else {
        return name;
    };
    let target = Target {
        resource: &resource,
        namespace: event_namespace(event),
        name: "",
    };
    let mut context = event_context(event);
    // Errors are ignored: a terminating namespace rejects new events.
    let _ = write::decode(state, &resource, object, &mut context)
        .and_then(|object| write::create(state, &target, object, &mut context));
    name
}

/// Increases the count of a previous event. Returns false if it no longer exists.
fn increase_count(
    state: &mut State,
    event: &NewEvent<'_>,
    before: &RecordedEvent,
    message: &str,
    now: Instant,
) -> bool {
    let Some(resource) = state.resources.preferred("", "events").cloned() else {
        return false;
    };
    let target = Target {
        resource: &resource,
        namespace: event_namespace(event),
        name: &before.name,
    };
    let mut context = event_context(event);
    let result = write::update(state, &target, &mut context, false, &mut |_, live, _| {
        let mut event = live.cloned().unwrap_or_default();
        tree::set(&mut event, &["count"], before.count + 1);
        tree::set(&mut event, &["lastTimestamp"], now.rfc3339());
        tree::set(&mut event, &["message"], message);
        Ok(event)
    });
    result.is_ok()
}

/// Deletes expired events.
fn delete_expired(state: &mut State, now: Instant) {
    while let Some((at, _)) = state.events.expiry.front()
        && now.since(*at) > EVENT_TTL
        && let Some((_, key)) = state.events.expiry.pop_front()
    {
        let Some(event) = state.store.get("events", &key) else {
            continue;
        };
        let last = Instant::parse(tree::text(&event.value(), &["lastTimestamp"]));
        if last.is_none_or(|last| now.since(last) > EVENT_TTL) {
            state.store.remove(&"events".into(), &key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Options};

    fn record_all(events: &[(u64, &str)]) -> Vec<String> {
        let cluster = Cluster::new(Options {
            events: true,
            ..Options::default()
        });
        let about = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u"}});
        for (wait, text) in events {
            cluster.advance(Duration::from_secs(*wait));
            cluster.with(|state| record(state, &NewEvent::normal("kubelet", &about, "R", text)));
        }
        cluster.with(|state| {
            let mut all: Vec<String> = state
                .store
                .all("events")
                .map(|event| event.value())
                .map(|event| format!("{} {}", event["count"], tree::text(&event, &["message"])))
                .collect();
            all.sort();
            all
        })
    }

    #[test]
    fn repeated_events_increase_the_count() {
        assert_eq!(record_all(&[(0, "a"), (1, "a"), (1, "b")]), ["1 b", "2 a"]);
    }

    #[test]
    fn similar_events_are_aggregated() {
        let texts: Vec<String> = (0..14).map(|at| format!("{at:02}")).collect();
        let events: Vec<(u64, &str)> = texts.iter().map(|text| (1, text.as_str())).collect();
        let all = record_all(&events);
        assert_eq!(all.len(), 10);
        assert!(
            all.contains(&"5 (combined from similar events): 13".to_owned()),
            "{all:?}"
        );
    }

    #[test]
    fn events_are_rate_limited_and_expire() {
        let flood: Vec<(u64, &str)> = (0..100).map(|_| (0, "a")).collect();
        assert_eq!(record_all(&flood), ["25 a"]);
        assert_eq!(record_all(&[(0, "a"), (4000, "b")]), ["1 b"]);
        assert_eq!(record_all(&[(0, "a"), (3000, "a"), (1000, "b")]), ["1 b", "2 a"]);
    }
}
