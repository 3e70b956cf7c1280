//! Determines the migration state of a workload and the Istio that migrates it.
//!
//! References are resolved as in injection: by the labels of the namespace first, then by those of the pod
//! template. The Istio that owns the resolved revision migrates the workload.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{Istio, IstioRevision, IstioRevisionTag, ObjectKind, Reason, Time, UpdateStrategyType};

use super::MigrationSettings;
use crate::error::ErrorClass;
use crate::references::PodsByRevision;
use crate::snapshot::Namespace;
use crate::workload::{Workload, WorkloadKey, WorkloadKind};
use crate::{Snapshot, Subject, active_revision_name};

/// State of a workload in a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadState {
    /// Cannot be restarted yet: the namespace must be relabeled first, or the tag that the workload refers to
    /// has not moved yet.
    Waiting {
        /// Position in the order of the migration: lower numbers are migrated first.
        priority: i32,
    },
    /// Can be restarted as soon as a batch has capacity.
    Pending {
        /// Position in the order of the migration: lower numbers are migrated first.
        priority: i32,
    },
    /// Restarted on the target revision, but not ready there. Failed from `deadline` on.
    Started {
        /// End of the readiness timeout.
        deadline: Timestamp,
        /// Number of the batch in which the workload was restarted.
        batch: i32,
    },
    /// Restarted on the target revision and ready there.
    Finished {
        /// Number of the batch in which the workload was restarted.
        batch: i32,
    },
    /// The API server rejects the restart.
    Rejected,
    /// Not migrated, for this reason.
    Skipped(Reason),
}

/// Phase of a workload at a point in time, derived from its state. The status reports the number of
/// workloads in each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadPhase {
    /// Not restarted yet.
    Pending,
    /// Restarted, and within its readiness timeout.
    Moving,
    /// Ready on the target revision.
    Migrated,
    /// Not ready within its readiness timeout, or rejected by the API server.
    Failed,
    /// Excluded from the migration.
    Skipped,
}

impl WorkloadState {
    /// Returns the phase at `now`.
    #[must_use]
    pub fn phase(&self, now: Timestamp) -> WorkloadPhase {
        match self {
            Self::Waiting { .. } | Self::Pending { .. } => WorkloadPhase::Pending,
            Self::Started { deadline, .. } if *deadline > now => WorkloadPhase::Moving,
            Self::Started { .. } | Self::Rejected => WorkloadPhase::Failed,
            Self::Finished { .. } => WorkloadPhase::Migrated,
            Self::Skipped(_) => WorkloadPhase::Skipped,
        }
    }

    /// Returns the batch in which the workload was restarted.
    #[must_use]
    pub fn batch(&self) -> Option<i32> {
        match self {
            Self::Started { batch, .. } | Self::Finished { batch } => Some(*batch),
            Self::Waiting { .. } | Self::Pending { .. } | Self::Rejected | Self::Skipped(_) => None,
        }
    }
}

/// The revision to which an Istio migrates workloads, and the settings that the state of a workload depends
/// on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MigrationTarget {
    /// UID of the Istio.
    uid: String,
    /// Name of the target revision.
    pub(crate) revision: String,
    kinds: BTreeSet<WorkloadKind>,
    readiness_timeout: SignedDuration,
    /// Start of the migration. Earlier migration records belong to an earlier migration to the same
    /// revision.
    since: Timestamp,
}

/// Returns the target of an Istio's migration, or `None` if the Istio does not migrate workloads.
pub(crate) fn migration_target(snapshot: &Snapshot, istio: &Istio) -> Option<MigrationTarget> {
    let settings = MigrationSettings::from_istio(istio)?;
    let is_revision_based = istio.spec.strategy() == UpdateStrategyType::RevisionBased;
    if istio.metadata.is_deleting() || !is_revision_based {
        return None;
    }
    let revision = active_revision_name(snapshot, istio).ok()?;
    Some(MigrationTarget {
        uid: istio.metadata.uid.clone(),
        since: start_of_migration(istio, &revision),
        revision,
        kinds: settings.kinds,
        readiness_timeout: settings.readiness_timeout,
    })
}

/// Returns the start of the migration to a revision: the maximum time if it has not started, and the
/// minimum time if the status contains no migration.
fn start_of_migration(istio: &Istio, revision: &str) -> Timestamp {
    let written = istio.status.workload_migration.as_ref();
    let written = written.filter(|written| !written.target_revision.is_empty());
    match written {
        None => Timestamp::MIN,
        Some(written) if written.target_revision == revision => {
            written.start_time.map_or(Timestamp::MAX, Time::timestamp)
        }
        Some(_) => Timestamp::MAX,
    }
}

/// State of a workload, and the name of the Istio that migrates it.
pub(crate) struct AssignedState {
    pub(crate) istio: String,
    pub(crate) state: WorkloadState,
}

