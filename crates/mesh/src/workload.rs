//! Parses the fields of Deployments, `StatefulSets` and `DaemonSets` that a migration needs: references,
//! migration record and rollout.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{Time, names};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::migration::{is_readiness_timeout, parse_readiness_timeout};
use crate::references::{Labels, pod_reference};

/// Kind of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` `StatefulSet`.
    StatefulSet,
    /// `apps/v1` `DaemonSet`.
    DaemonSet,
}

impl WorkloadKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// Returns the value of the field `kind`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Key of a workload. Cheap to clone. Ordered by namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey(Arc<KeyParts>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct KeyParts {
    namespace: Box<str>,
    kind: WorkloadKind,
    name: Box<str>,
}

impl WorkloadKey {
    /// Creates a key.
    pub fn new(namespace: impl Into<Box<str>>, kind: WorkloadKind, name: impl Into<Box<str>>) -> Self {
        Self(Arc::new(KeyParts {
            namespace: namespace.into(),
            kind,
            name: name.into(),
        }))
    }

    /// Returns the smallest key in a namespace, to start a range.
    #[must_use]
    pub fn range_start(namespace: &str) -> Self {
        Self::new(namespace, WorkloadKind::Deployment, "")
    }

    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> WorkloadKind {
        self.0.kind
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the workload a pod belongs to, or `None` if its controller is not a workload. For a pod of a
    /// `ReplicaSet`, the name of the Deployment is that of the `ReplicaSet` without the template hash.
    #[must_use]
    pub fn for_pod(namespace: &str, controller: PodController<'_>, labels: &Labels) -> Option<Self> {
        let PodController { kind, name } = controller;
        let (kind, name) = match kind {
            "ReplicaSet" => {
                let hash = labels.get(names::POD_TEMPLATE_HASH)?;
                let deployment = name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
                (WorkloadKind::Deployment, deployment)
            }
            other => (
                WorkloadKind::from_name(other).filter(|kind| *kind != WorkloadKind::Deployment)?,
                name,
            ),
        };
        Some(Self::new(namespace, kind, name))
    }
}

/// The controlling owner of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodController<'a> {
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner.
    pub name: &'a str,
}

impl fmt::Display for WorkloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind().name(), self.namespace(), self.name())
    }
}

/// Record of a restart, stored in an annotation of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationRecord {
    /// The target revision.
    pub revision: String,
    /// Number of the batch.
    pub batch: i32,
    /// Time of the restart.
    pub started: Time,
}

impl MigrationRecord {
    /// Returns the value of the annotation.
    #[must_use]
    pub fn to_annotation(&self) -> String {
        json!({"revision": self.revision, "batch": self.batch, "startedAt": self.started}).to_string()
    }

    /// Parses the value of the annotation. Returns `None` if the operator did not write the value.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            revision: String,
            batch: i32,
            started_at: Time,
        }
        let raw: Raw = serde_json::from_str(text).ok()?;
        Some(Self {
            revision: raw.revision,
            batch: raw.batch,
            started: raw.started_at,
        })
    }
}

/// State of a workload, reduced to what a migration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Workload {
    /// UID of the workload.
    pub uid: String,
    /// Resource version of the workload.
    pub resource_version: String,
    /// Whether the workload is being deleted.
    pub deleting: bool,
    /// Whether an annotation excludes the workload from migration.
    pub skip: bool,
    /// Whether an annotation that controls the migration has an invalid value.
    pub invalid_annotation: bool,
    /// Whether a retry of the migration is requested.
    pub retry: bool,
    /// Readiness timeout of this workload, if set.
    pub timeout: Option<SignedDuration>,
    /// Position in the order of the migration: lower numbers are migrated first.
    pub priority: i32,
    /// Record of the last restart by a migration.
    pub record: Option<MigrationRecord>,
    /// Labels of the pod template that control injection.
    pub template: Labels,
    /// Whether an annotation of the pod template disables injection.
    pub opted_out: bool,
    /// Whether the pods use the network of their node.
    pub host_network: bool,
    /// Whether the rollout of the workload is paused.
    pub paused: bool,
    /// Whether the update strategy is `OnDelete`.
    pub on_delete: bool,
    /// Whether the rolling update has a partition, so that only pods with that ordinal or a higher one are
    /// updated.
    pub partitioned: bool,
    /// Progress of the rollout.
    pub rollout: Rollout,
}

