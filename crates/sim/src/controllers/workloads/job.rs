//! Controller for Jobs: creates pods up to the parallelism until the Job completes or fails.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::Index;
use super::pod::{Phase, Pod};
use super::{RequeueAt, condition};
use crate::clock::Instant;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("job-controller");
const TABLE: &str = "jobs.batch";
const INDEX_LABEL: &str = "batch.kubernetes.io/job-completion-index";
/// Back-off after the first failure in seconds. It doubles with each failure.
const INITIAL_BACKOFF: i64 = 10;
const MAX_BACKOFF: i64 = 600;
/// Maximum number of pods created per sync.
const BURST: i64 = 500;

/// Reason and message of a failure.
type Failure = (&'static str, &'static str);

/// State of one sync.
struct JobSync<'a> {
    job: &'a Value,
    pods: Vec<&'a Pod>,
    now: Instant,
}

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, job)) = actor::load(state, TABLE, key) else {
        return Ok(None);
    };
    let conditions = tree::list(&job, &["status", "conditions"]);
    let is_finished = ["Complete", "Failed"].iter().any(|kind| {
        condition::find(conditions, kind).is_some_and(|one| tree::text(one, &["status"]) == "True")
    });
    if is_finished || object.meta().deleting {
        return Ok(None);
    }
    let current = JobSync {
        job: &job,
        pods: index.pods_controlled_by(state, &object.meta().uid),
        now: state.now(),
    };
    current.sync_pods(state)
}