/// Returns the state of a workload, or `None` if it does not belong to a migration.
pub(crate) fn workload_state(
    snapshot: &Snapshot,
    key: &WorkloadKey,
    workload: &Workload,
) -> Option<AssignedState> {
    if workload.deleting {
        return None;
    }
    let by_namespace = snapshot.references().selected_by_namespace(key.namespace());
    let requested = if workload.is_opted_out() {
        None
    } else {
        by_namespace.or(workload.requested_revision())
    };
    let Some(requested) = requested else {
        return state_without_reference(snapshot, key);
    };
    let (revision, tag) = snapshot.resolve(requested)?;
    let (istio, target) = target_for(snapshot, revision)?;
    let candidate = Candidate {
        snapshot,
        key,
        workload,
        target,
        revision,
        tag,
        is_selected_by_namespace: by_namespace.is_some(),
    };
    Some(AssignedState {
        istio: istio.to_owned(),
        state: candidate.state()?,
    })
}

/// Returns the state of a workload that requests no proxy: skipped if it still has pods of an old revision.
fn state_without_reference(snapshot: &Snapshot, key: &WorkloadKey) -> Option<AssignedState> {
    let mut revisions = snapshot.references().pods_by_revision(key)?.keys();
    revisions.find_map(|revision| {
        let (istio, target) = target_for(snapshot, snapshot.revisions().get(revision)?)?;
        let is_old = **revision != *target.revision;
        is_old.then(|| AssignedState {
            istio: istio.to_owned(),
            state: WorkloadState::Skipped(Reason::NoReference),
        })
    })
}

/// A workload that refers to a revision whose Istio migrates workloads.
struct Candidate<'a> {
    snapshot: &'a Snapshot,
    key: &'a WorkloadKey,
    workload: &'a Workload,
    target: &'a MigrationTarget,
    /// The revision the workload refers to.
    revision: &'a IstioRevision,
    /// The tag through which it refers to the revision.
    tag: Option<&'a IstioRevisionTag>,
    /// Whether the labels of the namespace select the revision. Those of the pod template are ignored then.
    is_selected_by_namespace: bool,
}

impl Candidate<'_> {
    fn state(&self) -> Option<WorkloadState> {
        let empty = PodsByRevision::new();
        let pods = self.snapshot.references().pods_by_revision(self.key);
        let pods = pods.unwrap_or(&empty);
        let has_old_pods = pods.keys().any(|name| **name != *self.target.revision);
        let refers_to_target = self.revision.name() == self.target.revision;
        if refers_to_target && !has_old_pods && (!self.workload.retry || self.is_migrated(pods)) {
            return self.restarted_state(pods);
        }
        match (refers_to_target, self.tag) {
            (false, Some(tag)) => return self.tagged_state(tag, !pods.is_empty()),
            // A workload without pods needs no restart: new pods use the target once the namespace is
            // relabeled.
            (false, None) if self.is_selected_by_namespace && pods.is_empty() => return None,
            _ => {}
        }
        if let Some(reason) = self.skip_reason().or_else(|| self.not_injected_reason(pods)) {
            return Some(WorkloadState::Skipped(reason));
        }
        let needs_relabel = !refers_to_target && self.is_selected_by_namespace;
        if self.is_rejected(needs_relabel) {
            return Some(WorkloadState::Rejected);
        }
        if needs_relabel {
            let priority = self.workload.priority;
            return Some(WorkloadState::Waiting { priority });
        }
        self.started_state().or(Some(WorkloadState::Pending {
            priority: self.workload.priority,
        }))
    }

    /// Returns the state of a workload that refers to the target and has no pods of an old revision, or
    /// `None` if the operator did not restart it.
    fn restarted_state(&self, pods: &PodsByRevision) -> Option<WorkloadState> {
        let started = self.started_state()?;
        let finished = WorkloadState::Finished {
            batch: started.batch()?,
        };
        let injected = pods.get(self.target.revision.as_str()).copied();
        let injected = injected.unwrap_or_default();
        let desired = usize::try_from(self.workload.rollout.desired).unwrap_or_default();
        // A workload that was ready stays finished while some of its pods are replaced.
        let was_finished = self.snapshot.indexed_state(self.key) == Some(&finished);
        let has_all_pods = injected >= desired || (was_finished && injected > 0);
        Some(if self.workload.rollout.was_complete && has_all_pods {
            finished
        } else {
            started
        })
    }

    /// Whether all pods run the proxy of the target.
    fn is_migrated(&self, pods: &PodsByRevision) -> bool {
        let injected = pods
            .get(self.target.revision.as_str())
            .copied()
            .unwrap_or_default();
        let desired = usize::try_from(self.workload.rollout.desired).unwrap_or_default();
        self.workload.rollout.was_complete && injected >= desired
    }

    /// Returns the state after a restart on the target, or `None` if the operator did not restart the
    /// workload.
    fn started_state(&self) -> Option<WorkloadState> {
        let record = self.workload.record.as_ref()?;
        let is_current =
            record.revision == self.target.revision && record.started.timestamp() >= self.target.since;
        is_current.then(|| WorkloadState::Started {
            deadline: self.workload.deadline(record, self.target.readiness_timeout),
            batch: record.batch,
        })
    }

    /// Returns the state of a workload that refers to an old revision by a tag. It is never relabeled: if
    /// the tag refers to the Istio, the workload waits until the tag moves, otherwise it is skipped.
    fn tagged_state(&self, tag: &IstioRevisionTag, has_pods: bool) -> Option<WorkloadState> {
        if !has_pods {
            return None;
        }
        let owner = self.revision.metadata.controller();
        let owner = owner.map(|owner| owner.name.as_str());
        let target = &tag.spec.target_ref;
        let follows = target.kind == ObjectKind::Istio.name() && Some(target.name.as_str()) == owner;
        if !follows {
            return Some(WorkloadState::Skipped(Reason::PinnedByTag));
        }
        // The reason is reported before the tag moves, so that a preview contains it.
        let skipped = self.skip_reason().map(WorkloadState::Skipped);
        let priority = self.workload.priority;
        Some(skipped.unwrap_or(WorkloadState::Waiting { priority }))
    }

    fn skip_reason(&self) -> Option<Reason> {
        let namespace = self.snapshot.namespace(self.key.namespace());
        let is_namespace = |condition: fn(&Namespace) -> bool| namespace.is_some_and(condition);
        if self.workload.skip || is_namespace(|namespace| namespace.skip_migration) {
            return Some(Reason::SkippedByAnnotation);
        }
        if self.workload.invalid_annotation || is_namespace(|namespace| namespace.invalid_annotation) {
            return Some(Reason::InvalidAnnotation);
        }
        if !self.target.kinds.contains(&self.key.kind()) {
            return Some(Reason::KindNotSelected);
        }
        if self.workload.paused {
            return Some(Reason::WorkloadPaused);
        }
        if self.workload.on_delete {
            return Some(Reason::UpdatesOnDelete);
        }
        if self.workload.partitioned {
            return Some(Reason::UpdatesPartitioned);
        }
        if self.workload.host_network {
            return Some(Reason::HostNetwork);
        }
        is_namespace(|namespace| namespace.injection_disabled).then_some(Reason::InjectionDisabled)
    }

    /// Returns a reason to skip a workload whose pods run without a proxy, unless the operator has
    /// restarted it or a retry is requested. A restart would add a proxy to pods that had none, or
    /// injection would fail again for the same reason.
    fn not_injected_reason(&self, pods: &PodsByRevision) -> Option<Reason> {
        let runs_without_proxy = pods.is_empty() && self.workload.rollout.ready > 0;
        let is_ours = self.workload.retry || self.started_state().is_some();
        (runs_without_proxy && !is_ours).then_some(Reason::NotInjected)
    }

    fn is_rejected(&self, needs_relabel: bool) -> bool {
        let namespace = || Subject::Namespace(self.key.namespace().to_owned());
        is_rejected(self.snapshot, &Subject::Workload(self.key.clone()))
            || (needs_relabel && is_rejected(self.snapshot, &namespace()))
    }
}

