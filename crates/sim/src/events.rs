//! Records Event objects as client-go's recorder does: repeated events increase a count, many similar events
//! are aggregated, and events expire after an hour. Off unless [`crate::Options::events`] is set, because
//! there are many of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Instant;
use crate::context::Context;
use crate::state::State;
use crate::tree;
use crate::write::{self, Target};

/// Number of different messages about the same thing after which they are aggregated.
const AGGREGATE_THRESHOLD: usize = 10;
/// The period in which similar events are aggregated.
const AGGREGATE_WINDOW: Duration = Duration::from_mins(10);
/// Burst size of the rate limit per component and object.
const BURST: f64 = 25.0;
/// Time after which the rate limit allows one more event.
const REFILL: Duration = Duration::from_mins(5);
/// Time to live of an event.
const EVENT_TTL: Duration = Duration::from_hours(1);
/// Maximum number of keys in each cache.
const MAX_CACHED_KEYS: usize = 4096;

/// Something that happened to an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEvent<'a> {
    /// The reporting component, such as `deployment-controller`.
    pub(crate) from: &'a str,
    /// The node of the component, or empty.
    pub(crate) node: &'a str,
    /// The involved object, with `kind`, `apiVersion` and `metadata`.
    pub(crate) about: &'a Value,
    /// The field path within the object, or empty.
    pub(crate) part: &'a str,
    /// Whether the type is `Warning`.
    pub(crate) warning: bool,
    /// A machine-readable reason.
    pub(crate) reason: &'a str,
    /// The message.
    pub(crate) text: &'a str,
}

impl<'a> NewEvent<'a> {
    /// Creates an event of type `Normal`.
    pub(crate) fn normal(from: &'a str, about: &'a Value, reason: &'a str, text: &'a str) -> Self {
        Self {
            from,
            node: "",
            about,
            part: "",
            warning: false,
            reason,
            text,
        }
    }

    /// Creates an event of type `Warning`.
    pub(crate) fn warning(from: &'a str, about: &'a Value, reason: &'a str, text: &'a str) -> Self {
        Self {
            warning: true,
            ..Self::normal(from, about, reason, text)
        }
    }

    fn meta(&self, field: &str) -> &'a str {
        tree::text(self.about, &["metadata", field])
    }

    /// The key under which similar events are aggregated.
    fn aggregate_key(&self) -> String {
        let Self {
            from, part, reason, ..
        } = self;
        format!("{from}\n{}\n{part}\n{}\n{reason}", self.meta("uid"), self.warning)
    }
}

/// The caches of all components' recorders.
#[derive(Debug, Default)]
pub struct Recorder {
    aggregates: HashMap<String, Aggregate>,
    written: HashMap<String, Written>,
    buckets: HashMap<String, Bucket>,
    expiry: VecDeque<(Instant, Box<str>)>,
}

#[derive(Debug)]
struct Aggregate {
    last: Instant,
    texts: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Written {
    name: String,
    count: i64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Recorder {
    /// Returns the message to write and the key it is counted under.
    fn aggregate(&mut self, event: &NewEvent<'_>, now: Instant) -> (String, String) {
        let aggregate_key = event.aggregate_key();
        let record = self
            .aggregates
            .entry(aggregate_key.clone())
            .or_insert_with(|| Aggregate {
                last: now,
                texts: BTreeSet::new(),
            });
        if now.since(record.last) > AGGREGATE_WINDOW {
            record.texts.clear();
        }
        record.last = now;
        record.texts.insert(event.text.to_owned());
        if record.texts.len() < AGGREGATE_THRESHOLD {
            return (event.text.to_owned(), format!("{aggregate_key}\n{}", event.text));
        }
        record.texts.pop_first();
        (
            format!("(combined from similar events): {}", event.text),
            aggregate_key,
        )
    }

    /// Returns whether a component has exceeded its rate limit for an object.
    fn is_rate_limited(&mut self, event: &NewEvent<'_>, now: Instant) -> bool {
        let key = format!("{}\n{}", event.from, event.meta("uid"));
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
        for len in [self.aggregates.len(), self.written.len(), self.buckets.len()] {
            if len > MAX_CACHED_KEYS {
                self.aggregates.clear();
                self.written.clear();
                self.buckets.clear();
            }
        }
    }
}

/// Writes an event, if events are enabled.
pub(crate) fn record(state: &mut State, event: &NewEvent<'_>) {
    if !state.options.events {
        return;
    }
    let now = state.now();
    expire(state, now);
    state.events.limit_caches();
    let (text, key) = state.events.aggregate(event, now);
    let before = state.events.written.get(&key).cloned();
    let count = before.as_ref().map_or(1, |before| before.count + 1);
    if state.events.is_rate_limited(event, now) {
        return;
    }
    let again = before.filter(|before| increase_count(state, event, before, &text, now));
    let (name, count) = match again {
        Some(before) => (before.name, count),
        None => (create(state, event, &text, now), 1),
    };
    let location = crate::object::key(namespace(event), &name);
    state.events.expiry.push_back((now, location.into()));
    state.events.written.insert(key, Written { name, count });
}

/// Events about cluster-scoped objects are created in `default`.
fn namespace<'a>(event: &NewEvent<'a>) -> &'a str {
    match event.meta("namespace") {
        "" => "default",
        namespace => namespace,
    }
}