/// Progress of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Desired number of pods.
    pub desired: i32,
    /// Number of pods of the current template.
    pub updated: i32,
    /// Number of pods of earlier templates.
    pub old: i32,
    /// Number of ready pods.
    pub ready: i32,
    /// Number of pods that have been ready for the minimum time.
    pub available: i32,
    /// Whether the controller has observed the last change, all pods are of the current template, ready and
    /// available, and no pods of earlier templates remain.
    pub complete: bool,
    /// Whether the rollout of the current template has been complete at any time.
    pub was_complete: bool,
}

/// Fields of a workload that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawWorkload {
    /// Metadata.
    pub metadata: RawMeta,
    /// Desired state.
    pub spec: RawSpec,
    /// Observed state.
    pub status: RawStatus,
}

/// `metadata` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawMeta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub deletion_timestamp: Option<Time>,
    pub annotations: Labels,
}

/// `spec` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawSpec {
    pub replicas: Option<i32>,
    pub paused: bool,
    pub template: RawTemplate,
    pub update_strategy: RawStrategy,
}

/// `spec.template` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawTemplate {
    pub metadata: RawTemplateMeta,
    pub spec: RawPodSpec,
}

/// `spec.template.spec` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawPodSpec {
    pub host_network: bool,
}

/// `spec.template.metadata` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawTemplateMeta {
    pub labels: Labels,
    pub annotations: Labels,
}

/// `spec.updateStrategy` of a stateful or daemon set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawStrategy {
    #[serde(rename = "type")]
    pub kind: String,
    pub rolling_update: Option<RawRollingUpdate>,
}

/// `spec.updateStrategy.rollingUpdate` of a stateful set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawRollingUpdate {
    pub partition: Option<i32>,
}

/// `status` of a workload of any of the three kinds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawStatus {
    pub observed_generation: i64,
    pub replicas: i32,
    pub updated_replicas: i32,
    pub ready_replicas: i32,
    pub available_replicas: i32,
    pub current_revision: String,
    pub update_revision: String,
    pub desired_number_scheduled: i32,
    pub current_number_scheduled: i32,
    pub updated_number_scheduled: i32,
    pub number_ready: i32,
    pub number_available: i32,
    pub conditions: Vec<RawCondition>,
}

/// A condition of a Deployment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
}

impl RawWorkload {
    /// Returns the key.
    #[must_use]
    pub fn key(&self, kind: WorkloadKind) -> WorkloadKey {
        let meta = &self.metadata;
        WorkloadKey::new(meta.namespace.as_str(), kind, meta.name.as_str())
    }

    /// Returns the state that a migration needs.
    #[must_use]
    pub fn to_workload(&self, kind: WorkloadKind) -> Workload {
        let annotation = |key: &str| self.metadata.annotations.get(key).map(String::as_str);
        let mut template = self.spec.template.metadata.labels.clone();
        template.retain(|key, _| key == names::REVISION_LABEL || key == names::INJECT_LABEL);
        let injection = self.spec.template.metadata.annotations.get(names::INJECT_LABEL);
        let record = annotation(names::MIGRATION_RECORD);
        let partition = self.spec.update_strategy.rolling_update.as_ref();
        let partition = partition.and_then(|update| update.partition).unwrap_or_default();
        Workload {
            uid: self.metadata.uid.clone(),
            resource_version: self.metadata.resource_version.clone(),
            deleting: self.metadata.deletion_timestamp.is_some(),
            skip: annotation(names::SKIP_MIGRATION) == Some("true"),
            invalid_annotation: has_invalid_annotation(&self.metadata.annotations),
            retry: record == Some(names::RETRY_MIGRATION),
            timeout: annotation(names::READINESS_TIMEOUT).and_then(parse_readiness_timeout),
            priority: annotation(names::MIGRATION_BATCH)
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or_default(),
            record: record.and_then(MigrationRecord::parse),
            template,
            opted_out: injection.is_some_and(|value| value == "false"),
            host_network: self.spec.template.spec.host_network,
            paused: self.spec.paused,
            on_delete: self.spec.update_strategy.kind == "OnDelete",
            partitioned: kind == WorkloadKind::StatefulSet && partition > 0,
            rollout: self.rollout(kind),
        }
    }

