//! Kinds of `delivery.mainstay.dev`: applications, their revisions, clusters, and deployments of several
//! revisions over several clusters with one traffic plan.
//!
//! The `spec` in the proposal for multi-version, multi-cluster deployments is valid without changes. All
//! other fields are optional.

mod action;
mod analysis;
mod application;
mod cluster;
mod deployment;
mod inventory;
mod resource;
mod status;
mod strategy;
mod traffic;

pub use action::{ActionResult, ActionSpec, ActionStatus, ActionVerb, DeploymentAction};
pub use analysis::{
    AnalysisReference, AnalysisTemplate, AnalysisTemplateSpec, Metric, NoDataPolicy, PrometheusQuery,
    SuccessRange,
};
pub use application::{
    Application, ApplicationRevision, ApplicationSpec, ApplicationStatus, Component, RenderedComponent,
    RevisionSpec, component_type,
};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus, SecretReference, Taint};
pub use deployment::{
    AnalysisSettings, AppRevision, ApplicationDeployment, ApplicationDeploymentSpec, ClusterSelector,
    ClusterWeight, DeletionPolicy, DeletionSettings, Distribution, Divide, Failover, IntOrString, Placement,
    UnreachableClusters,
};
pub use inventory::{InventoryGroup, InventorySpec, ResourceInventory};
pub use resource::{Kind, NoStatus, Resource};
pub use status::{
    Allocation, AnalysisRun, ClusterPlacement, ClusterTraffic, DeploymentPhase, DeploymentStatus, DiffCounts,
    Direction, LegacyPhase, PauseCause, RevisionPlacement, RolloutStatus, RouteShare, RouteWeights,
};
pub use strategy::{
    FailureAction, HeaderMatch, HeaderRoute, Mirror, Pause, RollbackWindow, RolloutScope, RolloutStep,
    Strategy, StrategyType, Wave,
};
pub use traffic::{
    GatewayReference, HttpMatch, HttpRule, Provider, SessionAffinity, StringMatch, Traffic, TrafficPolicy,
    WeightedTarget,
};

/// API group of all delivery kinds.
pub const GROUP: &str = "delivery.mainstay.dev";
/// Group and version of all delivery kinds.
pub const API_VERSION: &str = "delivery.mainstay.dev/v1alpha1";
/// Finalizer that keeps a deployment until its objects are deleted in all clusters.
pub const FINALIZER: &str = "delivery.mainstay.dev/application-deployment";
/// Label of all generated objects and pods: name of the deployment.
pub const DEPLOYMENT_LABEL: &str = "delivery.mainstay.dev/deployment";
/// Label of all generated objects and pods: name of the Application.
pub const APPLICATION_LABEL: &str = "delivery.mainstay.dev/application";
/// Label of all generated objects and pods: name of the revision.
pub const REVISION_LABEL: &str = "delivery.mainstay.dev/revision";
/// Label of all generated objects and pods: name of the component.
pub const COMPONENT_LABEL: &str = "delivery.mainstay.dev/component";
/// Annotation of all generated objects: hash of the applied manifest, without replicas.
pub const MANIFEST_HASH: &str = "delivery.mainstay.dev/manifest-hash";
/// Label of a revision: hash of the rendered components.
pub const REVISION_HASH_LABEL: &str = "app.oam.dev/app-revision-hash";
/// Label of a revision that `KubeVela` also sets: name of the Application.
pub const OAM_NAME_LABEL: &str = "app.oam.dev/name";
/// Annotation of an Application: a revision is recorded but does not replace the running one.
pub const ROLLOUT_TEMPLATE: &str = "app.oam.dev/rollout-template";
/// Annotation of an Application with the same effect, as spelled by older versions of `KubeVela`.
pub const REVISION_ONLY: &str = "app.oam.dev/revision-only";
