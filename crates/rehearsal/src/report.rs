//! What a rehearsal found: plain data that reads the same in JSON, on a terminal and in a drawing. Takes nothing, decides nothing.
//!
//! Every moment is a [`Moment`]: milliseconds of virtual time since the upgrade began, which is when the version in the Istio's spec changed.
//! Lists have a fixed order, so that two reports of the same input and seed are equal byte for byte.

mod moment;
#[cfg(any(test, feature = "sample"))]
mod sample;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use moment::Moment;

/// Which version of this format a report has.
pub const FORMAT: u32 = 1;

/// What an upgrade will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of this format, [`FORMAT`].
    pub format: u32,
    /// What was rehearsed.
    pub upgrade: Upgrade,
    /// What it was rehearsed on.
    pub input: Input,
    /// Chance was drawn from this; the same input and seed give the same report.
    pub seed: u64,
    /// How workloads were played.
    pub method: Method,
    /// How it ends, in one word.
    pub outcome: Outcome,
    /// The sums.
    pub totals: Totals,
    /// What is wrong or will go wrong: worst first, then by subject.
    pub findings: Vec<Finding>,
    /// The stretches of the upgrade, in the order they begin.
    pub phases: Vec<Phase>,
    /// Namespaces that get another label, in the order they get it.
    pub namespaces: Vec<Relabelled>,
    /// Batches in their order.
    pub batches: Vec<Batch>,
    /// Every workload that is moved, in the order they start; same moment: by namespace, kind, name.
    pub workloads: Vec<Span>,
    /// Every workload that is left alone, by namespace, kind, name.
    pub skipped: Vec<Skipped>,
    /// What changes from the old control plane to the new one: by kind, namespace, name. Labels that only name the chart's version are no
    /// change.
    pub objects: Vec<ObjectChange>,
    /// How many endpoints every Service has over time: only Services of which a pod was restarted; by namespace, name.
    pub services: Vec<Service>,
    /// What is removed, in the order it goes.
    pub pruned: Vec<Pruned>,
    /// What the operator writes, by verb and kind.
    pub writes: Vec<Writes>,
}

/// From where to where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Name of the Istio.
    pub istio: String,
    /// The version in its spec (`v1.28.2`).
    pub from: String,
    /// The version it is to have (`v1.29.1`).
    pub to: String,
    /// The revision workloads are on now (`default-v1-28-2`); empty if there is none.
    pub from_revision: String,
    /// The revision they move to.
    pub to_revision: String,
    /// What was supposed although the Istio does not say so, in sentences.
    pub suppositions: Vec<String>,
}

/// What the rehearsal was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where it came from, in words: `cluster of context prod`, `snapshot backup.yaml`.
    pub source: String,
    /// How many objects of which kind were taken over, by kind.
    pub objects: Vec<Counted>,
    /// What was not there or could not be read, by kind.
    pub missing: Vec<String>,
    /// How many workloads have a readiness time that was observed; the others have the default.
    pub observed_readiness: usize,
    /// How long a workload takes until it is ready where nothing was observed, in milliseconds.
    pub default_readiness: Moment,
}

/// So many of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    /// The kind (`Deployment`).
    pub kind: String,
    /// How many.
    pub count: usize,
}

/// How workloads were played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// Every write went through the embedded API; its controllers made every pod.
    #[default]
    Embedded,
    /// The same planner decided, rolling updates were calculated: for clusters of many workloads.
    Calculated,
}

/// How it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every workload that is to move has moved.
    #[default]
    Completed,
    /// Some workloads failed, or the control plane never came up.
    Failed,
    /// Nothing was moved: nothing had to be, or the migration is held back (a finding says why).
    NothingMoves,
    /// It had not ended when the rehearsal gave up.
    Unfinished,
}

/// The sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// From the change of the version until the last thing happened that belongs to the upgrade, pruning included.
    pub duration: Moment,
    /// From the first restart until the last workload had come up or failed.
    pub moving: Moment,
    /// Workloads the upgrade is about, those left alone included.
    pub workloads: usize,
    /// Those that came up on the new revision.
    pub migrated: usize,
    /// Those that did not.
    pub failed: usize,
    /// Those that are left alone.
    pub skipped: usize,
    /// How many batches.
    pub batches: usize,
    /// Pods that were replaced.
    pub pods: usize,
    /// Namespaces that got another label.
    pub namespaces: usize,
    /// Writes of the operator.
    pub writes: usize,
    /// Services that were without any ready endpoint at some moment although they had one before.
    pub services_interrupted: usize,
}

/// A stretch of the upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Phase {
    /// Which.
    pub kind: PhaseKind,
    /// When it begins.
    pub start: Moment,
    /// When it ends; the end of the rehearsal if it never does.
    pub end: Moment,
    /// What it was about, in words (`istiod-default-v1-29-1 is ready`).
    pub detail: String,
}

