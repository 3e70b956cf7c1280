//! Jobs: create pods up to the parallelism until the Job completes or fails.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::act::{self, Actor};
use super::index::Index;
use super::pod::{Phase, Pod};
use super::{RequeueAt, condition};
use crate::clock::Instant;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("job-controller");
const TABLE: &str = "jobs.batch";
const PODS: (&str, &str) = ("", "pods");
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Back-off after the first failure in seconds; it doubles with each failure.
const INITIAL_BACKOFF: i64 = 10;
const MAX_BACKOFF: i64 = 600;
/// Maximum number of pods created per sync.
const BURST: i64 = 500;

/// Reason and message of a failure.
type Failure = (&'static str, &'static str);

/// The state of one sync.
struct Sync<'a> {
    job: &'a Value,
    pods: Vec<&'a Pod>,
    now: Instant,
}

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, job)) = act::load(state, TABLE, key) else {
        return Ok(None);
    };
    let conditions = tree::list(&job, &["status", "conditions"]);
    let over = ["Complete", "Failed"].iter().any(|kind| {
        condition::find(conditions, kind).is_some_and(|one| tree::text(one, &["status"]) == "True")
    });
    if over || object.meta().deleting {
        return Ok(None);
    }
    let look = Sync {
        job: &job,
        pods: index.pods_controlled_by(state, &object.meta().uid),
        now: state.now(),
    };
    look.work(state)
}

