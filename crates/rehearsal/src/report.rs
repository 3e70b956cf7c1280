//! Result of a rehearsal as plain data, used by the JSON, terminal and HTML output.
//!
//! Times are [`Elapsed`]: milliseconds of virtual time since the version in the Istio's spec changed. The
//! order of lists is fixed, so that two reports of the same input and seed are equal byte for byte.

mod conclusion;
mod elapsed;
mod groups;
#[cfg(any(test, feature = "sample"))]
mod sample;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use conclusion::Conclusion;
pub use elapsed::Elapsed;
pub use groups::{FindingGroup, GroupedFinding, group_findings};

/// Current version of the report format.
pub const FORMAT: u32 = 1;

/// Report of a rehearsed upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of the format, see [`FORMAT`].
    pub format: u32,
    /// The rehearsed upgrade.
    pub upgrade: Upgrade,
    /// Origin and contents of the input.
    pub input: Input,
    /// Seed of all random choices. The same input and seed produce the same report.
    pub seed: u64,
    /// Method by which workloads were simulated.
    pub method: Method,
    /// Outcome of the upgrade.
    pub outcome: Outcome,
    /// Totals over all workloads, pods and writes.
    pub totals: Totals,
    /// Findings, most severe first, then by subject.
    pub findings: Vec<Finding>,
    /// Phases by start time.
    pub phases: Vec<Phase>,
    /// Relabeled namespaces by time.
    pub namespaces: Vec<RelabeledNamespace>,
    /// Batches by number.
    pub batches: Vec<Batch>,
    /// Migrated workloads by start time, namespace, kind, name.
    pub workloads: Vec<WorkloadSpan>,
    /// Skipped workloads by namespace, kind, name.
    pub skipped: Vec<SkippedWorkload>,
    /// Changes between the old and the new control plane by kind, namespace, name. A change of labels that
    /// only contain the chart version is not included.
    pub objects: Vec<ObjectChange>,
    /// Endpoints over time of the Services with restarted pods, by namespace and name.
    pub services: Vec<Service>,
    /// Removed objects by time.
    pub pruned: Vec<PrunedObject>,
    /// Number of writes by verb and kind.
    pub writes: Vec<WriteCount>,
}

impl Report {
    /// Keeps only the workloads, Services, relabeled namespaces and findings of one namespace. Findings
    /// about objects without a namespace, totals and the control plane are kept.
    pub fn restrict(&mut self, namespace: &str) {
        let inside = |subject: &str| match subject.split_once(' ').and_then(|(_, name)| name.split_once('/'))
        {
            Some((found, _)) => found == namespace,
            None => true,
        };
        self.findings.retain(|it| inside(&it.subject));
        self.workloads.retain(|it| it.namespace == namespace);
        self.skipped.retain(|it| it.namespace == namespace);
        self.services.retain(|it| it.namespace == namespace);
        self.namespaces.retain(|it| it.name == namespace);
    }
}

/// The rehearsed upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Name of the Istio.
    pub istio: String,
    /// Version in the current spec (`v1.28.2`).
    pub from: String,
    /// Target version (`v1.29.1`).
    pub to: String,
    /// Revision of the workloads before the upgrade (`default-v1-28-2`); empty if there is none.
    pub from_revision: String,
    /// Target revision.
    pub to_revision: String,
    /// Settings that were assumed because the Istio does not set them.
    pub suppositions: Vec<String>,
}

/// Origin and contents of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Description of the input's origin: `cluster of context prod`, `snapshot backup.yaml`.
    pub source: String,
    /// Number of objects by kind.
    pub objects: Vec<KindCount>,
    /// Kinds that were missing in the input or could not be read.
    pub missing: Vec<String>,
    /// Number of workloads with an observed readiness time. All other workloads use the default.
    pub observed_readiness: usize,
    /// Default readiness time in milliseconds.
    pub default_readiness: Elapsed,
}

/// Number of objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindCount {
    /// Kind (`Deployment`).
    pub kind: String,
    /// Number of objects.
    pub count: usize,
}

/// Method by which workloads were simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// On an embedded cluster: all writes used its API, and its controllers created the pods.
    #[default]
    Embedded,
    /// With calculated rollouts and the same planner. For clusters with many workloads.
    Calculated,
}

/// Outcome of the upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every workload was migrated.
    #[default]
    Completed,
    /// Workloads failed, or the control plane did not become ready.
    Failed,
    /// No workload was moved: none had to be, or the migration is on hold (see the findings).
    NothingMoves,
    /// The upgrade had not finished at the time limit.
    Unfinished,
}

/// Totals of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Time from the version change to the last change of the upgrade, including pruning.
    pub duration: Elapsed,
    /// Time from the first restart until the last workload was ready or had failed.
    pub moving: Elapsed,
    /// Number of workloads, including skipped ones.
    pub workloads: usize,
    /// Number of workloads that became ready on the new revision.
    pub migrated: usize,
    /// Number of workloads that failed.
    pub failed: usize,
    /// Number of workloads that were skipped.
    pub skipped: usize,
    /// Number of batches.
    pub batches: usize,
    /// Number of replaced pods.
    pub pods: usize,
    /// Number of relabeled namespaces.
    pub namespaces: usize,
    /// Number of the operator's writes.
    pub writes: usize,
    /// Number of Services that had no ready endpoint for some time.
    pub services_interrupted: usize,
}

/// A phase of the upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Kind of the phase.
    pub kind: PhaseKind,
    /// Start time.
    pub start: Elapsed,
    /// End time. If the phase did not end, the end of the rehearsal.
    pub end: Elapsed,
    /// Description (`istiod-default-v1-29-1 is ready`).
    pub detail: String,
}

