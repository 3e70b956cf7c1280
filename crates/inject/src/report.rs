//! Outcome and report types shared with the command line, with stable codes.

use std::borrow::Cow;

use crate::grammar::FlawCode;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<'a> {
    /// The text to write; borrowed when not a byte changed.
    pub text: Cow<'a, [u8]>,
    /// One report per workload (per pod template, where an object has several), in the order of the input.
    /// Objects that are no workloads have none, unless something about them must be said.
    pub reports: Vec<Report>,
}

impl Outcome<'_> {
    /// Whether the text differs from the input.
    #[must_use]
    pub fn changed(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }

    /// Whether something that should have been injected was not: some report has [`Action::Failed`].
    #[must_use]
    pub fn failed(&self) -> bool {
        self.reports.iter().any(|report| report.action == Action::Failed)
    }
}

/// What happened to one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `apiVersion`, empty if unknown (as after a syntax error).
    pub api_version: String,
    /// `kind`, empty if unknown.
    pub kind: String,
    /// `metadata.name`, empty if it has none.
    pub name: String,
    /// `metadata.namespace`, if it has one.
    pub namespace: Option<String>,
    /// Keys to the pod template from the object's root, such as `spec.template`; empty for a Pod.
    pub path: String,
    /// Where the object starts.
    pub place: Place,
    /// What was done.
    pub action: Action,
    /// Why, as a stable code.
    pub reason: Reason,
    /// What else should be said. An error here means [`Action::Failed`], and that not a byte of the workload
    /// changed.
    pub findings: Vec<Finding>,
}

/// What was done to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The text changed and holds what was asked for.
    Injected,
    /// The text changed: what was injected earlier is gone.
    Removed,
    /// Nothing to do: the text already is what was asked for.
    Unchanged,
    /// Nothing was asked for.
    Skipped,
    /// It should have been edited and was not.
    Failed,
}

/// Why a workload was treated so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It asks for the initializer only.
    Initializer,
    /// It asks for the service mesh only, its initializer being opted out.
    ServiceMesh,
    /// It asks for both.
    InitializerAndServiceMesh,
    /// `runtimeClassName` is missing or another one.
    RuntimeClass,
    /// It is the coordinator.
    Coordinator,
    /// Its own annotation opts out.
    SkipAnnotation,
    /// A flag of the run opts out.
    SkipFlag,
    /// It has no pod spec.
    NoPodSpec,
    /// The run was asked to take away.
    Uninject,
    /// A Contrast pod in a kind whose pod template is unknown.
    UnknownKind,
    /// The document is not YAML.
    Syntax,
    /// Editing it would be wrong; a finding says why.
    Rejected,
}

impl Reason {
    /// The stable code.
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
    /// The stable code.
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

/// Something to say about a place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What kind, as a stable code.
    pub code: Code,
    /// One sentence without a full stop.
    pub message: String,
    /// Where.
    pub place: Place,
    /// What to do about it.
    pub help: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The workload could not be treated.
    Error,
    /// It was, but probably not as meant.
    Warning,
    /// Good to know.
    Note,
}

/// A range of the input. In the outcome of [`run`](crate::run()) it counts from the start of the whole input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// Bytes before it.
    pub offset: usize,
    /// How many bytes; 0 for a point.
    pub len: usize,
}

/// What kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    // From selection and editor.
    /// The document is not YAML.
    Syntax,
    /// A node is not what Kubernetes wants there.
    WrongType,
    /// A key twice in one map that must be edited.
    DuplicateKey,
    /// An edit would change what others see through an alias or a merge.
    SharedAnchor,
    /// A name that must be ours is taken by something that cannot be replaced.
    NameConflict,
    /// A path that the shared volume needs is taken in a container.
    MountPathConflict,
    /// The text is laid out in a way that lines cannot be added to.
    Layout,
    /// A container that must be replaced is too long to be kept for `--uninject`.
    NotRestorable,
    /// A Contrast pod in a kind whose pod template is unknown.
    UnknownKind,
    /// Something of our name without our mark was left where it is.
    Unmarked,
    /// The edited text did not mean what was planned; nothing was written.
    Internal,
    // From the checks of annotations.
    /// The proxy's configuration: what kind of flaw.
    Proxy(FlawCode),
    /// Two things want one port.
    PortConflict,
    /// A service mesh in the node's network.
    HostNetwork,
    /// A service mesh without an initializer.
    NoInitializer,
    /// An annotation at a level where it is not read.
    AnnotationLevel,
    /// An annotation that looks like a misspelt one.
    AnnotationName,
    /// An annotation whose value is not a string.
    AnnotationType,
}

impl Code {
    /// The stable code.
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