impl JobSync<'_> {
    fn spec(&self, field: &str) -> Option<i64> {
        tree::int(self.job, &["spec", field])
    }

    fn count(&self, test: impl Fn(&Pod) -> bool) -> i64 {
        i64::try_from(self.pods.iter().filter(|pod| test(pod)).count()).unwrap_or(0)
    }

    fn indexed(&self) -> bool {
        tree::text(self.job, &["spec", "completionMode"]) == "Indexed"
    }

    fn suspended(&self) -> bool {
        tree::flag(self.job, &["spec", "suspend"])
    }

    fn started(&self) -> Option<Instant> {
        Instant::parse(tree::text(self.job, &["status", "startTime"]))
    }

    /// Returns the number of succeeded pods. Pods of an indexed Job with the same index count once.
    fn succeeded(&self) -> i64 {
        if self.indexed() {
            let pods = self.pods.iter().filter(|pod| pod.phase == Phase::Succeeded);
            let indexes: BTreeSet<&str> = pods.filter_map(|pod| pod.meta().label(INDEX_LABEL)).collect();
            return i64::try_from(indexes.len()).unwrap_or(0);
        }
        self.count(|pod| pod.phase == Phase::Succeeded)
    }

    fn sync_pods(&self, state: &mut State) -> Result<RequeueAt> {
        let (succeeded, failed) = (self.succeeded(), self.count(|pod| pod.phase == Phase::Failed));
        let active = self.count(Pod::active);
        if let Some(failure) = self.failure(failed) {
            self.delete_active_pods(state)?;
            self.finish(state, succeeded, failed + active, Some(failure))?;
            return Ok(None);
        }
        if self.is_complete(succeeded, active) {
            self.delete_active_pods(state)?;
            self.finish(state, succeeded, failed, None)?;
            return Ok(None);
        }
        if self.suspended() {
            self.delete_active_pods(state)?;
            self.write_status(state, [0, succeeded, failed], Vec::new())?;
            return Ok(None);
        }
        let backoff_end = self.backoff_until(failed);
        let created = if backoff_end.is_some() {
            0
        } else {
            self.sync_active_pods(state, succeeded, active)?
        };
        self.write_status(state, [active + created, succeeded, failed], Vec::new())?;
        Ok(backoff_end.into_iter().chain(self.deadline()).min())
    }

    fn deadline(&self) -> Option<Instant> {
        let seconds = self.spec("activeDeadlineSeconds")?;
        Some(self.started().unwrap_or(self.now).plus_seconds(seconds))
    }

    /// Returns the reason and message if the Job has failed.
    fn failure(&self, failed: i64) -> Option<Failure> {
        let limit = self.spec("backoffLimit").unwrap_or(6);
        let on_failure = tree::text(self.job, &["spec", "template", "spec", "restartPolicy"]) == "OnFailure";
        let restarts: i64 = self
            .pods
            .iter()
            .filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending))
            .map(|pod| pod.restarts)
            .sum();
        let too_many_restarts = on_failure
            && (if limit == 0 {
                restarts > 0
            } else {
                restarts >= limit
            });
        if failed > limit || too_many_restarts {
            return Some((
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ));
        }
        let is_overdue =
            self.started().is_some() && !self.suspended() && self.deadline().is_some_and(|at| at <= self.now);
        is_overdue.then_some((
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ))
    }

    fn is_complete(&self, succeeded: i64, active: i64) -> bool {
        match self.spec("completions") {
            Some(completions) => succeeded >= completions,
            // A work queue is complete if a pod has succeeded and no pods are active.
            None => succeeded > 0 && active == 0,
        }
    }

    /// Returns the end of the back-off after failures, or `None` if a pod may be created now.
    fn backoff_until(&self, failed: i64) -> Option<Instant> {
        let last = self
            .pods
            .iter()
            .filter(|pod| pod.phase == Phase::Failed)
            .filter_map(|pod| pod.ended_at)
            .max()?;
        let backoff = INITIAL_BACKOFF << (failed - 1).clamp(0, 10);
        let until = last.plus_seconds(backoff.min(MAX_BACKOFF));
        Some(until).filter(|until| *until > self.now)
    }

    /// Creates or deletes pods to match the parallelism. Returns the difference to the number of active pods.
    fn sync_active_pods(&self, state: &mut State, succeeded: i64, active: i64) -> Result<i64> {
        let parallelism = self.spec("parallelism").unwrap_or(1);
        let required = match self.spec("completions") {
            Some(completions) => parallelism.min(completions - succeeded),
            None if succeeded > 0 => active,
            None => parallelism,
        };
        let surplus = usize::try_from(active - required).unwrap_or(0);
        for pod in self.pods.iter().filter(|pod| pod.active()).take(surplus) {
            ACTOR.delete(state, GroupResource::PODS, &pod.object)?;
        }
        // Terminating pods count toward the parallelism.
        let terminating = self.count(|pod| pod.deleting() && !pod.finished());
        let capacity = (required - active - terminating).clamp(0, BURST);
        let indexes: Vec<Option<i64>> = if self.indexed() {
            self.free_indexes(capacity)
        } else {
            (0..capacity).map(|_| None).collect()
        };
        let mut created = 0;
        for index in indexes {
            if state.is_paused() {
                break;
            }
            self.create_pod(state, index)?;
            created += 1;
        }
        Ok(created - i64::try_from(surplus).unwrap_or(0))
    }

    /// Returns the lowest indexes without a pod, except for failed pods.
    fn free_indexes(&self, capacity: i64) -> Vec<Option<i64>> {
        let used: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| pod.phase != Phase::Failed)
            .filter_map(|pod| pod.meta().label(INDEX_LABEL))
            .collect();
        let all = 0..self.spec("completions").unwrap_or(0);
        all.filter(|index| !used.contains(index.to_string().as_str()))
            .take(usize::try_from(capacity).unwrap_or(0))
            .map(Some)
            .collect()
    }

    fn create_pod(&self, state: &mut State, index: Option<i64>) -> Result<()> {
        let name = tree::text(self.job, &["metadata", "name"]);
        let template = tree::get(self.job, &["spec", "template"])
            .cloned()
            .unwrap_or_default();
        let owner = actor::controller_reference("batch/v1", "Job", self.job);
        let prefix = index.map_or_else(|| format!("{name}-"), |index| format!("{name}-{index}-"));
        let mut pod = actor::pod_from_template(&template, &prefix, &owner);
        if let Some(index) = index {
            for field in ["labels", "annotations"] {
                tree::set(&mut pod, &["metadata", field, INDEX_LABEL], index.to_string());
            }
            tree::set(&mut pod, &["spec", "hostname"], format!("{name}-{index}"));
        }
        let created = ACTOR.create(
            state,
            GroupResource::PODS,
            tree::text(self.job, &["metadata", "namespace"]),
            pod,
        )?;
        let text = format!("Created pod: {}", created.meta().name);
        ACTOR.record_and_trace(state, self.job, "SuccessfulCreate", &text);
        Ok(())
    }

    fn delete_active_pods(&self, state: &mut State) -> Result<()> {
        for pod in self.pods.iter().filter(|pod| pod.active()) {
            ACTOR.delete(state, GroupResource::PODS, &pod.object)?;
            let text = format!("Deleted pod: {}", pod.name());
            ACTOR.record_and_trace(state, self.job, "SuccessfulDelete", &text);
        }
        Ok(())
    }

    fn finish(&self, state: &mut State, succeeded: i64, failed: i64, failure: Option<Failure>) -> Result<()> {
        let success = ("CompletionsReached", "Reached expected number of succeeded pods");
        let (reason, text) = failure.unwrap_or(success);
        let kinds = if failure.is_some() {
            ["FailureTarget", "Failed"]
        } else {
            ["SuccessCriteriaMet", "Complete"]
        };
        let conditions = kinds.map(|kind| {
            let mut condition = condition::without_update_time(self.now, kind, "True", reason, text);
            tree::set(&mut condition, &["lastProbeTime"], self.now.rfc3339());
            condition
        });
        self.write_status(state, [0, succeeded, failed], conditions.into())?;
        match failure {
            Some((reason, text)) => ACTOR.warn(state, self.job, reason, text),
            None => ACTOR.record(state, self.job, "Completed", "Job completed"),
        }
        let result = if failure.is_some() { "failed" } else { "completed" };
        ACTOR.trace(
            state,
            format_args!("Job {} {result}", tree::text(self.job, &["metadata", "name"])),
        );
        Ok(())
    }

    fn write_status(
        &self,
        state: &mut State,
        [active, succeeded, failed]: [i64; 3],
        final_conditions: Vec<Value>,
    ) -> Result<()> {
        let mut conditions = tree::list(self.job, &["status", "conditions"]).to_vec();
        self.record_suspension(&mut conditions);
        let finished = final_conditions
            .last()
            .map(|condition| tree::text(condition, &["type"]).to_owned());
        for condition in final_conditions {
            condition::set(&mut conditions, condition);
        }
        let terminating = self.count(|pod| pod.deleting() && !pod.finished());
        let ready = self.count(|pod| pod.active() && pod.ready);
        let mut status = json!({"ready": ready, "terminating": terminating, "uncountedTerminatedPods": {}});
        if finished.is_some() {
            tree::set(&mut status, &["ready"], 0);
        }
        for (field, number) in [("active", active), ("succeeded", succeeded), ("failed", failed)] {
            if number > 0 {
                tree::set(&mut status, &[field], number);
            }
        }
        if !conditions.is_empty() {
            tree::set(&mut status, &["conditions"], conditions);
        }
        if !self.suspended() {
            let start = self.started().unwrap_or(self.now);
            tree::set(&mut status, &["startTime"], start.rfc3339());
        }
        if finished.as_deref() == Some("Complete") {
            tree::set(&mut status, &["completionTime"], self.now.rfc3339());
        }
        if self.indexed() {
            let indexes = self.completed_indexes();
            if !indexes.is_empty() {
                tree::set(&mut status, &["completedIndexes"], indexes);
            }
        }
        if self.job.get("status") == Some(&status) {
            return Ok(());
        }
        let mut job = self.job.clone();
        tree::set(&mut job, &["status"], status);
        ACTOR
            .update(state, GroupResource::new("batch", "jobs"), &job, "status")
            .map(drop)
    }

    /// Sets the condition `Suspended` if the Job was suspended or resumed.
    fn record_suspension(&self, conditions: &mut Vec<Value>) {
        let known =
            condition::find(conditions, "Suspended").map(|one| tree::text(one, &["status"]) == "True");
        let new = match (known, self.suspended()) {
            (Some(true), true) | (None | Some(false), false) => return,
            (_, true) => ("True", "JobSuspended", "Job suspended"),
            (_, false) => ("False", "JobResumed", "Job resumed"),
        };
        let mut condition = condition::without_update_time(self.now, "Suspended", new.0, new.1, new.2);
        tree::set(&mut condition, &["lastProbeTime"], self.now.rfc3339());
        condition::set(conditions, condition);
    }

    /// Formats the indexes of succeeded pods as ranges, such as `0,2-4`.
    fn completed_indexes(&self) -> String {
        let indexes: BTreeSet<i64> = self
            .pods
            .iter()
            .filter(|pod| pod.phase == Phase::Succeeded)
            .filter_map(|pod| pod.meta().label(INDEX_LABEL)?.parse().ok())
            .collect();
        format_ranges(&indexes)
    }
}

fn format_ranges(numbers: &BTreeSet<i64>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let format_range = |(start, end): &(i64, i64)| match end - start {
        0 => start.to_string(),
        1 => format!("{start},{end}"),
        _ => format!("{start}-{end}"),
    };
    ranges.iter().map(format_range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_formatted_as_ranges() {
        let check = |numbers: &[i64], expected: &str| {
            assert_eq!(format_ranges(&numbers.iter().copied().collect()), expected);
        };
        check(&[], "");
        check(&[0], "0");
        check(&[0, 1], "0,1");
        check(&[0, 2, 3, 4, 9], "0,2-4,9");
    }
}