/// Whether the last write to a subject failed with an error that a retry alone does not resolve.
pub(super) fn is_rejected(snapshot: &Snapshot, subject: &Subject) -> bool {
    let class = snapshot.last_failure(subject).map(|failure| failure.class);
    matches!(class, Some(ErrorClass::Other | ErrorClass::Validation))
}

/// A restart whose rollout is not complete.
pub(crate) struct PendingRestart {
    /// The Istio that restarted the workload.
    pub(crate) istio: String,
    /// End of the readiness timeout.
    pub(crate) deadline: Timestamp,
}

/// Returns the last restart of a workload on any revision, if its rollout is not complete.
pub(crate) fn restart_deadline(snapshot: &Snapshot, workload: &Workload) -> Option<PendingRestart> {
    let record = workload.record.as_ref()?;
    if workload.rollout.was_complete {
        return None;
    }
    let (istio, target) = target_for(snapshot, snapshot.revisions().get(&record.revision)?)?;
    Some(PendingRestart {
        istio: istio.to_owned(),
        deadline: workload.deadline(record, target.readiness_timeout),
    })
}

/// Returns the Istio that must relabel a namespace: the owner of the old revision that the namespace's
/// labels name.
pub(crate) fn relabeling_istio(snapshot: &Snapshot, namespace: &str) -> Option<String> {
    let fact = snapshot.namespace(namespace)?;
    let (revision, tag) = snapshot.resolve(snapshot.references().selected_by_namespace(namespace)?)?;
    let (istio, target) = target_for(snapshot, revision)?;
    let is_old = tag.is_none() && revision.name() != target.revision;
    (is_old && !fact.terminating && !fact.skip_migration).then(|| istio.to_owned())
}

/// Returns the name of the Istio that owns a revision, and the target of its migration.
fn target_for<'a>(
    snapshot: &'a Snapshot,
    revision: &IstioRevision,
) -> Option<(&'a str, &'a MigrationTarget)> {
    let owner = revision.metadata.controller()?;
    let (istio, target) = snapshot.migration_targets().get_key_value(&owner.name)?;
    let is_owner = owner.kind == ObjectKind::Istio.name() && owner.uid == target.uid;
    is_owner.then_some((istio.as_str(), target))
}
