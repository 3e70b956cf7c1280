//! Recording of a rehearsal: the actions of executed plans with their times, and the outcome of each
//! workload. Both simulation methods produce equal recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::{ConditionType, ObjectKind};
use mainstay_mesh::migration::{WorkloadPhase, WorkloadState};
use mainstay_mesh::plan::{NewStatus, Plan, Release, ReleaseKey};
use mainstay_mesh::references::{ReferenceCause, ReferrerKey};
use mainstay_mesh::workload::WorkloadKey;
use mainstay_mesh::{
    Action, Preview, PruneDecision, Snapshot, Subject, grace_period, preview, prune_decisions,
};

/// An action of the operator.
#[derive(Clone, Debug)]
pub(crate) struct RecordedAction {
    pub(crate) at: Timestamp,
    pub(crate) kind: ActionKind,
}

/// Kind of a recorded action.
#[derive(Clone, Debug)]
pub(crate) enum ActionKind {
    /// Wrote a Mainstay object: verb, kind, name.
    Wrote(&'static str, ObjectKind, String),
    /// Installed a release. The second field is the release that it replaced.
    Installed(Arc<Release>, Option<Arc<Release>>),
    /// Removed a release.
    Uninstalled(Option<Arc<Release>>),
    /// Changed the revision label of a namespace.
    Relabeled {
        namespace: String,
        revision: String,
        drops_injection: bool,
    },
    /// Restarted a workload in a batch.
    Moved(WorkloadKey, i32),
    /// Recorded a Kubernetes event.
    EventRecorded,
    /// Annotated a webhook configuration.
    WebhookAnnotated,
}

/// Outcome of a workload's migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadOutcome {
    /// Ready within the timeout.
    Ready(Timestamp),
    /// Ready after the timeout.
    ReadyLate(Timestamp),
    /// Not ready within the timeout.
    TimedOut(Timestamp),
    /// Rejected by the API server.
    Rejected(Timestamp),
}

/// A revision that was not pruned.
#[derive(Clone, Debug)]
pub(crate) struct Remaining {
    pub(crate) revision: String,
    /// Pruning decision.
    pub(crate) decision: PruneDecision,
    /// Objects that keep the revision in use.
    pub(crate) referrers: Vec<(ReferrerKey, ReferenceCause)>,
}

/// State at the end of the rehearsal.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinalState {
    pub(crate) preview: Option<Preview>,
    pub(crate) remaining: Vec<Remaining>,
    /// State and message in the status of the Istio.
    pub(crate) health: (String, String),
    /// Name of the active revision.
    pub(crate) active: String,
}

/// Recording of a rehearsal.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) istio: String,
    /// Time of the version change; `None` during warm-up.
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) actions: Vec<RecordedAction>,
    pub(crate) outcomes: BTreeMap<WorkloadKey, WorkloadOutcome>,
    pub(crate) messages: BTreeMap<WorkloadKey, String>,
    /// Time at which the new revision became ready.
    pub(crate) ready: Option<Timestamp>,
    /// Revisions before the upgrade, the active one first.
    pub(crate) revisions: Vec<String>,
    /// Number of ready pods of each workload over time.
    pub(crate) ready_pods: BTreeMap<WorkloadKey, Vec<(Timestamp, u32)>>,
    /// Number of pods created since the start.
    pub(crate) created_pods: usize,
    pub(crate) final_state: FinalState,
    /// Whether the rehearsal settled.
    pub(crate) settled: bool,
    /// Rejected steps, as subject and message.
    pub(crate) rejections: BTreeSet<(String, String)>,
    /// Time of the last recorded change.
    pub(crate) last: Option<Timestamp>,
    releases: BTreeMap<ReleaseKey, Arc<Release>>,
    in_progress: BTreeSet<WorkloadKey>,
    seen: (usize, usize),
    /// Generation of the Istio with the new spec.
    generation: i64,
}

impl Recording {
    pub(crate) fn new(istio: &str) -> Self {
        Self {
            istio: istio.to_owned(),
            started_at: None,
            actions: Vec::new(),
            outcomes: BTreeMap::new(),
            messages: BTreeMap::new(),
            ready: None,
            revisions: Vec::new(),
            ready_pods: BTreeMap::new(),
            created_pods: 0,
            final_state: FinalState::default(),
            settled: false,
            rejections: BTreeSet::new(),
            last: None,
            releases: BTreeMap::new(),
            in_progress: BTreeSet::new(),
            seen: (0, 0),
            generation: 0,
        }
    }

