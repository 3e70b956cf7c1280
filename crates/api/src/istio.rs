//! `Istio`: a mesh.

use serde::{Deserialize, Deserializer, Serialize};

use crate::meta::is_zero;
use crate::resource::status;
use crate::{
    Conditions, Kind, ObjectKind, Reason, Resource, Values, WorkloadMigration, WorkloadMigrationStatus,
};

/// A mesh.
pub type Istio = Resource<IstioSpec>;

/// Desired state of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioSpec {
    /// Istio version to install: a version, or an alias such as `v1.29-latest`.
    pub version: String,
    /// How a change of the version is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Built-in profile that the values are based on. `default` always applies; on `OpenShift` clusters,
    /// `openshift` is applied on top of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Namespace of the control plane. It cannot be changed.
    pub namespace: String,
    /// Values for the Helm charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Values>,
}

impl IstioSpec {
    /// Returns the update strategy, which is `InPlace` if unset.
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

/// How a change of the version is applied to the control plane, its tags and its workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `InPlace` updates the running control plane. `RevisionBased` installs a second one beside it, and
    /// deletes the old one when it is no longer in use.
    #[serde(rename = "type")]
    pub kind: UpdateStrategyType,
    /// Grace period in seconds before an inactive revision that is no longer in use is deleted. 30 if
    /// unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactive_revision_deletion_grace_period_seconds: Option<i64>,
    /// Deprecated. Has no effect; `workloadMigration` replaces it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub update_workloads: bool,
    /// Tags that follow the active revision once it is ready. Each becomes an `IstioRevisionTag` with that
    /// name. If unset, the default is `["default"]` for `RevisionBased` and no tags for `InPlace`. An empty
    /// list means no tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_tags: Option<Vec<String>>,
    /// How workloads are migrated to a new revision. If unset, they are not migrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_migration: Option<WorkloadMigration>,
}

/// How a new version is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum UpdateStrategyType {
    /// The running control plane is updated.
    #[default]
    InPlace,
    /// A second control plane is installed beside the running one.
    RevisionBased,
}

impl<'de> Deserialize<'de> for UpdateStrategyType {
    /// As upstream, every value except `RevisionBased` is parsed as `InPlace`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "RevisionBased" => Self::RevisionBased,
            _ => Self::InPlace,
        })
    }
}

/// Observed state of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IstioStatus {
    /// Generation of the spec that this status describes.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Conditions, at most one per type.
    #[serde(skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// State of the object: the reason of the first condition that is not true, or `Healthy`.
    #[serde(skip_serializing_if = "Reason::is_empty")]
    pub state: Reason,
    /// Name of the active revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_revision_name: String,
    /// Numbers of revisions; -1 if the revisions cannot be read.
    pub revisions: RevisionSummary,
    /// Progress of the workload migration. Set only while a migration is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_migration: Option<WorkloadMigrationStatus>,
}

status!(IstioStatus);

/// Numbers of revisions of one Istio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionSummary {
    /// Number of revisions.
    pub total: i32,
    /// Number of ready revisions.
    pub ready: i32,
    /// Number of revisions in use.
    pub in_use: i32,
}

impl RevisionSummary {
    /// Value if the revisions cannot be read.
    pub const UNREADABLE: Self = Self {
        total: -1,
        ready: -1,
        in_use: -1,
    };
}