fn context(event: &NewEvent<'_>) -> Context {
    let mut context = Context::for_controller(event.from);
    if event.from.ends_with("-controller") {
        "kube-controller-manager".clone_into(&mut context.manager);
    }
    context
}

fn create(state: &mut State, event: &NewEvent<'_>, text: &str, now: Instant) -> String {
    let name = format!("{}.{:016x}", event.meta("name"), state.random.next_u64() >> 3);
    let mut about = json!({
        "kind": tree::text(event.about, &["kind"]), "apiVersion": tree::text(event.about, &["apiVersion"]),
        "name": event.meta("name"), "uid": event.meta("uid"), "resourceVersion": event.meta("resourceVersion"),
    });
    if !event.meta("namespace").is_empty() {
        tree::set(&mut about, &["namespace"], event.meta("namespace"));
    }
    if !event.part.is_empty() {
        tree::set(&mut about, &["fieldPath"], event.part);
    }
    let mut source = json!({"component": event.from});
    if !event.node.is_empty() {
        tree::set(&mut source, &["host"], event.node);
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace(event)},
        "involvedObject": about, "reason": event.reason, "message": text, "source": source,
        "firstTimestamp": now.rfc3339(), "lastTimestamp": now.rfc3339(), "count": 1,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reportingComponent": event.from, "reportingInstance": event.node,
    });
    let Some(resource) = state.resources.preferred("", "events").cloned() else {
        return name;
    };
    let target = Target {
        resource: &resource,
        namespace: namespace(event),
        name: "",
    };
    let mut context = context(event);
    // A terminating namespace accepts no new events; the event is dropped.
    let _ = write::decode(state, &resource, object, &mut context)
        .and_then(|object| write::create(state, &target, object, &mut context));
    name
}

/// Increases the count of a previous event; returns false if it no longer exists.
fn increase_count(
    state: &mut State,
    event: &NewEvent<'_>,
    before: &Written,
    text: &str,
    now: Instant,
) -> bool {
    let Some(resource) = state.resources.preferred("", "events").cloned() else {
        return false;
    };
    let target = Target {
        resource: &resource,
        namespace: namespace(event),
        name: &before.name,
    };
    let mut context = context(event);
    let done = write::update(state, &target, &mut context, false, &mut |_, live, _| {
        let mut event = live.cloned().unwrap_or_default();
        tree::set(&mut event, &["count"], before.count + 1);
        tree::set(&mut event, &["lastTimestamp"], now.rfc3339());
        tree::set(&mut event, &["message"], text);
        Ok(event)
    });
    done.is_ok()
}

/// Deletes expired events.
fn expire(state: &mut State, now: Instant) {
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

    fn recorded(events: &[(u64, &str)]) -> Vec<String> {
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
        assert_eq!(recorded(&[(0, "a"), (1, "a"), (1, "b")]), ["1 b", "2 a"]);
    }

    #[test]
    fn similar_events_are_aggregated() {
        let texts: Vec<String> = (0..14).map(|at| format!("{at:02}")).collect();
        let events: Vec<(u64, &str)> = texts.iter().map(|text| (1, text.as_str())).collect();
        let all = recorded(&events);
        assert_eq!(all.len(), 10);
        assert!(
            all.contains(&"5 (combined from similar events): 13".to_owned()),
            "{all:?}"
        );
    }

    #[test]
    fn events_are_rate_limited_and_expire() {
        let flood: Vec<(u64, &str)> = (0..100).map(|_| (0, "a")).collect();
        assert_eq!(recorded(&flood), ["25 a"]);
        assert_eq!(recorded(&[(0, "a"), (4000, "b")]), ["1 b"]);
        assert_eq!(recorded(&[(0, "a"), (3000, "a"), (1000, "b")]), ["1 b", "2 a"]);
    }
}