    /// Starts the recording.
    pub(crate) fn start(&mut self, at: Timestamp) {
        self.started_at = Some(at);
        self.last = Some(at);
    }

    /// Discards the readiness of the old spec: the operator may observe the new spec, which has this
    /// generation, some time after the start.
    pub(crate) fn expect_generation(&mut self, generation: i64) {
        self.generation = generation;
        self.ready = None;
    }

    /// Returns the current and the uninstalled releases.
    pub(crate) fn releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        let gone = self.actions.iter().filter_map(|action| match &action.kind {
            ActionKind::Uninstalled(release) => release.as_ref(),
            _ => None,
        });
        self.releases.values().chain(gone)
    }

    /// Returns the workloads that were restarted.
    pub(crate) fn restarted_workloads(&self) -> BTreeSet<&WorkloadKey> {
        let moved = self.actions.iter().filter_map(|action| match &action.kind {
            ActionKind::Moved(key, _) => Some(key),
            _ => None,
        });
        moved.collect()
    }

    /// Returns the installed releases.
    pub(crate) fn installed_releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        self.releases.values()
    }

    /// Records the actions of an executed plan.
    pub(crate) fn record_plan(&mut self, plan: &Plan, at: Timestamp) {
        for action in plan.actions() {
            let kind = self.action_kind(action, &plan.subject);
            if let (Some(kind), true) = (kind, self.started_at.is_some()) {
                if !matches!(kind, ActionKind::EventRecorded) {
                    self.last = Some(at);
                }
                self.actions.push(RecordedAction { at, kind });
            }
        }
    }

    /// Records a rejected step.
    pub(crate) fn record_rejection(&mut self, plan: &Plan, why: &str) {
        if self.started_at.is_some() {
            self.rejections.insert((plan.subject.to_string(), why.to_owned()));
        }
    }

    fn action_kind(&mut self, action: &Action, subject: &Subject) -> Option<ActionKind> {
        let wrote = |verb, kind, name: &str| Some(ActionKind::Wrote(verb, kind, name.to_owned()));
        let kind = match subject {
            Subject::Object(kind, _) => *kind,
            _ => ObjectKind::Istio,
        };
        match action {
            Action::CreateRevision(new) => wrote("create", ObjectKind::IstioRevision, &new.name),
            Action::UpdateRevision(change) => {
                wrote("update", ObjectKind::IstioRevision, change.object.name())
            }
            Action::DeleteRevision(seen) => wrote("delete", ObjectKind::IstioRevision, seen.name()),
            Action::CreateTag(new) => wrote("create", ObjectKind::IstioRevisionTag, &new.name),
            Action::UpdateTag(change) => wrote("update", ObjectKind::IstioRevisionTag, change.object.name()),
            Action::DeleteTag(seen) => wrote("delete", ObjectKind::IstioRevisionTag, seen.name()),
            Action::AddFinalizer { object, .. } | Action::RemoveFinalizer { object, .. } => {
                wrote("update", kind, object.name())
            }
            Action::Install(release) => {
                let before = self.releases.insert(release.key.clone(), release.clone());
                let same = before.as_ref().is_some_and(|before| before == release);
                (!same).then(|| ActionKind::Installed(release.clone(), before))
            }
            Action::Uninstall(key) => Some(ActionKind::Uninstalled(self.releases.remove(key))),
            Action::WriteStatus { object, status } => {
                self.record_failures(status);
                wrote("status", kind, object.name())
            }
            Action::Event(_) => Some(ActionKind::EventRecorded),
            Action::Probe(_) => None,
            Action::AnnotateWebhook { .. } => Some(ActionKind::WebhookAnnotated),
            Action::RelabelNamespace(relabel) => Some(ActionKind::Relabeled {
                namespace: relabel.object.name().to_owned(),
                revision: relabel.revision.clone(),
                drops_injection: relabel.drop_injection,
            }),
            Action::MoveWorkload(step) => match &step.object.subject {
                Subject::Workload(key) => {
                    self.in_progress.insert(key.clone());
                    Some(ActionKind::Moved(key.clone(), step.record.batch))
                }
                _ => None,
            },
        }
    }

    /// Records the failure messages in a status.
    fn record_failures(&mut self, status: &NewStatus) {
        let NewStatus::Istio(status) = status else {
            return;
        };
        let failures = status
            .workload_migration
            .iter()
            .flat_map(|status| &status.failures);
        for failure in failures {
            let kind = mainstay_mesh::workload::WorkloadKind::from_name(&failure.kind);
            if let Some(kind) = kind {
                let key = WorkloadKey::new(&*failure.namespace, kind, &*failure.name);
                self.messages.insert(key, failure.reason.clone());
            }
        }
    }

    /// Records workload outcomes from the snapshot that a plan is based on.
    pub(crate) fn inspect(&mut self, snapshot: &Snapshot, plan: &Plan) {
        if self.started_at.is_none() || plan.subject != Subject::istio(&self.istio) {
            return;
        }
        self.record_readiness(snapshot);
        let Some(index) = snapshot.migration_index(&self.istio) else {
            return;
        };
        let now = snapshot.now;
        let counts = index.counts(now);
        let seen = (counts.migrated, counts.failed);
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let mut finished = Vec::new();
        for key in &self.in_progress {
            let (end, over) = match (index.state(key), self.outcomes.get(key)) {
                (Some(WorkloadState::Finished { .. }), None) => (WorkloadOutcome::Ready(now), true),
                (Some(WorkloadState::Finished { .. }), Some(_)) => (WorkloadOutcome::ReadyLate(now), true),
                (Some(state @ WorkloadState::Started { deadline, .. }), None)
                    if state.phase(now) == WorkloadPhase::Failed =>
                {
                    (WorkloadOutcome::TimedOut(*deadline), false)
                }
                (Some(WorkloadState::Rejected), None) => (WorkloadOutcome::Rejected(now), false),
                _ => continue,
            };
            finished.push((key.clone(), end, over));
        }
        let rejected: Vec<WorkloadKey> = index.rejected().cloned().collect();
        for key in rejected {
            self.outcomes.entry(key).or_insert(WorkloadOutcome::Rejected(now));
        }
        for (key, end, over) in finished {
            if over {
                self.in_progress.remove(&key);
            }
            self.outcomes.insert(key, end);
            self.last = Some(now);
        }
    }

    fn record_readiness(&mut self, snapshot: &Snapshot) {
        if self.ready.is_some() {
            return;
        }
        let Some(istio) = snapshot.istios().get(&self.istio) else {
            return;
        };
        if istio.metadata.generation < self.generation {
            return;
        }
        let active = mainstay_mesh::active_revision_name(snapshot, istio);
        let revision = active.ok().and_then(|name| snapshot.revisions().get(&name));
        if revision.is_some_and(|revision| revision.status.conditions.is_true(&ConditionType::Ready)) {
            self.ready = Some(snapshot.now);
        }
    }

    /// Records the revisions that exist before the upgrade.
    pub(crate) fn record_revisions(&mut self, snapshot: &Snapshot) {
        let Some(istio) = snapshot.istios().get(&self.istio) else {
            return;
        };
        let active = mainstay_mesh::active_revision_name(snapshot, istio).unwrap_or_default();
        let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
        let others = owned.map(|revision| revision.name().to_owned());
        let others = others.filter(|name| *name != active).collect::<Vec<_>>();
        let active = snapshot
            .revisions()
            .get(&active)
            .map(|revision| revision.name().to_owned());
        self.revisions = active.into_iter().chain(others).collect();
    }

    pub(crate) fn record_final_state(&mut self, snapshot: &Snapshot) {
        let Some(istio) = snapshot.istios().get(&self.istio) else {
            return;
        };
        let active = mainstay_mesh::active_revision_name(snapshot, istio).unwrap_or_default();
        let all = prune_decisions(snapshot, istio, &active, grace_period(istio));
        let remaining = all.filter(|(_, decision)| *decision != PruneDecision::Active);
        let status = &istio.status;
        let condition = status
            .conditions
            .0
            .iter()
            .find(|condition| condition.reason.name() == status.state.name());
        self.final_state = FinalState {
            preview: preview(snapshot, istio),
            remaining: remaining
                .map(|(revision, decision)| Remaining {
                    revision: revision.name().to_owned(),
                    decision,
                    referrers: snapshot.references().referrers(revision.name()),
                })
                .collect(),
            health: (
                status.state.name().to_owned(),
                condition
                    .map(|condition| condition.message.clone())
                    .unwrap_or_default(),
            ),
            active,
        };
    }

    /// Records the number of ready pods of a workload.
    pub(crate) fn record_ready_pods(&mut self, key: &WorkloadKey, at: Timestamp, ready: u32) {
        let Some(steps) = self.ready_pods.get_mut(key) else {
            self.ready_pods.insert(key.clone(), vec![(at, ready)]);
            return;
        };
        match steps.last_mut() {
            Some((when, count)) if *when == at => *count = ready,
            Some((_, count)) if *count == ready => {}
            _ => steps.push((at, ready)),
        }
    }
}
