//! Istio: a mesh as its owner describes it. Types only.

use serde::{Deserialize, Deserializer, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{
    Conditions, Kind, ObjectKind, Reason, Resource, Values, WorkloadMigration, WorkloadMigrationStatus,
};

/// A mesh.
pub type Istio = Resource<IstioSpec>;

/// What is wanted of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioSpec {
    /// The version of Istio to install: a version or an alias such as `v1.29-latest`.
    pub version: String,
    /// What happens when the version changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// The built-in profile to start from. `default` always applies; on `OpenShift` clusters `openshift` applies on top of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// The namespace of the control plane. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl IstioSpec {
    /// The strategy, also when nothing is said.
    #[must_use]
    pub fn strategy(&self) -> UpdateStrategyType {
        self.update_strategy
            .as_ref()
            .map(|strategy| strategy.kind)
            .unwrap_or_default()
    }
}

impl Kind for IstioSpec {
    const KIND: ObjectKind = ObjectKind::Istio;
    type Status = IstioStatus;
}

/// What happens to the control plane, its tags and its workloads when the version changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `InPlace` changes the control plane where it is. `RevisionBased` adds a new one beside it and removes the old one once
    /// nothing refers to it.
    #[serde(rename = "type")]
    pub kind: UpdateStrategyType,
    /// How many seconds an inactive revision is kept after the last workload left it. At least 0, 30 if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive_revision_deletion_grace_period_seconds: Option<i64>,
    /// Deprecated: it never did anything. See `workloadMigration`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub update_workloads: bool,
    /// Tags that always point to the active revision, once that is ready. Each becomes an `IstioRevisionTag` of that name. Unset
    /// means `["default"]` under `RevisionBased` and none under `InPlace`; an empty list means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_tags: Option<Vec<String>>,
    /// How workloads are moved to a new revision. Unset: not by us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_migration: Option<WorkloadMigration>,
}

/// Where a new version goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum UpdateStrategyType {
    /// Into the control plane that is there.
    #[default]
    InPlace,
    /// Beside it.
    RevisionBased,
}

impl<'de> Deserialize<'de> for UpdateStrategyType {
    /// As upstream: whatever is not `RevisionBased` is `InPlace`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "RevisionBased" => Self::RevisionBased,
            _ => Self::InPlace,
        })
    }
}

/// What was found of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioStatus {
    /// The generation of the spec this status is about.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// What holds and what does not.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// One word for all of it.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// The revision new workloads should use.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_revision_name: String,
    /// How many revisions there are, are ready, are in use; -1 when they cannot be read.
    pub revisions: RevisionSummary,
    /// How far the workloads are. Only while a migration is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_migration: Option<WorkloadMigrationStatus>,
}

status!(IstioStatus);

/// Counts of the revisions of one Istio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionSummary {
    /// All of them.
    pub total: i32,
    /// Those that are ready.
    pub ready: i32,
    /// Those something refers to.
    pub in_use: i32,
}

impl RevisionSummary {
    /// They cannot be read.
    pub const UNREADABLE: Self = Self {
        total: -1,
        ready: -1,
        in_use: -1,
    };
}
