//! Checks `NoDeleteInUse` and `OneInjectorPerNamespace`: references to and readiness of every injector that a
//! step removes or installs.

use mainstay_api::{
    ConditionStatus, ConditionType, Istio, IstioRevision, IstioRevisionTag, ObjectKind, TargetKind, names,
    takes_precedence,
};
use mainstay_mesh::plan::{NewStatus, Release};
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::{Action, Plan, Snapshot, Subject, active_revision_name, grace_period};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, plan: &Plan, found: &mut Findings<'_>) {
    found.expect(
        Invariant::NoDeleteInUse,
        plan.is_empty() || snapshot.is_complete(),
        || "the plan has steps although not every source is listed".into(),
    );
    for action in plan.actions() {
        match action {
            Action::DeleteRevision(object) => check_revision_deletion(snapshot, plan, object.name(), found),
            Action::DeleteTag(object) => check_tag_deletion(snapshot, plan, object.name(), found),
            Action::Install(release) => check_installation(snapshot, plan, release, found),
            Action::WriteStatus {
                status: NewStatus::Tag(status),
                ..
            } => check_tag_target(snapshot, plan.subject.name(), &status.istio_revision, found),
            _ => {}
        }
    }
}

fn check_revision_deletion(snapshot: &Snapshot, plan: &Plan, name: &str, found: &mut Findings<'_>) {
    let references = snapshot.references();
    found.expect(Invariant::NoDeleteInUse, !references.uses_revision(name), || {
        format!(
            "{name} is deleted although {:?} refer to it",
            references.counts(name)
        )
    });
    let unreadable: Vec<_> = [
        Source::Namespaces,
        Source::Pods,
        Source::Objects(ObjectKind::IstioRevisionTag),
    ]
    .into_iter()
    .filter(|source| snapshot.readable(*source).is_err())
    .collect();
    found.expect(Invariant::NoDeleteInUse, unreadable.is_empty(), || {
        format!("{name} is deleted although {unreadable:?} cannot be read")
    });
    let revision = snapshot.revisions().get(name);
    let is_default_for_all = |revision: &IstioRevision| {
        name == names::DEFAULT_REVISION && revision.spec.enables_namespaces_by_default()
    };
    found.expect(
        Invariant::NoDeleteInUse,
        !revision.is_some_and(is_default_for_all),
        || format!("{name} serves all namespaces"),
    );
    found.expect(
        Invariant::NoDeleteInUse,
        is_expired(snapshot, plan, revision),
        || format!("{name} is deleted within its grace period"),
    );
}

/// Whether the revision is known to be unused for the whole grace period of its Istio.
fn is_expired(snapshot: &Snapshot, plan: &Plan, revision: Option<&IstioRevision>) -> bool {
    let istio = snapshot.istios().get(plan.subject.name());
    let condition = revision.map(|revision| revision.status.conditions.get(&ConditionType::InUse));
    let (Some(istio), Some(condition)) = (istio, condition) else {
        return false;
    };
    let since = condition
        .last_transition_time
        .filter(|_| condition.status == ConditionStatus::False);
    since.is_some_and(|since| since.after(grace_period(istio)) <= snapshot.now)
}

/// Checks that a tag in use is deleted only to free its name for the active revision of its Istio.
fn check_tag_deletion(snapshot: &Snapshot, plan: &Plan, name: &str, found: &mut Findings<'_>) {
    let istio = snapshot.istios().get(plan.subject.name());
    let active = istio.and_then(|istio| active_revision_name(snapshot, istio).ok());
    let frees_name = active.is_some_and(|active| active == name);
    let is_requested = istio.is_some_and(|istio| {
        let older = |other: &Istio| takes_precedence(&other.metadata, &istio.metadata);
        snapshot
            .requested_tags(istio)
            .iter()
            .any(|requested| requested == name)
            && !snapshot.istios_requesting(name).any(older)
    });
    let is_used = snapshot.references().uses_tag(name);
    found.expect(
        Invariant::NoDeleteInUse,
        frees_name || !(is_used || is_requested),
        || format!("tag {name} is deleted although it is in use or requested"),
    );
}

/// Checks that, of a revision and a tag with the same name, only the object with precedence is installed.
fn check_installation(snapshot: &Snapshot, plan: &Plan, release: &Release, found: &mut Findings<'_>) {
    let name = plan.subject.name();
    let (Some(revision), Some(tag)) = (snapshot.revisions().get(name), snapshot.tags().get(name)) else {
        return;
    };
    let has_no_precedence = match plan.subject {
        Subject::Object(ObjectKind::IstioRevision, _) => takes_precedence(&tag.metadata, &revision.metadata),
        Subject::Object(ObjectKind::IstioRevisionTag, _) => {
            takes_precedence(&revision.metadata, &tag.metadata)
        }
        _ => false,
    };
    found.expect(Invariant::OneInjectorPerNamespace, !has_no_precedence, || {
        format!(
            "{} serves a name that belongs to another object",
            release.key.name
        )
    });
}

/// Checks that a floating tag moves away from an existing revision only if the new revision is ready.
fn check_tag_target(snapshot: &Snapshot, name: &str, to: &str, found: &mut Findings<'_>) {
    let Some(tag) = snapshot.tags().get(name) else {
        return;
    };
    let moves = tag.status.istio_revision != to && tag.spec.target_ref.target() == TargetKind::Istio;
    let current = snapshot.revisions().get(&tag.status.istio_revision);
    let is_live =
        current.is_some_and(|revision| !revision.metadata.is_deleting() && !revision.spec.is_remote());
    let ready = snapshot.revisions().get(to).is_some_and(is_ready);
    found.expect(
        Invariant::OneInjectorPerNamespace,
        !(moves && is_live) || ready,
        || not_ready_message(tag, to),
    );
}

fn is_ready(revision: &IstioRevision) -> bool {
    revision.status.conditions.is_true(&ConditionType::Ready)
        && revision.status.observed_generation == revision.metadata.generation
}

fn not_ready_message(tag: &IstioRevisionTag, to: &str) -> String {
    format!(
        "moves from {} to {to}, which is not ready",
        tag.status.istio_revision
    )
}
