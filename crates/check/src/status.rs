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
        Some(NewStatus::Istio(status)) => {
            check_status(snapshot.now, snapshot.istios().get(name), status, found);
        }
        Some(NewStatus::Revision(status)) => {
            check_status(snapshot.now, snapshot.revisions().get(name), status, found);
        }
        Some(NewStatus::Tag(status)) => check_status(snapshot.now, snapshot.tags().get(name), status, found),
        Some(NewStatus::Cni(status)) => check_status(snapshot.now, snapshot.cnis().get(name), status, found),
        Some(NewStatus::ZTunnel(status)) => {
            check_status(snapshot.now, snapshot.ztunnels().get(name), status, found);
        }
    }
}

fn check_status<S: Kind>(
    now: Timestamp,
    object: Option<&Resource<S>>,
    new: &S::Status,
    found: &mut Findings<'_>,
) {
    let Some(object) = object else {
        found.expect(Invariant::WritePreconditions, false, || {
            "the status is written although the object does not exist".into()
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
    check_transition_times(now, object.status.conditions(), new.conditions(), found);
}

fn check_transition_times(now: Timestamp, old: &Conditions, new: &Conditions, found: &mut Findings<'_>) {
    for condition in &new.0 {
        let previous = old.find(&condition.kind);
        let holds = match previous {
            Some(previous) if previous.status == condition.status => {
                previous.last_transition_time == condition.last_transition_time
            }
            _ => condition
                .last_transition_time
                .is_some_and(|time| time.timestamp().as_second() == now.as_second()),
        };
        found.expect(Invariant::TransitionTime, holds, || {
            let previous = previous.map(|previous| (previous.status, previous.last_transition_time));
            format!(
                "{}: {previous:?} becomes {:?}",
                condition.kind,
                (condition.status, condition.last_transition_time)
            )
        });
    }
}
