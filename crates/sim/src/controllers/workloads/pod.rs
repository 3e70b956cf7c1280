//! The facts about a pod that controllers use: phase, readiness and node, read once from the stored object.

use std::sync::Arc;

use serde_json::Value;

use crate::clock::Instant;
use crate::object::{Meta, Object};
use crate::tree;

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// A pod as used by controllers.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) object: Arc<Object>,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) ready_since: Option<Instant>,
    pub(super) created: Instant,
    pub(super) node: Box<str>,
    pub(super) ip: Box<str>,
    pub(super) restarts: i64,
    pub(super) deletion_cost: i64,
    /// Time at which the last container terminated.
    pub(super) ended: Option<Instant>,
}

impl Pod {
    pub(super) fn from_object(object: &Arc<Object>) -> Self {
        let value = object.packed();
        let ready = tree::list(&value, &["status", "conditions"])
            .iter()
            .find(|condition| tree::text(condition, &["type"]) == "Ready");
        let restarts = tree::list(&value, &["status", "containerStatuses"])
            .iter()
            .map(|status| tree::int(status, &["restartCount"]).unwrap_or(0));
        Self {
            phase: phase(tree::text(&value, &["status", "phase"])),
            ready: ready.is_some_and(|ready| tree::text(ready, &["status"]) == "True"),
            ready_since: ready.and_then(|ready| Instant::parse(tree::text(ready, &["lastTransitionTime"]))),
            created: created(&value),
            node: tree::text(&value, &["spec", "nodeName"]).into(),
            ip: tree::text(&value, &["status", "podIP"]).into(),
            restarts: restarts.max().unwrap_or(0),
            deletion_cost: cost(&value),
            ended: ended(&value),
            object: Arc::clone(object),
        }
    }

    pub(super) fn meta(&self) -> &Meta {
        self.object.meta()
    }

    pub(super) fn name(&self) -> &str {
        &self.meta().name
    }

    pub(super) fn deleting(&self) -> bool {
        self.meta().deleting
    }

    pub(super) fn finished(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns whether the pod is neither finished nor terminating.
    pub(super) fn active(&self) -> bool {
        !self.finished() && !self.deleting()
    }

    /// Returns the time at which the pod becomes available, given `min_ready` seconds of readiness; it may be
    /// in the future.
    pub(super) fn available_at(&self, min_ready: i64) -> Option<Instant> {
        if !self.ready {
            return None;
        }
        let since = self.ready_since.unwrap_or_default();
        Some(since.plus_seconds(min_ready.max(0)))
    }

    pub(super) fn available(&self, min_ready: i64, now: Instant) -> bool {
        self.available_at(min_ready).is_some_and(|at| at <= now)
    }
}

/// Returns `metadata.creationTimestamp`.
pub(super) fn created(value: &Value) -> Instant {
    Instant::parse(tree::text(value, &["metadata", "creationTimestamp"])).unwrap_or_default()
}

fn phase(text: &str) -> Phase {
    match text {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}

fn ended(value: &Value) -> Option<Instant> {
    tree::list(value, &["status", "containerStatuses"])
        .iter()
        .filter_map(|status| Instant::parse(tree::text(status, &["state", "terminated", "finishedAt"])))
        .max()
}

fn cost(value: &Value) -> i64 {
    let path = [
        "metadata",
        "annotations",
        "controller.kubernetes.io/pod-deletion-cost",
    ];
    tree::text(value, &path).parse().unwrap_or(0)
}
