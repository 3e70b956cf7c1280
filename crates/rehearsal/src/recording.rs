//! What happened, whoever played it: takes plans as they are carried out and the snapshots they were made from, keeps deeds with their
//! moments. Both ways of playing write the same recording.

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

/// One thing the operator did.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) at: Timestamp,
    pub(crate) what: What,
}

/// What it did.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Wrote one of our objects: the verb, the kind, the name.
    Wrote(&'static str, ObjectKind, String),
    /// Installed a release; which one was there before, if any.
    Installed(Arc<Release>, Option<Arc<Release>>),
    /// Removed a release.
    Uninstalled(Option<Arc<Release>>),
    /// Gave a namespace another label.
    Relabelled {
        namespace: String,
        revision: String,
        dropped: bool,
    },
    /// Restarted a workload in a batch.
    Moved(WorkloadKey, i32),
    /// Told people.
    Told,
    /// Wrote on a webhook configuration.
    Annotated,
}

/// How a workload's way ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It came up.
    Up(Timestamp),
    /// It was late, and then came up.
    UpLate(Timestamp),
    /// It did not come up in time.
    Late(Timestamp),
    /// The server refused.
    Refused(Timestamp),
}

/// An old revision that stays.
#[derive(Clone, Debug)]
pub(crate) struct Remaining {
    pub(crate) revision: String,
    /// What becomes of it.
    pub(crate) prospect: PruneDecision,
    /// Who refers to it.
    pub(crate) referrers: Vec<(ReferrerKey, ReferenceCause)>,
}

/// What is known at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finale {
    pub(crate) preview: Option<Preview>,
    pub(crate) remaining: Vec<Remaining>,
    /// What the Istio says about itself, and why.
    pub(crate) health: (String, String),
    /// The revision it wants.
    pub(crate) active: String,
}

/// Everything that happened.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) istio: String,
    /// When the version changed; nothing while the stage is being set.
    pub(crate) began: Option<Timestamp>,
    pub(crate) deeds: Vec<Deed>,
    pub(crate) ends: BTreeMap<WorkloadKey, End>,
    pub(crate) messages: BTreeMap<WorkloadKey, String>,
    /// When the new revision was ready.
    pub(crate) ready: Option<Timestamp>,
    /// Which revisions there were when it began, the active one first.
    pub(crate) revisions: Vec<String>,
    /// How many pods of each workload were ready, from when on.
    pub(crate) crews: BTreeMap<WorkloadKey, Vec<(Timestamp, u32)>>,
    /// Pods made since it began.
    pub(crate) made: usize,
    pub(crate) finale: Finale,
    /// Whether it came to rest.
    pub(crate) rested: bool,
    /// Steps that were refused, and why, each once.
    pub(crate) refusals: BTreeSet<(String, String)>,
    /// The last moment at which something happened.
    pub(crate) last: Option<Timestamp>,
    releases: BTreeMap<ReleaseKey, Arc<Release>>,
    flying: BTreeSet<WorkloadKey>,
    seen: (usize, usize),
}

impl Recording {
    /// An empty one.
    pub(crate) fn new(istio: &str) -> Self {
        Self {
            istio: istio.to_owned(),
            began: None,
            deeds: Vec::new(),
            ends: BTreeMap::new(),
            messages: BTreeMap::new(),
            ready: None,
            revisions: Vec::new(),
            crews: BTreeMap::new(),
            made: 0,
            finale: Finale::default(),
            rested: false,
            refusals: BTreeSet::new(),
            last: None,
            releases: BTreeMap::new(),
            flying: BTreeSet::new(),
            seen: (0, 0),
        }
    }

    /// From now on deeds count.
    pub(crate) fn begin(&mut self, at: Timestamp) {
        self.began = Some(at);
        self.last = Some(at);
    }

    /// Releases as they were last installed.
    pub(crate) fn releases(&self) -> impl Iterator<Item = &Arc<Release>> {
        let gone = self.deeds.iter().filter_map(|deed| match &deed.what {
            What::Uninstalled(release) => release.as_ref(),
            _ => None,
        });
        self.releases.values().chain(gone)
    }

    /// Workloads that were restarted.
    pub(crate) fn moved(&self) -> BTreeSet<&WorkloadKey> {
        let moved = self.deeds.iter().filter_map(|deed| match &deed.what {
            What::Moved(key, _) => Some(key),
            _ => None,
        });
        moved.collect()
    }

    /// Releases that are installed.
    pub(crate) fn installed(&self) -> impl Iterator<Item = &Arc<Release>> {
        self.releases.values()
    }

    /// A plan was carried out.
    pub(crate) fn carried_out(&mut self, plan: &Plan, at: Timestamp) {
        for action in plan.actions() {
            let what = self.what(action, &plan.subject);
            if let (Some(what), true) = (what, self.began.is_some()) {
                if !matches!(what, What::Told) {
                    self.last = Some(at);
                }
                self.deeds.push(Deed { at, what });
            }
        }
    }