/// Which stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PhaseKind {
    /// From the change of the version until the new revision is ready.
    ControlPlane,
    /// Tags move to the new revision.
    Tags,
    /// Namespaces get another label.
    Namespaces,
    /// Workloads are restarted, batch by batch.
    Batches,
    /// From the end of the last batch until the old revision is gone: the grace period and the removal.
    Pruning,
}

/// A namespace that gets another label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Relabelled {
    /// Its name.
    pub name: String,
    /// What chose its revision before (`istio.io/rev=default-v1-28-2`).
    pub from: String,
    /// What chooses it then.
    pub to: String,
    /// When.
    pub at: Moment,
}

/// Workloads that are restarted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Its number; the first is 1.
    pub number: u32,
    /// When its first workload is restarted.
    pub start: Moment,
    /// When its last workload has come up or has failed.
    pub end: Moment,
    /// How many workloads.
    pub workloads: usize,
    /// How many of them fail.
    pub failed: usize,
}

/// One workload's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind (`Deployment`).
    pub kind: String,
    /// Number of its batch; 0 if it failed before it was restarted.
    pub batch: u32,
    /// How many pods it wants.
    pub replicas: u32,
    /// When it is restarted.
    pub start: Moment,
    /// When it has come up on the new revision, or has failed.
    pub end: Moment,
    /// How it ended.
    pub result: SpanResult,
    /// Why it failed, as the status says it; empty if it did not.
    pub reason: String,
    /// Why, in a sentence; empty if it did not fail.
    pub message: String,
    /// The fewest ready pods it had while it was moved.
    pub fewest_ready: u32,
}

/// How a workload's way ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SpanResult {
    /// It came up on the new revision.
    #[default]
    Migrated,
    /// It did not in time, or was refused.
    Failed,
    /// It had not ended when the rehearsal gave up.
    Unfinished,
}

/// A workload that is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Why, as the status says it (`SkippedByAnnotation`).
    pub reason: String,
}

/// Something a person should know before the upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which sort of finding.
    pub kind: FindingKind,
    /// About which object (`Deployment shop/cart`), or `Istio default`, or `input`.
    pub subject: String,
    /// What is the matter, in a sentence.
    pub what: String,
    /// What to do about it, in a sentence; empty where there is nothing to do.
    pub remedy: String,
}

/// How bad it is; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// May hurt.
    Warning,
    /// The upgrade fails at it, or users feel it.
    Error,
}

/// Which sort of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// A workload does not come up on the new revision.
    WorkloadFails,
    /// The new control plane does not come up.
    ControlPlaneFails,
    /// A Service is without any ready endpoint for a while.
    Interruption,
    /// A disruption budget allows no pod to go, or fewer than a restart takes.
    DisruptionBudget,
    /// The way a workload is updated takes all its pods at once.
    UpdateStrategy,
    /// A workload wants no pods: its new revision is not proved.
    NoReplicas,
    /// A workload runs a proxy although nothing asks for injection any more.
    MissingLabel,
    /// A workload is left alone.
    Skipped,
    /// A pod that no workload made keeps the old revision.
    UnmanagedPod,
    /// Two webhooks inject the same pods.
    WebhookOverlap,
    /// Control plane and proxies, or two control planes, are further apart than is supported.
    VersionSkew,
    /// A value that the new chart no longer knows, or that is deprecated.
    Values,
    /// A tag pins workloads to an old revision.
    Tag,
    /// The migration starts nothing.
    Held,
    /// The old revision is not pruned.
    NotPruned,
    /// Something was not in the input.
    MissingInput,
    /// What was supposed for the rehearsal.
    Supposition,
}

/// One object of the control plane that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Its name in the new control plane, or in the old one if it goes. The revision's name in it is not taken for a difference.
    pub name: String,
    /// What happens to it.
    pub change: Change,
    /// What differs, field by field, in the order of the fields' names; empty for objects that come or go.
    pub fields: Vec<FieldChange>,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The new control plane has it, the old one has not.
    Added,
    /// The old control plane has it, the new one has not.
    Removed,
    /// Both have it, and it differs.
    Changed,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Where (`spec.template.spec.containers[discovery].image`).
    pub path: String,
    /// What it is now, as one line of JSON; nothing if it is not there.
    pub old: Option<String>,
    /// What it will be.
    pub new: Option<String>,
    /// For texts of several lines: a unified diff instead of both.
    pub diff: Option<String>,
}

/// A Service's endpoints over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many endpoints it should have: the replicas of the workloads it selects.
    pub desired: u32,
    /// The fewest it had.
    pub fewest: u32,
    /// When the number changed: a step function, the first at 0. Between two points the number of the earlier holds.
    pub points: Vec<Point>,
    /// For how long it had none although some were wanted and there had been some.
    pub interrupted: Moment,
}

/// So many at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// From when.
    pub at: Moment,
    /// How many endpoints are ready.
    pub ready: u32,
}

/// Something that is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-wide objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When.
    pub at: Moment,
}

/// What the operator writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    /// How (`create`, `apply`, `patch`, `delete`, `status`).
    pub verb: String,
    /// Which kind.
    pub kind: String,
    /// How often.
    pub count: usize,
}
