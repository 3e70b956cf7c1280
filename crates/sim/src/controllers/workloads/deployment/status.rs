//! Status of a Deployment: counters and conditions.

use serde_json::{Value, json};

use super::super::{RequeueAt, condition};
use super::Rollout;
use super::set::ReplicaSet;
use crate::clock::Instant;
use crate::status::Result;
use crate::tree;

const AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// Returns whether the Deployment has a progress deadline. The maximum integer disables it.
pub(super) fn has_deadline(deployment: &Value) -> bool {
    tree::int(deployment, &["spec", "progressDeadlineSeconds"])
        .is_some_and(|seconds| seconds != i64::from(i32::MAX))
}

fn counter(status: &Value, field: &str) -> i64 {
    tree::int(status, &[field]).unwrap_or(0)
}

impl Rollout<'_> {
    fn status(&self) -> Value {
        self.deployment
            .get("status")
            .cloned()
            .unwrap_or_else(|| json!({}))
    }

    fn is_complete_with(&self, status: &Value) -> bool {
        let want = self.replicas();
        let generation = tree::int(&self.deployment, &["metadata", "generation"]).unwrap_or(0);
        ["updatedReplicas", "replicas", "availableReplicas"]
            .iter()
            .all(|field| counter(status, field) == want)
            && counter(status, "observedGeneration") >= generation
    }

    /// Returns whether the rollout is complete according to the stored status.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete_with(&self.status())
    }

    /// Returns the status with the current counters and the current condition `Available`.
    fn calculate_status(&self) -> Value {
        let sum = |field: &str| self.all_sets().map(|set| set.status_field(field)).sum::<i64>();
        let available = sum("availableReplicas");
        let mut status = json!({});
        let numbers = [
            ("availableReplicas", available),
            ("collisionCount", counter(&self.status(), "collisionCount")),
            (
                "observedGeneration",
                tree::int(&self.deployment, &["metadata", "generation"]).unwrap_or(0),
            ),
            ("readyReplicas", sum("readyReplicas")),
            ("replicas", sum("replicas")),
            ("unavailableReplicas", (self.total_replicas() - available).max(0)),
            (
                "updatedReplicas",
                self.new.as_ref().map_or(0, |new| new.status_field("replicas")),
            ),
        ];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            tree::set(&mut status, &[field], number);
        }
        let known = |set: &ReplicaSet| tree::get(&set.value, &["status", "terminatingReplicas"]).is_some();
        if self.all_sets().all(known) {
            tree::set(&mut status, &["terminatingReplicas"], sum("terminatingReplicas"));
        }
        let mut conditions = tree::list(&self.deployment, &["status", "conditions"]).to_vec();
        let now = self.state.now();
        condition::set(
            &mut conditions,
            if available >= self.replicas() - self.max_unavailable() {
                let text = "Deployment has minimum availability.";
                condition::new(now, "Available", "True", "MinimumReplicasAvailable", text)
            } else {
                let text = "Deployment does not have minimum availability.";
                condition::new(now, "Available", "False", "MinimumReplicasUnavailable", text)
            },
        );
        tree::set(&mut status, &["conditions"], conditions);
        status
    }

    /// Writes the status without evaluating the progress.
    pub(super) fn write_plain_status(&mut self) -> Result<RequeueAt> {
        let status = self.calculate_status();
        self.write_status(status)?;
        Ok(None)
    }

    fn write_status(&mut self, status: Value) -> Result<bool> {
        if self.deployment.get("status") == Some(&status) {
            return Ok(false);
        }
        tree::set(&mut self.deployment, &["status"], status);
        self.store_status()?;
        Ok(true)
    }

    /// Evaluates the progress and writes the status. Returns the time at which to check the deadline.
    pub(super) fn sync_rollout_status(&mut self) -> Result<RequeueAt> {
        let mut status = self.calculate_status();
        let mut conditions = tree::list(&status, &["conditions"]).to_vec();
        self.evaluate_progress(&status, &mut conditions);
        match self.replica_failure() {
            Some(failure) => condition::set(&mut conditions, failure),
            None => condition::remove(&mut conditions, "ReplicaFailure"),
        }
        tree::set(&mut status, &["conditions"], conditions);
        self.write_status(status)?;
        Ok(self.next_deadline_check())
    }

    fn evaluate_progress(&self, status: &Value, conditions: &mut Vec<Value>) {
        if !has_deadline(&self.deployment) {
            condition::remove(conditions, "Progressing");
            return;
        }
        let current = condition::find(
            tree::list(&self.deployment, &["status", "conditions"]),
            "Progressing",
        );
        let is_finished = counter(status, "replicas") == counter(status, "updatedReplicas")
            && current.is_some_and(|one| tree::text(one, &["reason"]) == AVAILABLE);
        if is_finished {
            return;
        }
        let now = self.state.now();
        let text = |what: &str| match &self.new {
            Some(set) => format!("ReplicaSet {:?} {what}", set.name()),
            None => format!("Deployment {:?} {what}", self.name()),
        };
        if self.is_complete_with(status) {
            let text = text("has successfully progressed.");
            condition::set(
                conditions,
                condition::new(now, "Progressing", "True", AVAILABLE, &text),
            );
        } else if self.has_progressed(status) {
            let text = text("is progressing.");
            let mut new = condition::new(now, "Progressing", "True", "ReplicaSetUpdated", &text);
            if let Some(current) = current {
                if tree::text(current, &["status"]) == "True" {
                    tree::copy(current, &mut new, &["lastTransitionTime"]);
                }
                // Removed, because setting a condition with the same status and reason keeps the old
                // update time.
                condition::remove(conditions, "Progressing");
            }
            condition::set(conditions, new);
        } else if has_timed_out(&self.deployment, conditions, now) {
            let text = text("has timed out progressing.");
            condition::set(
                conditions,
                condition::new(now, "Progressing", "False", TIMED_OUT, &text),
            );
        }
    }

    fn has_progressed(&self, status: &Value) -> bool {
        let before = self.status();
        let old_replicas = |status: &Value| counter(status, "replicas") - counter(status, "updatedReplicas");
        let has_increased = |field: &str| counter(status, field) > counter(&before, field);
        has_increased("updatedReplicas")
            || old_replicas(status) < old_replicas(&before)
            || has_increased("readyReplicas")
            || has_increased("availableReplicas")
    }

    /// Returns the condition `ReplicaFailure` of the new set, otherwise of an old set.
    fn replica_failure(&self) -> Option<Value> {
        let find_failure = |set: &ReplicaSet| {
            let conditions = tree::list(&set.value, &["status", "conditions"]);
            condition::find(conditions, "ReplicaFailure").cloned()
        };
        let found = self
            .new
            .as_ref()
            .and_then(find_failure)
            .or_else(|| self.old.iter().find_map(find_failure))?;
        let text = |field: &str| tree::text(&found, &[field]).to_owned();
        let mut failure = condition::new(
            self.state.now(),
            "ReplicaFailure",
            &text("status"),
            &text("reason"),
            &text("message"),
        );
        tree::copy(&found, &mut failure, &["lastTransitionTime"]);
        Some(failure)
    }

    fn next_deadline_check(&self) -> RequeueAt {
        let status = self.status();
        let current = condition::find(tree::list(&status, &["conditions"]), "Progressing")?;
        if !has_deadline(&self.deployment)
            || self.is_complete_with(&status)
            || tree::text(current, &["reason"]) == TIMED_OUT
        {
            return None;
        }
        let (from, seconds) = progress_deadline(&self.deployment, current)?;
        // One second after the deadline, because times in conditions have no fractions.
        Some(from.plus_seconds(seconds + 1)).filter(|at| *at > self.state.now())
    }
}

/// Returns the start of the deadline and its seconds.
fn progress_deadline(deployment: &Value, condition: &Value) -> Option<(Instant, i64)> {
    let from = Instant::parse(tree::text(condition, &["lastUpdateTime"]))?;
    let seconds = tree::int(deployment, &["spec", "progressDeadlineSeconds"])?;
    Some((from, seconds))
}

fn has_timed_out(deployment: &Value, conditions: &[Value], now: Instant) -> bool {
    let Some(current) = condition::find(conditions, "Progressing") else {
        return false;
    };
    match tree::text(current, &["reason"]) {
        AVAILABLE => false,
        TIMED_OUT => true,
        _ => progress_deadline(deployment, current)
            .is_some_and(|(from, seconds)| from.plus_seconds(seconds) < now),
    }
}
