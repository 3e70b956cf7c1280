//! Parses Deployments, `StatefulSets` and `DaemonSets` into what a migration needs: references, migration
//! record and rollout.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{Time, names};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::migration::parse_readiness_timeout;
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

    /// Returns the kind as in `kind`.
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

    /// Returns the workload a pod belongs to, or `None` if its controller is not a workload. A pod of a
    /// replica set belongs to the Deployment whose name remains when the pod's template hash is removed.
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
    /// The batch.
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

    /// Parses the value of the annotation. Returns `None` for a value that was not written by us.
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

/// The facts about a workload that a migration needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Workload {
    /// Its UID.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is excluded by annotation.
    pub skip: bool,
    /// Its own readiness timeout, if set.
    pub timeout: Option<SignedDuration>,
    /// Lower numbers are migrated first.
    pub priority: i32,
    /// Record of its last restart by a migration.
    pub record: Option<MigrationRecord>,
    /// Labels of its pod template that control injection.
    pub template: Labels,
    /// Whether its rollout is paused.
    pub paused: bool,
    /// Whether its update strategy is `OnDelete`.
    pub on_delete: bool,
    /// Progress of its rollout.
    pub rollout: Rollout,
}

/// Progress of a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Desired number of pods.
    pub desired: i32,
    /// Number of pods of the current template.
    pub updated: i32,
    /// Number of ready pods.
    pub ready: i32,
    /// Whether the controller has observed the last change, all pods are of the current template, ready and
    /// available, and no other pods are left.
    pub complete: bool,
    /// Whether the rollout of the current template was complete at any time.
    pub was_complete: bool,
}

/// The fields of a workload that are read.
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
}

/// `spec.template.metadata` of a workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawTemplateMeta {
    pub labels: Labels,
}

/// `spec.updateStrategy` of a stateful or daemon set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the API server's own names")]
pub struct RawStrategy {
    #[serde(rename = "type")]
    pub kind: String,
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

    /// Returns the facts that a migration needs.
    #[must_use]
    pub fn to_workload(&self, kind: WorkloadKind) -> Workload {
        let annotation = |key: &str| self.metadata.annotations.get(key).map(String::as_str);
        let mut template = self.spec.template.metadata.labels.clone();
        template.retain(|key, _| key == names::REVISION_LABEL || key == names::INJECT_LABEL);
        Workload {
            uid: self.metadata.uid.clone(),
            resource_version: self.metadata.resource_version.clone(),
            deleting: self.metadata.deletion_timestamp.is_some(),
            skip: annotation(names::SKIP_MIGRATION) == Some("true"),
            timeout: annotation(names::READINESS_TIMEOUT).and_then(parse_readiness_timeout),
            priority: annotation(names::MIGRATION_BATCH)
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or_default(),
            record: annotation(names::MIGRATION_RECORD).and_then(MigrationRecord::parse),
            template,
            paused: self.spec.paused,
            on_delete: self.spec.update_strategy.kind == "OnDelete",
            rollout: self.rollout(kind),
        }
    }

