//! The fields of a pod that controllers use, such as phase, readiness and node. They are read once from
//! the stored object.

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

/// A pod with the fields that controllers use.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) object: Arc<Object>,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) ready_since: Option<Instant>,
    pub(super) created_at: Instant,
    pub(super) node: Box<str>,
    pub(super) ip: Box<str>,
    /// Maximum number of restarts of a container.
    pub(super) restarts: i64,
    pub(super) deletion_cost: i64,
    /// Time at which the last container terminated.
    pub(super) ended_at: Option<Instant>,
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
            phase: parse_phase(tree::text(&value, &["status", "phase"])),
            ready: ready.is_some_and(|ready| tree::text(ready, &["status"]) == "True"),
            ready_since: ready.and_then(|ready| Instant::parse(tree::text(ready, &["lastTransitionTime"]))),
            created_at: created_at(&value),
            node: tree::text(&value, &["spec", "nodeName"]).into(),
            ip: tree::text(&value, &["status", "podIP"]).into(),
            restarts: restarts.max().unwrap_or(0),
            deletion_cost: deletion_cost(&value),
            ended_at: ended_at(&value),
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

    /// Returns the time at which the pod is available: `min_ready` seconds after it became ready. It may
    /// be in the future. `None` if the pod is not ready.
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
pub(super) fn created_at(value: &Value) -> Instant {
    Instant::parse(tree::text(value, &["metadata", "creationTimestamp"])).unwrap_or_default()
}

fn parse_phase(text: &str) -> Phase {
    match text {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}

fn ended_at(value: &Value) -> Option<Instant> {
    tree::list(value, &["status", "containerStatuses"])
        .iter()
        .filter_map(|status| Instant::parse(tree::text(status, &["state", "terminated", "finishedAt"])))
        .max()
}

fn deletion_cost(value: &Value) -> i64 {
    let path = [
        "metadata",
        "annotations",
        "controller.kubernetes.io/pod-deletion-cost",
    ];
    tree::text(value, &path).parse().unwrap_or(0)
}
