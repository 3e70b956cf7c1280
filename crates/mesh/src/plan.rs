//! What to do: ordered actions with their reasons, and when to look again. Takes nothing, decides nothing: these are the words
//! between planner and executor, and they leave the executor no choice.
//!
//! An executor runs the steps in order and stops at the first that fails; the failure becomes part of the next snapshot. After
//! a step has changed something it plans again, until the plan is empty.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::{
    CniStatus, IstioStatus, ObjectMeta, OwnerReference, Reason, RevisionSpec, RevisionStatus, TagSpec,
    TagStatus, Values, ZTunnelStatus, names,
};
use serde_json::{Map, Value, json};

use crate::Subject;
use crate::workload::MigrationRecord;

/// What to do about one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it is about.
    pub subject: Subject,
    /// In this order.
    pub steps: Vec<Step>,
    /// When to look again, events aside.
    pub requeue: Requeue,
}

impl Plan {
    /// Nothing to do until something changes.
    #[must_use]
    pub fn empty(subject: Subject) -> Self {
        Self {
            subject,
            steps: Vec::new(),
            requeue: Requeue::OnEvent,
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The status the plan writes.
    #[must_use]
    pub fn status(&self) -> Option<&NewStatus> {
        self.actions().find_map(|action| match action {
            Action::WriteStatus { status, .. } => Some(status),
            _ => None,
        })
    }

    /// The actions without their reasons.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().map(|step| &step.action)
    }
}

/// One action, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

/// When to look at a subject again although nothing was heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Not before something changes.
    OnEvent,
    /// At this moment.
    At(Timestamp),
    /// As soon as the executor's rate limit allows: it will right itself.
    Immediately,
    /// After a delay that grows with every attempt.
    Backoff,
}

/// One write. Whatever changes or deletes something that exists says which version of it was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create a revision.
    CreateRevision(NewObject<RevisionSpec>),
    /// Replace spec and owners of a revision.
    UpdateRevision(Change<RevisionSpec>),
    /// Delete a revision.
    DeleteRevision(Precondition),
    /// Create a tag.
    CreateTag(NewObject<TagSpec>),
    /// Replace spec and owners of a tag.
    UpdateTag(Change<TagSpec>),
    /// Delete a tag.
    DeleteTag(Precondition),
    /// Replace the finalizers by these, which include ours.
    AddFinalizer {
        /// Of which object.
        object: Precondition,
        /// All of them.
        finalizers: Vec<String>,
    },
    /// Replace the finalizers by these, which no longer include ours.
    RemoveFinalizer {
        /// Of which object.
        object: Precondition,
        /// All that remain.
        finalizers: Vec<String>,
    },
    /// Render, compare with what is there, apply what differs, remove what is left over.
    Install(Arc<Release>),
    /// Remove what this owner still owns of a release.
    Uninstall(ReleaseKey),
    /// Replace the status.
    WriteStatus {
        /// Of which object.
        object: Precondition,
        /// By this.
        status: NewStatus,
    },
    /// Tell people.
    Event(Event),
    /// Ask a remote control plane whether it is ready.
    Probe(ProbeRequest),
    /// Write what it answered on the webhook configuration.
    AnnotateWebhook {
        /// Which.
        object: Precondition,
        /// Whether it is ready.
        ready: bool,
        /// Why not.
        reason: String,
    },
    /// Let a namespace choose another revision.
    RelabelNamespace(Relabel),
    /// Restart a workload on another revision.
    MoveWorkload(Move),
}

impl Action {
    /// How upstream introduces the error when this action fails; nothing where it shows the bare error.
    #[must_use]
    pub fn failure_prefix(&self) -> String {
        match self {
            Self::CreateRevision(new) => format!("failed to create IstioRevision {:?}: ", new.name),
            Self::UpdateRevision(change) => {
                format!("failed to update IstioRevision {:?}: ", change.object.name())
            }
            Self::CreateTag(new) => format!("failed to create IstioRevisionTag {:?}: ", new.name),
            Self::UpdateTag(change) => {
                format!("failed to update IstioRevisionTag {:?}: ", change.object.name())
            }
            Self::DeleteRevision(_) | Self::DeleteTag(_) => "delete failed: ".into(),
            Self::Install(release) => format!("failed to install/update Helm chart {:?}: ", release.chart),
            Self::Uninstall(key) => format!("failed to uninstall Helm release {:?}: ", key.name),
            _ => String::new(),
        }
    }

