//! Outcome and report types shared with the command line, with stable codes.

use std::borrow::Cow;

use crate::grammar::FlawCode;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<'a> {
    /// The output text; borrowed if it equals the input.
    pub text: Cow<'a, [u8]>,
    /// One report per workload (per pod template if an object has several), in input order. An object that
    /// is not a workload has a report only if there is a finding about it.
    pub reports: Vec<Report>,
}

impl Outcome<'_> {
    /// Whether the text differs from the input.
    #[must_use]
    pub fn changed(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }

    /// Whether at least one workload was not processed as requested: a report has [`Action::Failed`].
    #[must_use]
    pub fn failed(&self) -> bool {
        self.reports.iter().any(|report| report.action == Action::Failed)
    }
}

/// Result for one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `apiVersion`; empty if unknown, for example after a syntax error.
    pub api_version: String,
    /// `kind`; empty if unknown.
    pub kind: String,
    /// `metadata.name`; empty if absent.
    pub name: String,
    /// `metadata.namespace`; `None` if absent.
    pub namespace: Option<String>,
    /// Path of the pod template from the object's root, such as `spec.template`; empty for a Pod.
    pub path: String,
    /// Place of the object.
    pub place: Place,
    /// Action taken for the workload.
    pub action: Action,
    /// Reason for the action.
    pub reason: Reason,
    /// Findings about the workload. A finding with [`Severity::Error`] implies [`Action::Failed`]: the text
    /// of the workload is unchanged.
    pub findings: Vec<Finding>,
}

/// Action taken for a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The text changed and contains what was requested.
    Injected,
    /// The text changed: an earlier injection was removed.
    Removed,
    /// The text already contained what was requested.
    Unchanged,
    /// Nothing was requested, and nothing had to be removed.
    Skipped,
    /// The workload should have been edited, but was not.
    Failed,
}

/// Reason for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Only the initializer is requested.
    Initializer,
    /// Only the service mesh is requested: the initializer is opted out.
    ServiceMesh,
    /// Initializer and service mesh are requested.
    InitializerAndServiceMesh,
    /// `runtimeClassName` is missing or not a Contrast runtime class.
    RuntimeClass,
    /// The workload is the coordinator.
    Coordinator,
    /// An annotation of the workload opts out.
    SkipAnnotation,
    /// A flag of the run opts out.
    SkipFlag,
    /// The workload has no pod spec.
    NoPodSpec,
    /// The run removes earlier injections ([`Mode::Uninject`](crate::Mode)).
    Uninject,
    /// The object contains a pod with a Contrast runtime class, but the pod template path of its kind is
    /// unknown.
    UnknownKind,
    /// The document has a syntax error.
    Syntax,
    /// The workload cannot be edited; a finding states the reason.
    Rejected,
}

impl Reason {
    /// Returns the stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Initializer => "initializer",
            Self::ServiceMesh => "service-mesh",
            Self::InitializerAndServiceMesh => "initializer-and-service-mesh",
            Self::RuntimeClass => "runtime-class",
            Self::Coordinator => "coordinator",
            Self::SkipAnnotation => "skip-annotation",
            Self::SkipFlag => "skip-flag",
            Self::NoPodSpec => "no-pod-spec",
            Self::Uninject => "uninject",
            Self::UnknownKind => "unknown-kind",
            Self::Syntax => "syntax",
            Self::Rejected => "refused",
        }
    }
}

impl Action {
    /// Returns the stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// A problem or note about a place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Kind of the finding.
    pub code: Code,
    /// Message: one sentence without a full stop.
    pub message: String,
    /// Place that the finding is about.
    pub place: Place,
    /// Suggested action.
    pub help: Option<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The workload could not be processed.
    Error,
    /// The workload was processed, but the result is probably not what the user intended.
    Warning,
    /// Information without required action.
    Note,
}

/// A range of the input. In the outcome of [`run`](crate::run()) it is relative to the start of the whole
/// input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line number, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Byte offset.
    pub offset: usize,
    /// Length in bytes; 0 for a position.
    pub len: usize,
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    // From selection and editing.
    /// The document has a syntax error.
    Syntax,
    /// A node does not have the type that Kubernetes requires.
    WrongType,
    /// A map that must be edited contains a key twice.
    DuplicateKey,
    /// An edit would change a node that is also used through an alias or a merge key.
    SharedAnchor,
    /// A reserved name is used by something that cannot be replaced.
    NameConflict,
    /// A container already has a mount at the path of the shared volume.
    MountPathConflict,
    /// The layout of the text does not allow adding or removing lines.
    Layout,
    /// A container that must be replaced is too long to be stored for `--uninject`.
    NotRestorable,
    /// The object contains a pod with a Contrast runtime class, but the pod template path of its kind is
    /// unknown.
    UnknownKind,
    /// An init container with a reserved name but without a mark was kept.
    Unmarked,
    /// The edited text did not have the planned meaning; the text is unchanged.
    Internal,
    // From the checks of annotations.
    /// A flaw in the configuration of the proxy.
    Proxy(FlawCode),
    /// Two listeners use the same port.
    PortConflict,
    /// A pod with a service mesh uses the node's network.
    HostNetwork,
    /// A pod has a service mesh, but no initializer.
    NoInitializer,
    /// An annotation is at a level where it is not read.
    AnnotationLevel,
    /// An annotation key is probably misspelled.
    AnnotationName,
    /// The value of an annotation is not a string, or has no effect.
    AnnotationType,
}

impl Code {
    /// Returns the stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::WrongType => "wrong-type",
            Self::DuplicateKey => "duplicate-key",
            Self::SharedAnchor => "shared-anchor",
            Self::NameConflict => "name-conflict",
            Self::MountPathConflict => "mount-path-conflict",
            Self::Layout => "layout",
            Self::NotRestorable => "not-restorable",
            Self::UnknownKind => "unknown-kind",
            Self::Unmarked => "unmarked",
            Self::Internal => "internal",
            Self::Proxy(flaw) => flaw.as_str(),
            Self::PortConflict => "mesh-port-conflict",
            Self::HostNetwork => "mesh-host-network",
            Self::NoInitializer => "mesh-without-initializer",
            Self::AnnotationLevel => "annotation-level",
            Self::AnnotationName => "annotation-name",
            Self::AnnotationType => "annotation-type",
        }
    }
}