    /// A step was refused.
    pub(crate) fn refused(&mut self, plan: &Plan, why: &str) {
        if self.began.is_some() {
            self.refusals.insert((plan.subject.to_string(), why.to_owned()));
        }
    }

    fn what(&mut self, action: &Action, subject: &Subject) -> Option<What> {
        let wrote = |verb, kind, name: &str| Some(What::Wrote(verb, kind, name.to_owned()));
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
                (!same).then(|| What::Installed(release.clone(), before))
            }
            Action::Uninstall(key) => Some(What::Uninstalled(self.releases.remove(key))),
            Action::WriteStatus { object, status } => {
                self.hear(status);
                wrote("status", kind, object.name())
            }
            Action::Event(_) => Some(What::Told),
            Action::Probe(_) => None,
            Action::AnnotateWebhook { .. } => Some(What::Annotated),
            Action::RelabelNamespace(relabel) => Some(What::Relabelled {
                namespace: relabel.object.name().to_owned(),
                revision: relabel.revision.clone(),
                dropped: relabel.drop_injection,
            }),
            Action::MoveWorkload(step) => match &step.object.subject {
                Subject::Workload(key) => {
                    self.flying.insert(key.clone());
                    Some(What::Moved(key.clone(), step.record.batch))
                }
                _ => None,
            },
        }
    }

    /// What a status says of those that failed.
    fn hear(&mut self, status: &NewStatus) {
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

    /// A plan was made from this.
    pub(crate) fn inspect(&mut self, snapshot: &Snapshot, plan: &Plan) {
        if self.began.is_none() || plan.subject != Subject::istio(&self.istio) {
            return;
        }
        self.note_ready(snapshot);
        let Some(ledger) = snapshot.migration_index(&self.istio) else {
            return;
        };
        let now = snapshot.now;
        let counts = ledger.counts(now);
        let seen = (counts.migrated, counts.failed);
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let mut landed = Vec::new();
        for key in &self.flying {
            let (end, over) = match (ledger.state(key), self.ends.get(key)) {
                (Some(WorkloadState::Finished { .. }), None) => (End::Up(now), true),
                (Some(WorkloadState::Finished { .. }), Some(_)) => (End::UpLate(now), true),
                (Some(state @ WorkloadState::Started { deadline, .. }), None)
                    if state.phase(now) == WorkloadPhase::Failed =>
                {
                    (End::Late(*deadline), false)
                }
                (Some(WorkloadState::Rejected), None) => (End::Refused(now), false),
                _ => continue,
            };
            landed.push((key.clone(), end, over));
        }
        let refused: Vec<WorkloadKey> = ledger.rejected().cloned().collect();
        for key in refused {
            self.ends.entry(key).or_insert(End::Refused(now));
        }
        for (key, end, over) in landed {
            if over {
                self.flying.remove(&key);
            }
            self.ends.insert(key, end);
            self.last = Some(now);
        }
    }

    fn note_ready(&mut self, snapshot: &Snapshot) {
        if self.ready.is_some() {
            return;
        }
        let Some(istio) = snapshot.istios().get(&self.istio) else {
            return;
        };
        let active = mainstay_mesh::active_revision_name(snapshot, istio);
        let revision = active.ok().and_then(|name| snapshot.revisions().get(&name));
        if revision.is_some_and(|revision| revision.status.conditions.is_true(&ConditionType::Ready)) {
            self.ready = Some(snapshot.now);
        }
    }

    /// Which revisions there are before it begins.
    pub(crate) fn note_revisions(&mut self, snapshot: &Snapshot) {
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

    /// It is over: what is left.
    pub(crate) fn close(&mut self, snapshot: &Snapshot) {
        let Some(istio) = snapshot.istios().get(&self.istio) else {
            return;
        };
        let active = mainstay_mesh::active_revision_name(snapshot, istio).unwrap_or_default();
        let all = prune_decisions(snapshot, istio, &active, grace_period(istio));
        let remaining = all.filter(|(_, prospect)| *prospect != PruneDecision::Active);
        let status = &istio.status;
        let condition = status
            .conditions
            .0
            .iter()
            .find(|condition| condition.reason.name() == status.state.name());
        self.finale = Finale {
            preview: preview(snapshot, istio),
            remaining: remaining
                .map(|(revision, prospect)| Remaining {
                    revision: revision.name().to_owned(),
                    prospect,
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

    /// So many pods of a workload are ready from now on.
    pub(crate) fn crew(&mut self, key: &WorkloadKey, at: Timestamp, ready: u32) {
        let Some(steps) = self.crews.get_mut(key) else {
            self.crews.insert(key.clone(), vec![(at, ready)]);
            return;
        };
        match steps.last_mut() {
            Some((when, count)) if *when == at => *count = ready,
            Some((_, count)) if *count == ready => {}
            _ => steps.push((at, ready)),
        }
    }
}
