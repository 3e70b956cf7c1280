//! Plans resources on a blocking thread. Plans can be cached, because the same input always has the same
//! plan.

use std::sync::Arc;

use mainstay_api::istio_operator::{ISTIO_VERSION, IstioOperator};
use mainstay_catalog::{Catalog, CatalogError, Version};
use mainstay_manifest::controller::{Claim, claim_of, describe_errors, plan_operator};
use mainstay_manifest::{CatalogPackage, InstallationPlan, LiveTag, Package, add_default_tag};

/// Input that determines a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlanKey {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) version: Version,
    pub(super) kube_version: String,
    pub(super) live_tag: Option<LiveTag>,
    pub(super) writes_shared: bool,
}

/// A plan with its input.
#[derive(Clone, Debug)]
pub(super) struct CachedPlan {
    pub(super) key: PlanKey,
    pub(super) plan: Arc<InstallationPlan>,
}

/// Error of planning.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    /// The configuration is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The objects of the default tag cannot be generated.
    #[error("the default tag cannot be generated: {0}")]
    Tag(#[from] mainstay_manifest::TagError),
    /// Planning panicked.
    #[error("internal error: planning panicked")]
    Panicked,
}

/// Error: the version of a resource cannot be installed.
#[derive(Debug, thiserror::Error)]
#[error("{ISTIO_VERSION}: {0}")]
pub(super) struct VersionError(#[from] CatalogError);

/// Returns the Istio version of a resource: that of the annotation, or the default version.
pub(super) fn resolve_version(catalog: &Catalog, operator: &IstioOperator) -> Result<Version, VersionError> {
    Ok(match operator.metadata.annotations.get(ISTIO_VERSION) {
        Some(name) => catalog.resolve(name)?,
        None => catalog.default_version()?,
    })
}

/// Plans a resource on a blocking thread, because rendering takes milliseconds of CPU time.
pub(super) async fn plan(
    catalog: Arc<Catalog>,
    operator: Arc<IstioOperator>,
    key: PlanKey,
) -> Result<InstallationPlan, PlanError> {
    let planned = tokio::task::spawn_blocking(move || plan_blocking(&catalog, &operator, &key));
    planned.await.unwrap_or(Err(PlanError::Panicked))
}

fn plan_blocking(
    catalog: &Catalog,
    operator: &IstioOperator,
    key: &PlanKey,
) -> Result<InstallationPlan, PlanError> {
    let source = CatalogPackage::new(catalog, key.version.clone());
    let package = Package {
        charts: &source,
        profiles: &source,
    };
    let planned = plan_operator(operator, package, &key.version, &key.kube_version);
    let (mut plan, _) = planned.map_err(|problems| PlanError::Invalid(describe_errors(&problems)))?;
    if !key.writes_shared {
        plan.leave_shared();
    }
    add_default_tag(&mut plan, key.live_tag.as_ref(), package)?;
    Ok(plan)
}

/// Returns the claim of a resource, or `None` if the resource is invalid.
pub(super) fn claim(catalog: &Catalog, operator: &IstioOperator, version: &Version) -> Option<Claim> {
    let source = CatalogPackage::new(catalog, version.clone());
    let package = Package {
        charts: &source,
        profiles: &source,
    };
    claim_of(operator, package, version)
}