    fn rollout(&self, kind: WorkloadKind) -> Rollout {
        let status = &self.status;
        let seen = status.observed_generation >= self.metadata.generation;
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
        Rollout {
            desired,
            // Until the controller has observed the change, the number is that of the previous template.
            updated: if seen { updated } else { 0 },
            ready,
            complete: seen && full,
            was_complete: seen && (full || settled),
        }
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

    /// Whether its pod template disables injection.
    #[must_use]
    pub fn is_opted_out(&self) -> bool {
        self.template.get(names::INJECT_LABEL).map(String::as_str) == Some("false")
    }

    /// Returns when the readiness timeout ends.
    #[must_use]
    pub fn deadline(&self, mark: &MigrationRecord, default: SignedDuration) -> Timestamp {
        mark.started.after(self.timeout.unwrap_or(default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn the_workload_of_a_pod_is_derived_from_its_controller() {
        let check = |(kind, name), hash: &str, expected: Option<&str>| {
            let owner = PodController { kind, name };
            let found = WorkloadKey::for_pod("shop", owner, &labels(&[(names::POD_TEMPLATE_HASH, hash)]));
            assert_eq!(
                found.map(|key| key.to_string()).as_deref(),
                expected,
                "{owner:?} {hash}"
            );
        };
        check(("ReplicaSet", "cart-5d4f"), "5d4f", Some("Deployment/shop/cart"));
        check(
            ("ReplicaSet", "cart-v2-5d4f"),
            "5d4f",
            Some("Deployment/shop/cart-v2"),
        );
        check(("ReplicaSet", "cart"), "5d4f", None);
        check(("ReplicaSet", "5d4f"), "5d4f", None);
        check(("StatefulSet", "db"), "", Some("StatefulSet/shop/db"));
        check(("DaemonSet", "agent"), "", Some("DaemonSet/shop/agent"));
        check(("Job", "nightly"), "", None);
        check(("Deployment", "cart"), "", None);
        let bare = PodController {
            kind: "ReplicaSet",
            name: "cart-5d4f",
        };
        assert_eq!(
            WorkloadKey::for_pod("shop", bare, &labels(&[])),
            None,
            "a bare replica set"
        );
    }

    #[test]
    fn records_are_parsed_as_they_are_written() {
        let record = MigrationRecord {
            revision: "default-v1-29-1".into(),
            batch: 3,
            started: Time::from_timestamp("2026-11-15T16:48:21Z".parse().unwrap()),
        };
        let text = r#"{"batch":3,"revision":"default-v1-29-1","startedAt":"2026-11-15T16:48:21Z"}"#;
        assert_eq!(record.to_annotation(), text);
        assert_eq!(MigrationRecord::parse(text), Some(record));
        for bad in [
            "",
            "yes",
            "{}",
            r#"{"batch":"3","revision":"x","startedAt":"2026-11-15T16:48:21Z"}"#,
        ] {
            assert_eq!(MigrationRecord::parse(bad), None, "{bad}");
        }
    }

    fn rollout(kind: WorkloadKind, json: &Value) -> (bool, bool) {
        let (_, workload) = Workload::from_object(kind, json).unwrap();
        (workload.rollout.complete, workload.rollout.was_complete)
    }

    #[test]
    fn a_deployment_is_complete_when_its_controller_says_so_of_this_generation() {
        let deployment = |generation, counts: [i32; 4], reason: &str| {
            let [replicas, updated, ready, available] = counts;
            json!({
                "metadata": {"name": "cart", "namespace": "shop", "generation": 2},
                "spec": {"replicas": 3},
                "status": {
                    "observedGeneration": generation, "replicas": replicas, "updatedReplicas": updated,
                    "readyReplicas": ready, "availableReplicas": available,
                    "conditions": [{"type": "Progressing", "reason": reason}],
                },
            })
        };
        let check = |json, expected, why: &str| {
            assert_eq!(rollout(WorkloadKind::Deployment, &json), expected, "{why}");
        };
        check(
            deployment(2, [3, 3, 3, 3], "NewReplicaSetAvailable"),
            (true, true),
            "all there",
        );
        check(
            deployment(1, [3, 3, 3, 3], "NewReplicaSetAvailable"),
            (false, false),
            "of the generation before",
        );
        check(
            deployment(2, [4, 3, 4, 4], "ReplicaSetUpdated"),
            (false, false),
            "an old pod is left",
        );
        check(
            deployment(2, [3, 2, 3, 3], "ReplicaSetUpdated"),
            (false, false),
            "one is not updated",
        );
        check(
            deployment(2, [3, 3, 2, 2], "ReplicaSetUpdated"),
            (false, false),
            "one is not ready yet",
        );
        check(
            deployment(2, [3, 3, 3, 2], "ReplicaSetUpdated"),
            (false, false),
            "one is not available yet",
        );
        check(
            deployment(2, [3, 3, 2, 2], "NewReplicaSetAvailable"),
            (false, true),
            "one faltered later",
        );
        check(
            deployment(2, [3, 1, 2, 2], "ProgressDeadlineExceeded"),
            (false, false),
            "stuck",
        );
    }

    #[test]
    fn stateful_and_daemon_sets_are_complete_in_their_own_way() {
        let stateful = |current: &str, ready: i32| {
            json!({
                "metadata": {"name": "db", "namespace": "shop", "generation": 1},
                "spec": {"replicas": 2},
                "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": ready, "availableReplicas": ready,
                    "currentRevision": current, "updateRevision": "db-2"},
            })
        };
        assert_eq!(
            rollout(WorkloadKind::StatefulSet, &stateful("db-2", 2)),
            (true, true)
        );
        assert_eq!(
            rollout(WorkloadKind::StatefulSet, &stateful("db-1", 2)),
            (false, false)
        );
        assert_eq!(
            rollout(WorkloadKind::StatefulSet, &stateful("db-2", 1)),
            (false, true)
        );
        let daemon = |updated: i32, ready: i32| {
            json!({
                "metadata": {"name": "agent", "namespace": "shop", "generation": 1},
                "status": {"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                    "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready},
            })
        };
        assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(3, 3)), (true, true));
        assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(2, 3)), (false, false));
        assert_eq!(rollout(WorkloadKind::DaemonSet, &daemon(3, 2)), (false, true));
    }

    #[test]
    fn invalid_annotations_count_as_unset() {
        let json = json!({"metadata": {"name": "cart", "namespace": "shop", "annotations": {
            names::SKIP_MIGRATION: "yes", names::READINESS_TIMEOUT: "soon", names::MIGRATION_BATCH: "first",
            names::MIGRATION_RECORD: "?",
        }}});
        let (_, workload) = Workload::from_object(WorkloadKind::Deployment, &json).unwrap();
        let expected = Workload {
            rollout: workload.rollout,
            ..Workload::default()
        };
        assert_eq!(workload, expected);
    }
}