impl Sync<'_> {
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

    /// Returns the number of successes; each index of an indexed Job counts once.
    fn succeeded(&self) -> i64 {
        if self.indexed() {
            let done = self.pods.iter().filter(|pod| pod.phase == Phase::Succeeded);
            let done: BTreeSet<&str> = done.filter_map(|pod| pod.meta().label(INDEX)).collect();
            return i64::try_from(done.len()).unwrap_or(0);
        }
        self.count(|pod| pod.phase == Phase::Succeeded)
    }

    fn work(&self, state: &mut State) -> Result<RequeueAt> {
        let (succeeded, failed) = (self.succeeded(), self.count(|pod| pod.phase == Phase::Failed));
        let active = self.count(Pod::active);
        if let Some(failure) = self.failure(failed) {
            self.drop_active(state)?;
            self.finish(state, succeeded, failed + active, Some(failure))?;
            return Ok(None);
        }
        if self.complete(succeeded, active) {
            self.drop_active(state)?;
            self.finish(state, succeeded, failed, None)?;
            return Ok(None);
        }
        if self.suspended() {
            self.drop_active(state)?;
            self.report(state, [0, succeeded, failed], Vec::new())?;
            return Ok(None);
        }
        let pause = self.backoff_until(failed);
        let made = if pause.is_some() {
            0
        } else {
            self.make(state, succeeded, active)?
        };
        self.report(state, [active + made, succeeded, failed], Vec::new())?;
        Ok(pause.into_iter().chain(self.deadline()).min())
    }

    fn deadline(&self) -> Option<Instant> {
        let seconds = self.spec("activeDeadlineSeconds")?;
        Some(self.started().unwrap_or(self.now).plus_seconds(seconds))
    }

    fn failure(&self, failed: i64) -> Option<Failure> {
        let limit = self.spec("backoffLimit").unwrap_or(6);
        let on_failure = tree::text(self.job, &["spec", "template", "spec", "restartPolicy"]) == "OnFailure";
        let restarts: i64 = self
            .pods
            .iter()
            .filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending))
            .map(|pod| pod.restarts)
            .sum();
        let restarted_out = on_failure
            && (if limit == 0 {
                restarts > 0
            } else {
                restarts >= limit
            });
        if failed > limit || restarted_out {
            return Some((
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ));
        }
        let late =
            self.started().is_some() && !self.suspended() && self.deadline().is_some_and(|at| at <= self.now);
        late.then_some((
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ))
    }

    fn complete(&self, succeeded: i64, active: i64) -> bool {
        match self.spec("completions") {
            Some(completions) => succeeded >= completions,
            // A work queue: one success and no active pods.
            None => succeeded > 0 && active == 0,
        }
    }

    /// Returns the time at which the next pod may be created after failures.
    fn backoff_until(&self, failed: i64) -> Option<Instant> {
        let last = self
            .pods
            .iter()
            .filter(|pod| pod.phase == Phase::Failed)
            .filter_map(|pod| pod.ended)
            .max()?;
        let doubled = INITIAL_BACKOFF << (failed - 1).clamp(0, 10);
        let until = last.plus_seconds(doubled.min(MAX_BACKOFF));
        Some(until).filter(|until| *until > self.now)
    }

    fn make(&self, state: &mut State, succeeded: i64, active: i64) -> Result<i64> {
        let parallelism = self.spec("parallelism").unwrap_or(1);
        let wanted = match self.spec("completions") {
            Some(completions) => parallelism.min(completions - succeeded),
            None if succeeded > 0 => active,
            None => parallelism,
        };
        let surplus = usize::try_from(active - wanted).unwrap_or(0);
        for pod in self.pods.iter().filter(|pod| pod.active()).take(surplus) {
            ACTOR.delete(state, PODS, &pod.object)?;
        }
        // Terminating pods still count against the parallelism.
        let leaving = self.count(|pod| pod.deleting() && !pod.finished());
        let capacity = (wanted - active - leaving).clamp(0, BURST);
        let places: Vec<Option<i64>> = if self.indexed() {
            self.free_indexes(capacity)
        } else {
            (0..capacity).map(|_| None).collect()
        };
        let mut made = 0;
        for at in places {
            if state.is_paused() {
                break;
            }
            self.make_pod(state, at)?;
            made += 1;
        }
        Ok(made - i64::try_from(surplus).unwrap_or(0))
    }

    fn free_indexes(&self, capacity: i64) -> Vec<Option<i64>> {
        let taken: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| pod.phase != Phase::Failed)
            .filter_map(|pod| pod.meta().label(INDEX))
            .collect();
        let all = 0..self.spec("completions").unwrap_or(0);
        all.filter(|at| !taken.contains(at.to_string().as_str()))
            .take(usize::try_from(capacity).unwrap_or(0))
            .map(Some)
            .collect()
    }

    fn make_pod(&self, state: &mut State, at: Option<i64>) -> Result<()> {
        let name = tree::text(self.job, &["metadata", "name"]);
        let template = tree::get(self.job, &["spec", "template"])
            .cloned()
            .unwrap_or_default();
        let owner = act::controller_reference("batch/v1", "Job", self.job);
        let prefix = at.map_or_else(|| format!("{name}-"), |at| format!("{name}-{at}-"));
        let mut pod = act::pod_from_template(&template, &prefix, &owner);
        if let Some(at) = at {
            for field in ["labels", "annotations"] {
                tree::set(&mut pod, &["metadata", field, INDEX], at.to_string());
            }
            tree::set(&mut pod, &["spec", "hostname"], format!("{name}-{at}"));
        }
        let made = ACTOR.create(state, PODS, tree::text(self.job, &["metadata", "namespace"]), pod)?;
        let text = format!("Created pod: {}", made.meta().name);
        ACTOR.record_and_trace(state, self.job, "SuccessfulCreate", &text);
        Ok(())
    }

    fn drop_active(&self, state: &mut State) -> Result<()> {
        for pod in self.pods.iter().filter(|pod| pod.active()) {
            ACTOR.delete(state, PODS, &pod.object)?;
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
            let mut one = condition::plain(self.now, kind, "True", reason, text);
            tree::set(&mut one, &["lastProbeTime"], self.now.rfc3339());
            one
        });
        self.report(state, [0, succeeded, failed], conditions.into())?;
        match failure {
            Some((reason, text)) => ACTOR.warn(state, self.job, reason, text),
            None => ACTOR.record(state, self.job, "Completed", "Job completed"),
        }
        let end = if failure.is_some() { "failed" } else { "completed" };
        ACTOR.trace(
            state,
            format_args!("Job {} {end}", tree::text(self.job, &["metadata", "name"])),
        );
        Ok(())
    }

    fn report(
        &self,
        state: &mut State,
        [active, succeeded, failed]: [i64; 3],
        ends: Vec<Value>,
    ) -> Result<()> {
        let mut conditions = tree::list(self.job, &["status", "conditions"]).to_vec();
        self.note_suspension(&mut conditions);
        let finished = ends.last().map(|end| tree::text(end, &["type"]).to_owned());
        for end in ends {
            condition::set(&mut conditions, end);
        }
        let leaving = self.count(|pod| pod.deleting() && !pod.finished());
        let ready = self.count(|pod| pod.active() && pod.ready);
        let mut status = json!({"ready": ready, "terminating": leaving, "uncountedTerminatedPods": {}});
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
            let done = self.completed_indexes();
            if !done.is_empty() {
                tree::set(&mut status, &["completedIndexes"], done);
            }
        }
        if self.job.get("status") == Some(&status) {
            return Ok(());
        }
        let mut job = self.job.clone();
        tree::set(&mut job, &["status"], status);
        ACTOR.update(state, ("batch", "jobs"), &job, "status").map(drop)
    }

    fn note_suspension(&self, conditions: &mut Vec<Value>) {
        let known =
            condition::find(conditions, "Suspended").map(|one| tree::text(one, &["status"]) == "True");
        let new = match (known, self.suspended()) {
            (Some(true), true) | (None | Some(false), false) => return,
            (_, true) => ("True", "JobSuspended", "Job suspended"),
            (_, false) => ("False", "JobResumed", "Job resumed"),
        };
        let mut one = condition::plain(self.now, "Suspended", new.0, new.1, new.2);
        tree::set(&mut one, &["lastProbeTime"], self.now.rfc3339());
        condition::set(conditions, one);
    }

    /// Formats the succeeded indexes as ranges: `0,2-4`.
    fn completed_indexes(&self) -> String {
        let done: BTreeSet<i64> = self
            .pods
            .iter()
            .filter(|pod| pod.phase == Phase::Succeeded)
            .filter_map(|pod| pod.meta().label(INDEX)?.parse().ok())
            .collect();
        ranges(&done)
    }
}

fn ranges(numbers: &BTreeSet<i64>) -> String {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let spell = |(start, end): &(i64, i64)| match end - start {
        0 => start.to_string(),
        1 => format!("{start},{end}"),
        _ => format!("{start}-{end}"),
    };
    spans.iter().map(spell).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_formatted_as_ranges() {
        let check = |numbers: &[i64], expected: &str| {
            assert_eq!(ranges(&numbers.iter().copied().collect()), expected);
        };
        check(&[], "");
        check(&[0], "0");
        check(&[0, 1], "0,1");
        check(&[0, 2, 3, 4, 9], "0,2-4,9");
    }
}