    /// Whether something is lost when this runs on the wrong object.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        matches!(
            self,
            Self::DeleteRevision(_) | Self::DeleteTag(_) | Self::RemoveFinalizer { .. } | Self::Uninstall(_)
        )
    }

    /// The version of the object this acts on, where it acts on one that exists.
    #[must_use]
    pub fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::UpdateRevision(Change { object, .. })
            | Self::UpdateTag(Change { object, .. })
            | Self::DeleteRevision(object)
            | Self::DeleteTag(object)
            | Self::AddFinalizer { object, .. }
            | Self::RemoveFinalizer { object, .. }
            | Self::WriteStatus { object, .. }
            | Self::AnnotateWebhook { object, .. }
            | Self::RelabelNamespace(Relabel { object, .. })
            | Self::MoveWorkload(Move { object, .. }) => Some(object),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    /// One line for people. It never shows values: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateRevision(new) => write!(f, "create revision {} {}", new.name, new.spec.version),
            Self::UpdateRevision(change) => write!(
                f,
                "update revision {} {}",
                change.object.name(),
                change.spec.version
            ),
            Self::DeleteRevision(seen) => write!(f, "delete revision {}", seen.name()),
            Self::CreateTag(new) => write!(f, "create tag {}", new.name),
            Self::UpdateTag(change) => write!(f, "update tag {}", change.object.name()),
            Self::DeleteTag(seen) => write!(f, "delete tag {}", seen.name()),
            Self::AddFinalizer { .. } => f.write_str("add finalizer"),
            Self::RemoveFinalizer { .. } => f.write_str("remove finalizer"),
            Self::Install(release) => write!(
                f,
                "install {} {} as {}",
                release.chart, release.version, release.key
            ),
            Self::Uninstall(key) => write!(f, "uninstall {key}"),
            Self::WriteStatus { .. } => f.write_str("status"),
            Self::Event(event) => {
                let mark = if event.warning { "!" } else { "" };
                write!(f, "event {mark}{}: {}", event.reason, event.message)
            }
            Self::Probe(request) => write!(f, "probe {}", request.url),
            Self::AnnotateWebhook { ready, reason, .. } => write!(f, "annotate {ready} {reason}"),
            Self::RelabelNamespace(relabel) => {
                write!(
                    f,
                    "relabel namespace {} to {}",
                    relabel.object.name(),
                    relabel.revision
                )
            }
            Self::MoveWorkload(step) => {
                let how = if step.relabel { "relabel" } else { "restart" };
                let (workload, mark) = (&step.object.subject, &step.record);
                write!(f, "{how} {workload} on {} in batch {}", mark.revision, mark.batch)
            }
        }
    }
}

/// Which version of an object was seen: the write must fail on any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// Which object.
    pub subject: Subject,
    /// Its identity.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
}

impl Precondition {
    /// The version in a snapshot.
    #[must_use]
    pub fn for_object(subject: Subject, metadata: &ObjectMeta) -> Self {
        Self {
            subject,
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }

    /// Name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.subject.name()
    }
}

/// An object to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewObject<S> {
    /// Its name.
    pub name: String,
    /// Its owner.
    pub owner: OwnerReference,
    /// Its finalizers: ours is there from the start, which saves a write.
    pub finalizers: Vec<String>,
    /// Its spec.
    pub spec: S,
}

/// An object to be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<S> {
    /// Which version was seen.
    pub object: Precondition,
    /// All its owners from now on.
    pub owner_references: Vec<OwnerReference>,
    /// Its spec from now on.
    pub spec: S,
}

/// Which release: by owner first, so that the releases of an owner lie together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseKey {
    /// Identity of the object it belongs to. Two objects may each have a release of one name (`default-base`).
    pub owner: String,
    /// Where it is installed.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Everything that determines a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Which.
    pub key: ReleaseKey,
    /// Name of the chart.
    pub chart: &'static str,
    /// Version of Istio the chart is of (`v1.29.1`).
    pub version: String,
    /// Values for it.
    pub values: Values,
    /// The owner of all its objects.
    pub owner: OwnerReference,
}

/// A status of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum NewStatus {
    /// Of an Istio.
    Istio(IstioStatus),
    /// Of a revision.
    Revision(RevisionStatus),
    /// Of a tag.
    Tag(TagStatus),
    /// Of the network plug-in.
    Cni(CniStatus),
    /// Of the node proxy.
    ZTunnel(ZTunnelStatus),
}

impl NewStatus {
    /// As JSON, for a patch of `/status`.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        match self {
            Self::Istio(status) => serde_json::to_value(status),
            Self::Revision(status) => serde_json::to_value(status),
            Self::Tag(status) => serde_json::to_value(status),
            Self::Cni(status) => serde_json::to_value(status),
            Self::ZTunnel(status) => serde_json::to_value(status),
        }
    }
}

/// Something people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// About which object.
    pub about: Precondition,
    /// Whether it is a warning.
    pub warning: bool,
    /// In one word.
    pub reason: Reason,
    /// In a sentence.
    pub message: String,
}

/// Another revision for a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relabel {
    /// Which version of it was seen.
    pub object: Precondition,
    /// The revision its labels name from now on.
    pub revision: String,
    /// Whether the label that knows no revision goes: it would win over the revision.
    pub drop_injection: bool,
}

impl Relabel {
    /// As a merge patch that fails on any other version.
    #[must_use]
    pub fn patch(&self) -> Value {
        let mut labels = Map::from_iter([(names::REVISION_LABEL.to_owned(), json!(self.revision))]);
        if self.drop_injection {
            labels.insert(names::INJECTION_LABEL.to_owned(), Value::Null);
        }
        json!({"metadata": {
            "uid": self.object.uid, "resourceVersion": self.object.resource_version, "labels": labels,
        }})
    }
}

/// A workload's way to another revision: one write that changes its template, and says so on the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which version of it was seen.
    pub object: Precondition,
    /// Whether its template names an old revision and must name the new one; otherwise it is only restarted.
    pub relabel: bool,
    /// What is remembered on it.
    pub record: MigrationRecord,
}

impl Move {
    /// As a merge patch that fails on any other version.
    #[must_use]
    pub fn patch(&self) -> Value {
        let template = if self.relabel {
            json!({"labels": {names::REVISION_LABEL: self.record.revision}})
        } else {
            json!({"annotations": {names::RESTARTED_AT: self.record.started}})
        };
        json!({
            "metadata": {
                "uid": self.object.uid, "resourceVersion": self.object.resource_version,
                "annotations": {names::MIGRATION_RECORD: self.record.to_annotation()},
            },
            "spec": {"template": {"metadata": template}},
        })
    }
}

/// A question to a remote control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The webhook configuration it is asked for.
    pub webhook: String,
    /// Where to ask: always `https`, always a Service of this cluster.
    pub url: String,
    /// The only authority to trust, PEM as in `caBundle`.
    pub ca_bundle: Arc<[u8]>,
    /// How long to wait.
    pub timeout_seconds: u32,
}
