//! Plans: ordered actions with their reasons, and the time of the next requeue. The executor makes no
//! decisions.
//!
//! The executor runs the steps in order and stops at the first failure, which becomes part of the next
//! snapshot. After a change it plans again, until the plan is empty.

use std::collections::BTreeMap;
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

/// The plan of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The subject.
    pub subject: Subject,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Requeue in addition to events.
    pub requeue: Requeue,
}

impl Plan {
    /// Creates an empty plan that is requeued by events only.
    #[must_use]
    pub fn empty(subject: Subject) -> Self {
        Self {
            subject,
            steps: Vec::new(),
            requeue: Requeue::OnEvent,
        }
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the status that the plan writes.
    #[must_use]
    pub fn status(&self) -> Option<&NewStatus> {
        self.actions().find_map(|action| match action {
            Action::WriteStatus { status, .. } => Some(status),
            _ => None,
        })
    }

    /// Returns the actions without their reasons.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().map(|step| &step.action)
    }
}

/// An action and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: Reason,
}

/// Time at which a subject is planned again without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Never: the subject is planned again only on an event.
    OnEvent,
    /// At this time.
    At(Timestamp),
    /// As soon as the rate limit allows.
    Immediately,
    /// After a delay that grows with each attempt.
    Backoff,
}

/// One write. A change or deletion contains the observed version of its object.
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
        /// The object.
        object: Precondition,
        /// All finalizers of the object.
        finalizers: Vec<String>,
    },
    /// Replace the finalizers by these, which no longer include ours.
    RemoveFinalizer {
        /// The object.
        object: Precondition,
        /// The remaining finalizers.
        finalizers: Vec<String>,
    },
    /// Render a release, compare it with live objects, apply differences, and delete objects that it no
    /// longer contains.
    Install(Arc<Release>),
    /// Delete the remaining objects of a release.
    Uninstall(ReleaseKey),
    /// Replace the status.
    WriteStatus {
        /// The object.
        object: Precondition,
        /// The new status.
        status: NewStatus,
    },
    /// Send an event.
    Event(Event),
    /// Probe the readiness of a remote control plane.
    Probe(ProbeRequest),
    /// Write the result of a probe to the webhook configuration.
    AnnotateWebhook {
        /// The webhook configuration.
        object: Precondition,
        /// Whether the remote control plane is ready.
        ready: bool,
        /// Cause of the failure; empty if there was a response.
        reason: String,
    },
    /// Change the revision label of a namespace.
    RelabelNamespace(Relabel),
    /// Restart a workload on another revision.
    MoveWorkload(Move),
}

impl Action {
    /// Returns upstream's prefix of the error when this action fails.
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

    /// Whether the remaining steps are executed even if this action fails. True for tags: a failing tag
    /// does not affect the others.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        matches!(self, Self::CreateTag(_) | Self::UpdateTag(_) | Self::DeleteTag(_))
    }

    /// Whether data is lost if the action is executed on the wrong object.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        matches!(
            self,
            Self::DeleteRevision(_) | Self::DeleteTag(_) | Self::RemoveFinalizer { .. } | Self::Uninstall(_)
        )
    }

    /// Returns the observed version of the object that the action changes, or `None` if it does not change
    /// an existing object.
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
    /// Formats the action without values, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateRevision(new) => write!(f, "create revision {} {}", new.name, new.spec.version),
            Self::UpdateRevision(change) => write!(
                f,
                "update revision {} {}",
                change.object.name(),
                change.spec.version
            ),
            Self::DeleteRevision(object) => write!(f, "delete revision {}", object.name()),
            Self::CreateTag(new) => write!(f, "create tag {}", new.name),
            Self::UpdateTag(change) => write!(f, "update tag {}", change.object.name()),
            Self::DeleteTag(object) => write!(f, "delete tag {}", object.name()),
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
                let (workload, record) = (&step.object.subject, &step.record);
                write!(
                    f,
                    "{how} {workload} on {} in batch {}",
                    record.revision, record.batch
                )
            }
        }
    }
}

/// The observed version of an object. A write must fail on any other version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// The object.
    pub subject: Subject,
    /// UID of the object.
    pub uid: String,
    /// Resource version of the object.
    pub resource_version: String,
}

impl Precondition {
    /// Creates a precondition from an object's metadata.
    #[must_use]
    pub fn for_object(subject: Subject, metadata: &ObjectMeta) -> Self {
        Self {
            subject,
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        }
    }

    /// Returns the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.subject.name()
    }
}

/// An object to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewObject<S> {
    /// Name of the object.
    pub name: String,
    /// The controlling owner.
    pub owner: OwnerReference,
    /// Finalizers, including ours, so that no second write is needed to add it.
    pub finalizers: Vec<String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Spec of the object.
    pub spec: S,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<S> {
    /// The observed version of the object.
    pub object: Precondition,
    /// The new owners.
    pub owner_references: Vec<OwnerReference>,
    /// The new spec.
    pub spec: S,
}

/// Key of a release. Ordered by owner, so that the releases of one owner are adjacent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseKey {
    /// UID of the owner. Two objects may have releases of the same name (`default-base`).
    pub owner: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Name of the release.
    pub name: String,
}

impl fmt::Display for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A release to install.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Key of the release.
    pub key: ReleaseKey,
    /// Name of the chart.
    pub chart: &'static str,
    /// Version of the chart (`v1.29.1`).
    pub version: String,
    /// Chart values.
    pub values: Values,
    /// Owner of all objects of the release.
    pub owner: OwnerReference,
}

/// A status of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum NewStatus {
    /// Status of an Istio.
    Istio(IstioStatus),
    /// Status of a revision.
    Revision(RevisionStatus),
    /// Status of a tag.
    Tag(TagStatus),
    /// Status of an `IstioCNI`.
    Cni(CniStatus),
    /// Status of a `ZTunnel`.
    ZTunnel(ZTunnelStatus),
}

impl NewStatus {
    /// Returns the status as JSON, for a patch of `/status`.
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

/// A Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub about: Precondition,
    /// Whether the event is a warning.
    pub warning: bool,
    /// The reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
}

/// A change of a namespace's revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relabel {
    /// The observed version of the namespace.
    pub object: Precondition,
    /// The new revision.
    pub revision: String,
    /// Whether `istio-injection` is removed, which would take precedence over the revision.
    pub drop_injection: bool,
}

impl Relabel {
    /// Returns a merge patch that fails on any other version of the object.
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

/// A restart of a workload on another revision: one write that changes its pod template and its migration
/// record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The observed version of the workload.
    pub object: Precondition,
    /// Whether the revision label of its template is changed. Otherwise the workload is only restarted.
    pub relabel: bool,
    /// The migration record that is stored on the workload.
    pub record: MigrationRecord,
}

impl Move {
    /// Returns a merge patch that fails on any other version of the object.
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

/// A readiness probe of a remote control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The webhook configuration of the control plane.
    pub webhook: String,
    /// URL of the probe. Always `https` and a Service of this cluster.
    pub url: String,
    /// The only trusted certificate authorities, PEM as in `caBundle`.
    pub ca_bundle: Arc<[u8]>,
    /// Timeout of the probe, in seconds.
    pub timeout_seconds: u32,
}