/// Kind of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PhaseKind {
    /// Installation of the new revision, until it is ready.
    ControlPlane,
    /// Moving tags to the new revision.
    Tags,
    /// Relabelling namespaces.
    Namespaces,
    /// Restarting workloads, batch by batch.
    Batches,
    /// From the end of the last batch until the old revision is removed, including the grace period.
    Pruning,
}

/// A relabeled namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelabeledNamespace {
    /// Name of the namespace.
    pub name: String,
    /// Label that selected the revision before the upgrade (`istio.io/rev=default-v1-28-2`).
    pub from: String,
    /// Label that selects the revision after the upgrade.
    pub to: String,
    /// Time of the change.
    pub at: Elapsed,
}

/// Workloads that are restarted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Number, starting at 1.
    pub number: u32,
    /// Time of the first restart.
    pub start: Elapsed,
    /// Time at which the last workload was ready or had failed.
    pub end: Elapsed,
    /// Number of workloads.
    pub workloads: usize,
    /// Number of failed workloads.
    pub failed: usize,
}

/// Migration of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpan {
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the workload.
    pub name: String,
    /// Kind (`Deployment`).
    pub kind: String,
    /// Number of the batch; 0 if the workload failed before its restart.
    pub batch: u32,
    /// Desired number of pods.
    pub replicas: u32,
    /// Time of the restart.
    pub start: Elapsed,
    /// Time at which the workload was ready on the new revision or had failed.
    pub end: Elapsed,
    /// Result of the migration.
    pub result: SpanResult,
    /// Failure reason as in the status; empty unless the workload failed.
    pub reason: String,
    /// Failure message; empty unless the workload failed.
    pub message: String,
    /// Minimum number of ready pods during the migration.
    pub fewest_ready: u32,
}

/// Result of a workload's migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SpanResult {
    /// Ready on the new revision.
    #[default]
    Migrated,
    /// Not ready in time, or rejected by the API server.
    Failed,
    /// Not finished at the time limit.
    Unfinished,
}

/// A skipped workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedWorkload {
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the workload.
    pub name: String,
    /// Kind of the workload.
    pub kind: String,
    /// Reason as in the status (`SkippedByAnnotation`).
    pub reason: String,
}

/// A problem with the upgrade, or a note about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Kind of finding.
    pub kind: FindingKind,
    /// Object (`Deployment shop/cart`, `Istio default`) or `input`.
    pub subject: String,
    /// Description of the problem.
    pub what: String,
    /// Suggested fix; empty if there is none.
    pub remedy: String,
}

/// Severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Information without required action.
    Info,
    /// Possible problem.
    Warning,
    /// The upgrade fails, or Services are interrupted.
    Error,
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// A workload does not become ready on the new revision.
    WorkloadFails,
    /// The new control plane does not become ready.
    ControlPlaneFails,
    /// A Service has no ready endpoint for some time.
    Interruption,
    /// A disruption budget is violated, or allows no disruption.
    DisruptionBudget,
    /// The update strategy of a workload stops all its pods at once.
    UpdateStrategy,
    /// A workload has no replicas, so no pod verifies the new revision.
    NoReplicas,
    /// A workload has a proxy although no label selects it for injection.
    MissingLabel,
    /// A workload is skipped.
    Skipped,
    /// A pod without a workload remains on the old revision.
    UnmanagedPod,
    /// Webhooks of two revisions inject the same pods.
    WebhookOverlap,
    /// Versions of control planes or proxies are further apart than supported.
    VersionSkew,
    /// A value is deprecated or unknown in the new chart.
    Values,
    /// A tag pins workloads to an old revision.
    Tag,
    /// The migration is on hold.
    Held,
    /// The old revision was not pruned.
    NotPruned,
    /// A kind is missing in the input.
    MissingInput,
    /// A setting was assumed for the rehearsal.
    Supposition,
    /// No operator manages the control plane.
    NotManaged,
}

/// A changed object of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name in the new control plane; if the object was removed, its name in the old one with the revision
    /// replaced.
    pub name: String,
    /// Kind of change.
    pub change: Change,
    /// Changed fields, sorted by name. Empty for added and removed objects.
    pub fields: Vec<FieldChange>,
}

/// Kind of change to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Only in the new control plane.
    Added,
    /// Only in the old control plane.
    Removed,
    /// In both, with differences.
    Changed,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Path (`spec.template.spec.containers[discovery].image`).
    pub path: String,
    /// Old value as JSON, if present.
    pub old: Option<String>,
    /// New value as JSON, if present.
    pub new: Option<String>,
    /// Unified diff, for multi-line strings. Replaces both values.
    pub diff: Option<String>,
}

/// Endpoints of a Service over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Desired number of endpoints: replicas of the selected workloads.
    pub desired: u32,
    /// Minimum number of ready endpoints.
    pub fewest: u32,
    /// Changes of the number of ready endpoints: a step function that starts at 0.
    pub points: Vec<Point>,
    /// Total time without a ready endpoint, after at least one endpoint was ready.
    pub interrupted: Elapsed,
}

/// Number of ready endpoints from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Start time.
    pub at: Elapsed,
    /// Number of ready endpoints.
    pub ready: u32,
}

/// A removed object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrunedObject {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Time of the removal.
    pub at: Elapsed,
}

/// Number of writes with one verb and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteCount {
    /// Verb (`create`, `apply`, `patch`, `delete`, `status`).
    pub verb: String,
    /// Kind of the written objects.
    pub kind: String,
    /// Number of writes.
    pub count: usize,
}
