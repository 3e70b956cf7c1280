//! Watches: convert store events to lines of a watch response, until the deadline, a compaction or an
//! injected fault.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::Instant;
use crate::fault::Fault;
use crate::object::Object;
use crate::representation::{self, Representation};
use crate::resource::{Resource, Shape};
use crate::selector::Selector;
use crate::state::State;
use crate::status::Status;
use crate::store::{Event, EventKind};
use crate::table;
use crate::tree;

/// Interval between bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);

/// Parameters of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Watched resource.
    pub resource: Arc<Resource>,
    /// Watched namespace; empty for all namespaces.
    pub namespace: String,
    /// Selector of the watched objects.
    pub selector: Selector,
    /// Representation of objects in events.
    pub form: Representation,
    /// Whether the client requested bookmarks.
    pub bookmarks: bool,
    /// Whether the existing objects are sent first.
    pub initial: bool,
    /// Whether a bookmark marks the end of the initial events.
    pub bookmark_initial_end: bool,
    /// Version after which events are sent.
    pub from: u64,
    /// Time at which the watch ends.
    pub deadline: Instant,
    /// Injected fault.
    pub fault: Option<Fault>,
    /// Name of the client, for faults that are added later.
    pub client: String,
}

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    options: WatchOptions,
    seen: u64,
    sent: u64,
    columns_sent: bool,
    lines: VecDeque<Bytes>,
    ended: bool,
    next_bookmark: Instant,
}

impl Watch {
    /// Starts a watch. The initial events are read from the store immediately.
    #[must_use]
    pub fn begin(state: &State, options: WatchOptions) -> Self {
        let next_bookmark = state.now().plus(BOOKMARK_PERIOD);
        let seen = if options.initial {
            state.store.version()
        } else {
            options.from
        };
        let mut watch = Self {
            options,
            seen,
            sent: 0,
            columns_sent: false,
            lines: VecDeque::new(),
            ended: false,
            next_bookmark,
        };
        if watch.options.initial {
            watch.send_initial(state);
        }
        watch
    }

    /// Sets the injected fault after the start. The fault also applies to lines that are already queued.
    pub fn inject_fault(&mut self, fault: Option<Fault>) {
        let queued = std::mem::take(&mut self.lines);
        self.options.fault = fault;
        self.sent = 0;
        for line in queued {
            self.send_line(line);
        }
    }

    /// Returns the next line, or registers `waker` if there is none. Returns `None` when the watch has ended.
    pub fn poll(&mut self, state: &mut State, waker: &Waker) -> Poll<Option<Bytes>> {
        if let Some(line) = self.lines.pop_front() {
            return Poll::Ready(Some(line));
        }
        if self.ended || state.faults.has_crashed(&self.options.client) {
            return Poll::Ready(None);
        }
        self.queue_new_events(state);
        if let Some(line) = self.lines.pop_front() {
            return Poll::Ready(Some(line));
        }
        if self.ended || state.now() >= self.options.deadline || !self.is_served(state) {
            return Poll::Ready(None);
        }
        let namespace = self.options.namespace.as_str();
        state
            .store
            .register_waker(&self.options.resource.table, namespace, waker);
        Poll::Pending
    }

    /// Returns whether the watched resource is still served with the same definition. Builtin resources
    /// are always served.
    fn is_served(&self, state: &State) -> bool {
        let own = &self.options.resource;
        let Shape::Custom(custom) = &own.shape else {
            return true;
        };
        let now = state.resources.find(&own.group, &own.version, &own.plural);
        now.is_some_and(|now| matches!(&now.shape, Shape::Custom(now) if custom.is_unchanged(now)))
    }

    fn send_initial(&mut self, state: &State) {
        let resource = Arc::clone(&self.options.resource);
        let matching: Vec<Arc<Object>> = state
            .store
            .range(&resource.table, &self.options.namespace, None)
            .map(|(_, object)| Arc::clone(object))
            .filter(|object| self.options.selector.matches(object))
            .collect();
        for object in matching {
            self.send_event(state, "ADDED", &object);
        }
        if self.options.bookmark_initial_end {
            self.send_bookmark(state, true);
        }
    }

    fn queue_new_events(&mut self, state: &State) {
        let table = &self.options.resource.table;
        let Some(history) = state.store.history(table) else {
            return self.check_time(state);
        };
        let Some(events) = history.after(self.seen) else {
            self.expire(&Status::too_old(self.seen, history.compacted() + 1));
            return;
        };
        let events: Vec<Event> = events.cloned().collect();
        for event in events {
            if self.ended {
                return;
            }
            self.seen = event.version;
            if let Some((kind, object)) = self.selected_event(&event) {
                self.send_event(state, kind, &object);
            }
        }
        self.check_time(state);
    }

