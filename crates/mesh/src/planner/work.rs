//! A plan in the making: takes steps and trouble, gives a plan that holds back what failed a moment ago and writes a status
//! only when it differs.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Conditions, Kind, ObjectMeta, Reason, Resource, Status,
};

use crate::plan::{Action, Event, NewStatus, Plan, Precondition, Requeue, Step};
use crate::{ReconcileError, Snapshot, Subject};

/// What is to be done so far, and what stands in the way.
#[derive(Debug)]
pub(super) struct Work<'a> {
    snapshot: &'a Snapshot,
    object: Precondition,
    steps: Vec<Step>,
    /// What people hear once the status is written.
    news: Vec<Step>,
    trouble: Option<ReconcileError>,
    requeue: Requeue,
}

impl<'a> Work<'a> {
    /// On this object.
    pub(super) fn on<S: Kind>(snapshot: &'a Snapshot, object: &Resource<S>) -> Self {
        let subject = Subject::Object(S::KIND, object.metadata.name.clone());
        Self::on_subject(snapshot, subject, &object.metadata)
    }

    /// On this subject.
    pub(super) fn on_subject(snapshot: &'a Snapshot, subject: Subject, metadata: &ObjectMeta) -> Self {
        Self {
            snapshot,
            object: Precondition::for_object(subject, metadata),
            steps: Vec::new(),
            news: Vec::new(),
            trouble: None,
            requeue: Requeue::OnEvent,
        }
    }

    /// The object as it was seen.
    pub(super) fn object(&self) -> &Precondition {
        &self.object
    }

    /// Adds an action.
    pub(super) fn add(&mut self, action: Action, reason: Reason) {
        self.steps.push(Step { action, reason });
    }

    /// Adds an action, and tells people.
    pub(super) fn add_told(&mut self, action: Action, reason: &Reason, message: String) {
        self.add(action, reason.clone());
        self.tell(false, reason.clone(), message);
    }

    /// Tells people.
    pub(super) fn tell(&mut self, warning: bool, reason: Reason, message: String) {
        let event = Event {
            about: self.object.clone(),
            warning,
            reason: reason.clone(),
            message,
        };
        self.add(Action::Event(event), reason);
    }

    /// Tells people of something the status says, after it was written: whoever fails to write it tells nothing twice.
    pub(super) fn tell_after(&mut self, warning: bool, reason: Reason, message: String) {
        let before = self.steps.len();
        self.tell(warning, reason, message);
        self.news.extend(self.steps.drain(before..));
    }

    /// Something stands in the way. The first trouble is the one that is reported.
    pub(super) fn fail(&mut self, trouble: ReconcileError) {
        self.requeue = sooner(self.requeue, trouble.class().requeue());
        self.trouble.get_or_insert(trouble);
    }

    /// Takes what a step gave, or notes what stands in the way.
    pub(super) fn check<T>(&mut self, result: Result<T, ReconcileError>) -> Option<T> {
        result.map_err(|trouble| self.fail(trouble)).ok()
    }

    /// Looks again at this moment.
    pub(super) fn look_again(&mut self, requeue: Requeue) {
        self.requeue = sooner(self.requeue, requeue);
    }

    /// What stands in the way.
    pub(super) fn trouble(&self) -> Option<&ReconcileError> {
        self.trouble.as_ref()
    }

    /// The steps so far.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Drops the step that failed a moment ago and all that follow it: they wait until it may be tried again, and the failure is
    /// what is reported meanwhile.
    pub(super) fn hold_back(&mut self) {
        let subject = &self.object.subject;
        let mut held = self.steps.iter().enumerate();
        let held = held.find_map(|(at, step)| Some((at, self.snapshot.failure(subject, &step.action)?)));
        if let Some((at, failure)) = held {
            let prefix = failure.action.failure_prefix();
            self.steps.truncate(at);
            self.requeue = sooner(self.requeue, Requeue::At(failure.retry_at));
            self.trouble.get_or_insert(ReconcileError::Failed {
                prefix,
                message: failure.message.clone(),
                class: failure.class,
            });
        }
    }

    /// The plan without a status.
    pub(super) fn plan(mut self) -> Plan {
        self.hold_back();
        Plan {
            subject: self.object.subject,
            steps: self.steps,
            requeue: self.requeue,
        }
    }

    /// The plan with a status, if it differs from the one that is there; changes of the conditions `told` are told.
    pub(super) fn plan_with_status<T: Status>(
        mut self,
        (old, new): (&T, T),
        told: &[ConditionType],
        wrap: fn(T) -> NewStatus,
    ) -> Plan {
        if *old != new {
            let events = changes(old.conditions(), new.conditions(), told);
            let write = Action::WriteStatus {
                object: self.object.clone(),
                status: wrap(new),
            };
            self.add(write, Reason::StatusChanged);
            self.steps.append(&mut self.news);
            for condition in events {
                let warning = !condition.is_true() && condition.kind != ConditionType::InUse;
                let plain = format!("{} is {:?}", condition.kind, condition.status);
                let message = if condition.message.is_empty() {
                    plain
                } else {
                    condition.message
                };
                self.tell(warning, condition.reason, message);
            }
        }
        self.plan()
    }
}

/// Conditions whose status or reason changed and that people should hear of: what was never said before is news only when it is
/// bad.
fn changes(old: &Conditions, new: &Conditions, told: &[ConditionType]) -> Vec<Condition> {
    let news = |kind: &ConditionType| {
        let now = new.find(kind)?;
        let changed = match old.find(kind) {
            Some(was) => (was.status, &was.reason) != (now.status, &now.reason),
            None => now.status == ConditionStatus::False && *kind != ConditionType::InUse,
        };
        changed.then(|| now.clone())
    };
    told.iter().filter_map(news).collect()
}

/// Of two moments the one that comes first.
fn sooner(a: Requeue, b: Requeue) -> Requeue {
    match (a, b) {
        (Requeue::OnEvent, other) | (other, Requeue::OnEvent) => other,
        (Requeue::At(a), Requeue::At(b)) => Requeue::At(a.min(b)),
        (Requeue::Immediately, _) | (_, Requeue::Immediately) => Requeue::Immediately,
        (Requeue::At(moment), _) | (_, Requeue::At(moment)) => Requeue::At(moment),
        (Requeue::Backoff, Requeue::Backoff) => Requeue::Backoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sooner_moment_counts() {
        let at = |second| Requeue::At(jiff::Timestamp::from_second(second).unwrap());
        let check = |a, b, expected| {
            assert_eq!(sooner(a, b), expected);
            assert_eq!(sooner(b, a), expected);
        };
        check(Requeue::OnEvent, Requeue::Backoff, Requeue::Backoff);
        check(Requeue::OnEvent, at(1), at(1));
        check(at(1), at(2), at(1));
        check(at(1), Requeue::Immediately, Requeue::Immediately);
        check(at(1), Requeue::Backoff, at(1));
        check(Requeue::Immediately, Requeue::Backoff, Requeue::Immediately);
    }
}