    fn rollout(&self, kind: WorkloadKind) -> Rollout {
        let status = &self.status;
        let is_observed = status.observed_generation >= self.metadata.generation;
        let desired = match kind {
            WorkloadKind::DaemonSet => status.desired_number_scheduled,
            _ => self.spec.replicas.unwrap_or(1),
        };
        let all = |numbers: &[i32]| numbers.iter().all(|number| *number == desired);
        let (updated, ready, full, settled) = match kind {
            WorkloadKind::Deployment => (
                status.updated_replicas,
                status.ready_replicas,
                all(&[
                    status.replicas,
                    status.updated_replicas,
                    status.ready_replicas,
                    status.available_replicas,
                ]),
                status.conditions.iter().any(|condition| {
                    condition.kind == "Progressing" && condition.reason == "NewReplicaSetAvailable"
                }),
            ),
            WorkloadKind::StatefulSet => (
                status.updated_replicas,
                status.ready_replicas,
                all(&[status.replicas, status.ready_replicas, status.available_replicas])
                    && (desired == 0 || status.current_revision == status.update_revision),
                status.current_revision == status.update_revision && !status.update_revision.is_empty(),
            ),
            WorkloadKind::DaemonSet => (
                status.updated_number_scheduled,
                status.number_ready,
                all(&[
                    status.current_number_scheduled,
                    status.updated_number_scheduled,
                    status.number_ready,
                    status.number_available,
                ]),
                status.updated_number_scheduled >= desired,
            ),
        };
        let (existing, available) = match kind {
            WorkloadKind::DaemonSet => (status.current_number_scheduled, status.number_available),
            _ => (status.replicas, status.available_replicas),
        };
        // Before the controller observes the change, the number refers to the previous template.
        let updated = if is_observed { updated } else { 0 };
        Rollout {
            desired,
            updated,
            old: existing.saturating_sub(updated).max(0),
            ready,
            available,
            complete: is_observed && full,
            was_complete: is_observed && (full || settled),
        }
    }
}

/// Whether an annotation that controls migration has an invalid value. Such a workload is not migrated,
/// because its owner did not intend the defaults.
pub(crate) fn has_invalid_annotation(annotations: &Labels) -> bool {
    let is_invalid = |key: &str, is_valid: fn(&str) -> bool| {
        annotations.get(key).is_some_and(|value| !is_valid(value.trim()))
    };
    is_invalid(names::SKIP_MIGRATION, |value| matches!(value, "true" | "false"))
        || is_invalid(names::READINESS_TIMEOUT, is_readiness_timeout)
        || is_invalid(names::MIGRATION_BATCH, |value| value.parse::<i32>().is_ok())
}

impl Rollout {
    /// Describes what prevents the rollout from being complete.
    #[must_use]
    pub fn describe_missing(&self) -> String {
        let mut parts = Vec::new();
        if self.updated < self.desired {
            parts.push(format!("{} of {} replicas updated", self.updated, self.desired));
        }
        let mut add = |count: i32, what: &str| {
            let replicas = if count == 1 { "replica" } else { "replicas" };
            if count > 0 {
                parts.push(format!("{count} {}", what.replace('%', replicas)));
            }
        };
        add(self.old, "old % left");
        add(self.desired - self.ready, "% not ready");
        add(
            self.ready.min(self.desired) - self.available,
            "ready % not yet available",
        );
        if parts.is_empty() {
            return "the rollout is not complete".to_owned();
        }
        parts.join(", ")
    }
}

impl Workload {
    /// Parses a workload of any kind from JSON. Missing fields are empty.
    #[must_use]
    pub fn from_object(kind: WorkloadKind, object: &Value) -> Option<(WorkloadKey, Self)> {
        let raw = RawWorkload::deserialize(object).ok()?;
        Some((raw.key(kind), raw.to_workload(kind)))
    }

    /// Returns the revision or tag that its pod template requests.
    #[must_use]
    pub fn requested_revision(&self) -> Option<&str> {
        pod_reference(&self.template)
    }

    /// Whether its pod template disables injection. The label takes precedence over the annotation.
    #[must_use]
    pub fn is_opted_out(&self) -> bool {
        match self.template.get(names::INJECT_LABEL) {
            Some(label) => label == "false",
            None => self.opted_out,
        }
    }

    /// Returns the end of the readiness timeout after a restart.
    #[must_use]
    pub fn deadline(&self, record: &MigrationRecord, default: SignedDuration) -> Timestamp {
        record.started.after(self.timeout.unwrap_or(default))
    }
}

#[cfg(test)]
mod tests;