    /// Converts an event for a client that observes only the selected objects: an object that starts to match
    /// is added, an object that stops matching is deleted. Returns `None` if the event is not relevant.
    fn selected_event(&self, event: &Event) -> Option<(&'static str, Arc<Object>)> {
        let is_selected = |object: &Object| {
            (self.options.namespace.is_empty() || *object.meta().namespace == *self.options.namespace)
                && self.options.selector.matches(object)
        };
        let before = event.previous.as_ref().filter(|previous| is_selected(previous));
        let after =
            Some(&event.object).filter(|object| event.kind != EventKind::Deleted && is_selected(object));
        match (before, after) {
            (None, Some(now)) => Some(("ADDED", Arc::clone(now))),
            (Some(_), Some(now)) => Some(("MODIFIED", Arc::clone(now))),
            (Some(_), None) if event.kind == EventKind::Deleted => {
                Some(("DELETED", Arc::clone(&event.object)))
            }
            (Some(then), None) => Some(("DELETED", Arc::new(with_version(then, event.version)))),
            (None, None) => None,
        }
    }

    fn send_event(&mut self, state: &State, kind: &str, object: &Object) {
        let line = self.format_event(state, kind, object);
        self.send_line(line);
    }

    fn send_line(&mut self, line: Bytes) {
        if self.ended {
            return;
        }
        let number = self.sent;
        self.sent += 1;
        match self.options.fault {
            Some(Fault::DropWatch(after)) if number >= after => self.ended = true,
            Some(Fault::ExpireWatch(after)) if number >= after => {
                self.expire(&Status::too_old(self.seen, self.seen + 1));
            }
            Some(Fault::SkipEvent(at)) if number == at => {}
            Some(Fault::RepeatEvent(at)) if number == at => {
                self.lines.push_back(line.clone());
                self.lines.push_back(line);
            }
            _ => self.lines.push_back(line),
        }
    }

    fn format_event(&mut self, state: &State, kind: &str, object: &Object) -> Bytes {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        self.write_object(state, object, &mut out);
        out.extend_from_slice(b"}\n");
        out.into()
    }

    fn write_object(&mut self, state: &State, object: &Object, out: &mut Vec<u8>) {
        match self.options.form {
            Representation::Whole => representation::write_whole(&self.options.resource, object, out),
            Representation::Metadata => drop(serde_json::to_writer(out, &representation::partial(object))),
            Representation::Table => {
                let meta = json!({"resourceVersion": object.meta().version.to_string()});
                let shown = table::render(
                    state,
                    &self.options.resource,
                    &[object],
                    &meta,
                    !self.columns_sent,
                    table::Include::Metadata,
                );
                self.columns_sent = true;
                let _ = serde_json::to_writer(out, &shown);
            }
        }
    }

    fn check_time(&mut self, state: &State) {
        let closing = state.now() >= self.options.deadline;
        if self.options.bookmarks && !self.ended && (closing || state.now() >= self.next_bookmark) {
            self.next_bookmark = state.now().plus(BOOKMARK_PERIOD);
            self.seen = self.seen.max(state.store.version());
            self.send_bookmark(state, false);
        }
        self.ended |= closing;
    }

    fn send_bookmark(&mut self, state: &State, initial_end: bool) {
        let mut metadata = json!({"resourceVersion": self.seen.to_string()});
        if initial_end {
            tree::set(
                &mut metadata,
                &["annotations"],
                json!({"k8s.io/initial-events-end": "true"}),
            );
        }
        let resource = &self.options.resource;
        let mut object = match (self.options.form, &resource.shape) {
            (Representation::Metadata, _) => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"})
            }
            (_, Shape::Builtin(Some(id))) => state.schema.zero(*id).clone(),
            _ => json!({}),
        };
        if self.options.form != Representation::Metadata {
            tree::set(&mut object, &["kind"], &*resource.kind);
            tree::set(&mut object, &["apiVersion"], resource.api_version());
        }
        tree::set(&mut object, &["metadata"], metadata);
        self.queue_line("BOOKMARK", &object);
    }

    fn expire(&mut self, status: &Status) {
        self.queue_line("ERROR", &status.to_value());
        self.ended = true;
    }

    fn queue_line(&mut self, kind: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": kind, "object": object}));
        self.lines.push_back(line.into());
    }
}

fn with_version(object: &Object, version: u64) -> Object {
    let mut value = object.packed();
    crate::tree::set(&mut value, &["metadata", "resourceVersion"], version.to_string());
    Object::freeze(&value, object.fields())
}
