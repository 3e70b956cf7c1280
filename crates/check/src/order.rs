//! Checks `MinimalPlan`, `StepOrder` and `FinalizerLast`: the steps of a plan as a sequence.

use mainstay_api::{Kind, ObjectKind, Resource, names};
use mainstay_mesh::plan::ReleaseKey;
use mainstay_mesh::snapshot::ReleaseFact;
use mainstay_mesh::{Action, Plan, Requeue, Snapshot, Subject, plan};

use crate::{Findings, Invariant};

pub(super) fn check(snapshot: &Snapshot, planned: &Plan, found: &mut Findings<'_>) {
    let replanned = plan(snapshot, &planned.subject);
    found.expect(Invariant::MinimalPlan, replanned == *planned, || {
        "planning again returns a different plan".into()
    });
    // An empty plan that is requeued at a time in the past would cause a loop.
    let loops = planned.is_empty() && matches!(planned.requeue, Requeue::At(time) if time <= snapshot.now);
    found.expect(Invariant::MinimalPlan, !loops, || {
        format!("an empty plan is requeued {:?}", planned.requeue)
    });
    check_changes(snapshot, planned, found);
    let ranks: Vec<u8> = planned.actions().filter_map(rank).collect();
    found.expect(Invariant::StepOrder, ranks.is_sorted(), || {
        format!("the ranks of the steps are not sorted: {ranks:?}")
    });
    let removes_finalizer = planned
        .actions()
        .any(|action| matches!(action, Action::RemoveFinalizer { .. }));
    if removes_finalizer {
        let remaining = remaining_releases(snapshot, &planned.subject);
        found.expect(Invariant::FinalizerLast, remaining.is_empty(), || {
            format!("the finalizer is removed although {remaining:?} may still be installed")
        });
    }
}

/// Returns the position of an action in the order of dependencies; `None` for events, on which no action
/// depends.
fn rank(action: &Action) -> Option<u8> {
    Some(match action {
        Action::AddFinalizer { .. }
        | Action::CreateRevision(_)
        | Action::UpdateRevision(_)
        | Action::Uninstall(_) => 0,
        Action::Install(release) if release.chart == names::BASE_CHART => 2,
        Action::Install(_) | Action::CreateTag(_) | Action::UpdateTag(_) | Action::DeleteTag(_) => 1,
        Action::DeleteRevision(_)
        | Action::AnnotateWebhook { .. }
        | Action::RelabelNamespace(_)
        | Action::MoveWorkload(_) => 3,
        Action::RemoveFinalizer { .. } | Action::Probe(_) => 4,
        Action::WriteStatus { .. } => 5,
        Action::Event(_) => return None,
    })
}

/// Checks that every step changes something.
fn check_changes(snapshot: &Snapshot, planned: &Plan, found: &mut Findings<'_>) {
    for action in planned.actions() {
        let is_noop = match action {
            Action::Install(release) => {
                snapshot.release(&release.key) == Some(&ReleaseFact::Applied(release.clone()))
            }
            Action::Uninstall(key) => snapshot.release(key) == Some(&ReleaseFact::Absent),
            Action::UpdateRevision(change) => {
                snapshot
                    .revisions()
                    .get(change.object.name())
                    .is_some_and(|revision| {
                        revision.spec == change.spec
                            && revision.metadata.owner_references == change.owner_references
                    })
            }
            Action::UpdateTag(change) => snapshot
                .tags()
                .get(change.object.name())
                .is_some_and(|tag| tag.spec == change.spec),
            _ => false,
        };
        found.expect(Invariant::MinimalPlan, !is_noop, || {
            format!("{action:?} changes nothing")
        });
    }
}

/// Returns the releases of the subject that may still be installed: those that the subject implies, and
/// those that are recorded.
fn remaining_releases(snapshot: &Snapshot, subject: &Subject) -> Vec<ReleaseKey> {
    let name = subject.name();
    let operator = snapshot.settings.operator_namespace.as_str();
    let is_default = name == names::DEFAULT_REVISION;
    let base = |chart| is_default.then(|| (operator.to_owned(), names::release(name, chart)));
    let (owner, installed) = match subject {
        Subject::Object(ObjectKind::IstioRevision, _) => {
            let revision = snapshot.revisions().get(name);
            let istiod = revision.map(|revision| {
                (
                    revision.spec.namespace.clone(),
                    names::release(name, names::ISTIOD_CHART),
                )
            });
            (
                uid(revision),
                istiod.into_iter().chain(base(names::BASE_CHART)).collect(),
            )
        }
        Subject::Object(ObjectKind::IstioRevisionTag, _) => {
            let tag = snapshot.tags().get(name);
            let namespace = tag
                .map(|tag| tag.status.istiod_namespace.clone())
                .filter(|namespace| !namespace.is_empty());
            let webhooks = namespace.map(|namespace| (namespace, names::release(name, names::TAGS_CHART)));
            (
                uid(tag),
                webhooks.into_iter().chain(base(names::BASE_CHART)).collect(),
            )
        }
        Subject::Object(ObjectKind::IstioCni, _) => {
            let cni = snapshot.cnis().get(name);
            (
                uid(cni),
                cni.map(|cni| (cni.spec.namespace.clone(), names::CNI_RELEASE.to_owned()))
                    .into_iter()
                    .collect(),
            )
        }
        Subject::Object(ObjectKind::ZTunnel, _) => {
            let ztunnel = snapshot.ztunnels().get(name);
            let release =
                ztunnel.map(|ztunnel| (ztunnel.spec.namespace.clone(), names::ZTUNNEL_RELEASE.to_owned()));
            (uid(ztunnel), release.into_iter().collect())
        }
        Subject::Object(ObjectKind::Istio, _)
        | Subject::Webhook(_)
        | Subject::Namespace(_)
        | Subject::Workload(_) => (String::new(), Vec::new()),
    };
    let known = snapshot.releases_of(&owner).map(|(key, _)| key.clone());
    let expected = installed.into_iter().map(|(namespace, name)| ReleaseKey {
        owner: owner.clone(),
        namespace,
        name,
    });
    let mut remaining: Vec<ReleaseKey> = known.chain(expected).collect();
    remaining.retain(|key| snapshot.release(key) != Some(&ReleaseFact::Absent));
    remaining
}

fn uid<S: Kind>(object: Option<&Resource<S>>) -> String {
    object
        .map(|object| object.metadata.uid.clone())
        .unwrap_or_default()
}
