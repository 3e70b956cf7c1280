//! Checks `ObservedGeneration`, `TransitionTime` and, for the status, `MinimalPlan`.

use jiff::Timestamp;
use mainstay_api::{Conditions, Kind, Resource, Status};
use mainstay_mesh::plan::NewStatus;
use mainstay_mesh::{Plan, Snapshot};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    let name = plan.subject.name();
    match plan.status() {
        None => {}
        Some(NewStatus::Istio(status)) => compare(snapshot.now, snapshot.istios().get(name), status, found),
        Some(NewStatus::Revision(status)) => {
            compare(snapshot.now, snapshot.revisions().get(name), status, found);
        }
        Some(NewStatus::Tag(status)) => compare(snapshot.now, snapshot.tags().get(name), status, found),
        Some(NewStatus::Cni(status)) => compare(snapshot.now, snapshot.cnis().get(name), status, found),
        Some(NewStatus::ZTunnel(status)) => {
            compare(snapshot.now, snapshot.ztunnels().get(name), status, found);
        }
    }
}

fn compare<S: Kind>(now: Timestamp, object: Option<&Resource<S>>, new: &S::Status, found: &mut Findings<'_>) {
    let Some(object) = object else {
        found.expect(Invariant::WritePreconditions, false, || {
            "the status of an object that does not exist".into()
        });
        return;
    };
    let (old, observed) = (object.status.observed_generation(), new.observed_generation());
    let generation = object.metadata.generation;
    found.expect(
        Invariant::ObservedGeneration,
        observed >= old && observed <= generation,
        || format!("observedGeneration {old} becomes {observed} at generation {generation}"),
    );
    found.expect(Invariant::MinimalPlan, object.status != *new, || {
        "the status is unchanged".into()
    });
    check_times(now, object.status.conditions(), new.conditions(), found);
}

fn check_times(now: Timestamp, old: &Conditions, new: &Conditions, found: &mut Findings<'_>) {
    for condition in &new.0 {
        let was = old.find(&condition.kind);
        let holds = match was {
            Some(was) if was.status == condition.status => {
                was.last_transition_time == condition.last_transition_time
            }
            _ => condition
                .last_transition_time
                .is_some_and(|time| time.timestamp().as_second() == now.as_second()),
        };
        found.expect(Invariant::TransitionTime, holds, || {
            let was = was.map(|was| (was.status, was.last_transition_time));
            format!(
                "{}: {was:?} becomes {:?}",
                condition.kind,
                (condition.status, condition.last_transition_time)
            )
        });
    }
}
