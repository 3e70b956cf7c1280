//! Builds a plan from steps and errors. Leaves out a step that failed recently, and writes a status only if
//! it differs.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Conditions, Kind, ObjectMeta, Reason, Resource, Status,
};

use crate::plan::{Action, Event, NewStatus, Plan, Precondition, Requeue, Step};
use crate::{ReconcileError, Snapshot, Subject};

/// Steps and errors collected so far.
#[derive(Debug)]
pub(crate) struct PlanBuilder<'a> {
    snapshot: &'a Snapshot,
    object: Precondition,
    steps: Vec<Step>,
    /// Events that follow the status.
    events_after_status: Vec<Step>,
    error: Option<ReconcileError>,
    requeue: Requeue,
}

/// A new status, to be written if it differs from the old one.
pub(super) struct StatusUpdate<'a, T> {
    pub(super) old: &'a T,
    pub(super) new: T,
    /// Types of the conditions whose changes are reported as events.
    pub(super) events: &'a [ConditionType],
    pub(super) wrap: fn(T) -> NewStatus,
}

impl<'a> PlanBuilder<'a> {
    /// Creates an empty plan for one of our objects.
    pub(crate) fn for_object<S: Kind>(snapshot: &'a Snapshot, object: &Resource<S>) -> Self {
        let subject = Subject::Object(S::KIND, object.metadata.name.clone());
        Self::for_subject(snapshot, subject, &object.metadata)
    }

    /// Creates an empty plan for any subject.
    pub(crate) fn for_subject(snapshot: &'a Snapshot, subject: Subject, metadata: &ObjectMeta) -> Self {
        Self {
            snapshot,
            object: Precondition::for_object(subject, metadata),
            steps: Vec::new(),
            events_after_status: Vec::new(),
            error: None,
            requeue: Requeue::OnEvent,
        }
    }

    /// Returns the observed version of the object.
    pub(crate) fn object(&self) -> &Precondition {
        &self.object
    }

    /// Adds an action.
    pub(crate) fn add(&mut self, action: Action, reason: Reason) {
        self.steps.push(Step { action, reason });
    }

    /// Adds an action and an event about it.
    pub(crate) fn add_with_event(&mut self, action: Action, reason: &Reason, message: String) {
        self.add(action, reason.clone());
        self.add_event(false, reason.clone(), message);
    }

    pub(crate) fn add_event(&mut self, warning: bool, reason: Reason, message: String) {
        let event = Event {
            about: self.object.clone(),
            warning,
            reason: reason.clone(),
            message,
        };
        self.add(Action::Event(event), reason);
    }

    /// Adds an event that is sent after the status was written, so that the event is not repeated while the
    /// status cannot be written.
    pub(crate) fn add_event_after_status(&mut self, warning: bool, reason: Reason, message: String) {
        let before = self.steps.len();
        self.add_event(warning, reason, message);
        self.events_after_status.extend(self.steps.drain(before..));
    }

    /// Records an error. Only the first one is reported.
    pub(crate) fn fail(&mut self, error: ReconcileError) {
        self.requeue = earlier(self.requeue, error.class().requeue());
        self.error.get_or_insert(error);
    }

    /// Returns the value of a result, or records its error.
    pub(crate) fn check<T>(&mut self, result: Result<T, ReconcileError>) -> Option<T> {
        result.map_err(|error| self.fail(error)).ok()
    }

    /// Requeues the subject, unless it is requeued earlier.
    pub(crate) fn requeue(&mut self, requeue: Requeue) {
        self.requeue = earlier(self.requeue, requeue);
    }

    /// Returns the first error.
    pub(crate) fn error(&self) -> Option<&ReconcileError> {
        self.error.as_ref()
    }

    /// Returns the steps so far.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Removes the step that failed recently and all steps after it, until the step may be retried. The
    /// failure is reported as the error of the plan.
    pub(crate) fn drop_failed_steps(&mut self) {
        let subject = &self.object.subject;
        let mut steps = self.steps.iter().enumerate();
        let failed = steps.find_map(|(at, step)| Some((at, self.snapshot.failure(subject, &step.action)?)));
        if let Some((at, failure)) = failed {
            let prefix = failure.action.failure_prefix();
            self.steps.truncate(at);
            self.requeue = earlier(self.requeue, Requeue::At(failure.retry_at));
            self.error.get_or_insert(ReconcileError::Failed {
                prefix,
                message: failure.message.clone(),
                class: failure.class,
            });
        }
    }

    /// Returns the plan without a status.
    pub(crate) fn plan(mut self) -> Plan {
        self.drop_failed_steps();
        Plan {
            subject: self.object.subject,
            steps: self.steps,
            requeue: self.requeue,
        }
    }

    /// Returns the plan with the status, if it differs from the old one.
    pub(super) fn plan_with_status<T: Status>(mut self, update: StatusUpdate<'_, T>) -> Plan {
        let StatusUpdate {
            old,
            new,
            events,
            wrap,
        } = update;
        if *old == new {
            return self.plan();
        }
        let changed = changed_conditions(old.conditions(), new.conditions(), events);
        let write = Action::WriteStatus {
            object: self.object.clone(),
            status: wrap(new),
        };
        self.add(write, Reason::StatusChanged);
        self.steps.append(&mut self.events_after_status);
        for condition in changed {
            let warning = !condition.is_true() && condition.kind != ConditionType::InUse;
            let plain = format!("{} is {:?}", condition.kind, condition.status);
            let message = if condition.message.is_empty() {
                plain
            } else {
                condition.message
            };
            self.add_event(warning, condition.reason, message);
        }
        self.plan()
    }
}

/// Returns the conditions of these types with a changed status or reason. A new condition counts only if it
/// is false.
fn changed_conditions(old: &Conditions, new: &Conditions, types: &[ConditionType]) -> Vec<Condition> {
    let changed = |kind: &ConditionType| {
        let now = new.find(kind)?;
        let is_changed = match old.find(kind) {
            Some(was) => (was.status, &was.reason) != (now.status, &now.reason),
            None => now.status == ConditionStatus::False && *kind != ConditionType::InUse,
        };
        is_changed.then(|| now.clone())
    };
    types.iter().filter_map(changed).collect()
}

/// Returns the earlier of two requeues.
fn earlier(a: Requeue, b: Requeue) -> Requeue {
    match (a, b) {
        (Requeue::OnEvent, other) | (other, Requeue::OnEvent) => other,
        (Requeue::At(a), Requeue::At(b)) => Requeue::At(a.min(b)),
        (Requeue::Immediately, _) | (_, Requeue::Immediately) => Requeue::Immediately,
        (Requeue::At(time), _) | (_, Requeue::At(time)) => Requeue::At(time),
        (Requeue::Backoff, Requeue::Backoff) => Requeue::Backoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_requeue_applies() {
        let at = |second| Requeue::At(jiff::Timestamp::from_second(second).unwrap());
        let check = |a, b, expected| {
            assert_eq!(earlier(a, b), expected);
            assert_eq!(earlier(b, a), expected);
        };
        check(Requeue::OnEvent, Requeue::Backoff, Requeue::Backoff);
        check(Requeue::OnEvent, at(1), at(1));
        check(at(1), at(2), at(1));
        check(at(1), Requeue::Immediately, Requeue::Immediately);
        check(at(1), Requeue::Backoff, at(1));
        check(Requeue::Immediately, Requeue::Backoff, Requeue::Immediately);
    }
}
