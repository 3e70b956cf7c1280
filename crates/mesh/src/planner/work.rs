//! A plan in the making: takes steps and trouble, gives a plan that holds back what failed a moment ago and writes a status
//! only when it differs.

use mainstay_api::{
    Condition, ConditionStatus, ConditionType, Conditions, Kind, ObjectMeta, Reason, Resource, Status,
};

use crate::plan::{Action, Again, Event, NewStatus, Plan, Seen, Step};
use crate::{Snapshot, Subject, Trouble};

/// What is to be done so far, and what stands in the way.
#[derive(Debug)]
pub(super) struct Work<'a> {
    snapshot: &'a Snapshot,
    object: Seen,
    steps: Vec<Step>,
    /// What people hear once the status is written.
    news: Vec<Step>,
    trouble: Option<Trouble>,
    again: Again,
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
            object: Seen::of(subject, metadata),
            steps: Vec::new(),
            news: Vec::new(),
            trouble: None,
            again: Again::OnEvent,
        }
    }

    /// The object as it was seen.
    pub(super) fn object(&self) -> &Seen {
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
    pub(super) fn fail(&mut self, trouble: Trouble) {
        self.again = sooner(self.again, trouble.class().again());
        self.trouble.get_or_insert(trouble);
    }

    /// Takes what a step gave, or notes what stands in the way.
    pub(super) fn check<T>(&mut self, result: Result<T, Trouble>) -> Option<T> {
        result.map_err(|trouble| self.fail(trouble)).ok()
    }

    /// Looks again at this moment.
    pub(super) fn look_again(&mut self, again: Again) {
        self.again = sooner(self.again, again);
    }

    /// What stands in the way.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
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
            self.again = sooner(self.again, Again::At(failure.retry_at));
            self.trouble.get_or_insert(Trouble::Failed {
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
            again: self.again,
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
fn sooner(a: Again, b: Again) -> Again {
    match (a, b) {
        (Again::OnEvent, other) | (other, Again::OnEvent) => other,
        (Again::At(a), Again::At(b)) => Again::At(a.min(b)),
        (Again::Soon, _) | (_, Again::Soon) => Again::Soon,
        (Again::At(moment), _) | (_, Again::At(moment)) => Again::At(moment),
        (Again::Backoff, Again::Backoff) => Again::Backoff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sooner_moment_counts() {
        let at = |second| Again::At(jiff::Timestamp::from_second(second).unwrap());
        let check = |a, b, expected| {
            assert_eq!(sooner(a, b), expected);
            assert_eq!(sooner(b, a), expected);
        };
        check(Again::OnEvent, Again::Backoff, Again::Backoff);
        check(Again::OnEvent, at(1), at(1));
        check(at(1), at(2), at(1));
        check(at(1), Again::Soon, Again::Soon);
        check(at(1), Again::Backoff, at(1));
        check(Again::Soon, Again::Backoff, Again::Soon);
    }
}
