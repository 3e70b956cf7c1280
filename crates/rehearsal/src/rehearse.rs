//! Entry point: selects the simulation method and composes the report.

use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_mesh::migration::MigrationSettings;
use mainstay_mesh::workload::WorkloadKind;

use crate::calculated;
use crate::cluster_model::ClusterModel;
use crate::compose::{self, Rehearsal};
use crate::embedded;
use crate::error::RehearsalError;
use crate::input::Input;
use crate::limits::Limits;
use crate::objects::RenderCache;
use crate::report::{Method, Report};
use crate::request::{MAX_EMBEDDED_WORKLOADS, PlannedUpgrade, RehearsalRequest, plan_upgrade};
use crate::unmanaged::adopt_planes;

/// Input of both simulation methods.
#[derive(Clone, Copy)]
pub(crate) struct Simulation<'a> {
    pub(crate) input: &'a Input,
    pub(crate) model: &'a ClusterModel,
    pub(crate) planned: &'a PlannedUpgrade,
    pub(crate) limits: &'a Limits,
}

/// Kinds whose objects a calculation does not read after the model is created.
const MODELLED: [&str; 7] = [
    "Service",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Pod",
    "PodDisruptionBudget",
];

/// Rehearses an upgrade. The same input and request produce the same report.
pub fn rehearse(
    catalog: &Arc<Catalog>,
    input: Input,
    request: &RehearsalRequest,
) -> Result<Report, RehearsalError> {
    let adopted = adopt_planes(input, request.istio_name(), catalog);
    let mut input = adopted.input;
    let mut planned = plan_upgrade(&input, request)?;
    planned.adopted = adopted.planes;
    let version = catalog
        .resolve(&planned.target.spec.version)
        .map_err(|_| RehearsalError::Version(format!("{:?}", planned.target.spec.version)))?;
    let (model, facts) = ClusterModel::from_input(&input, request);
    let limits = Limits::for_upgrade(&input, &planned, &model);
    let method = method(&model, &planned, request);
    if method == Method::Calculated {
        for kind in &MODELLED {
            input.discard(kind);
        }
    }
    let simulation = Simulation {
        input: &input,
        model: &model,
        planned: &planned,
        limits: &limits,
    };
    let recording = match method {
        Method::Embedded => embedded::run(catalog.clone(), simulation, request.seed)?,
        Method::Calculated => calculated::run(catalog, simulation, facts),
    };
    Ok(compose::compose(&Rehearsal {
        catalog,
        input: &input,
        request,
        planned: &planned,
        model: &model,
        recording: &recording,
        version: &version,
        method,
        renders: RenderCache::new(catalog.clone()),
    }))
}

/// Returns the simulation method: the requested one if there is one, otherwise `Calculated` for large
/// clusters only. Other kinds than Deployments require `Embedded`.
fn method(model: &ClusterModel, planned: &PlannedUpgrade, request: &RehearsalRequest) -> Method {
    let settings = MigrationSettings::from_istio(&planned.target).unwrap_or_default();
    if settings
        .kinds
        .iter()
        .any(|kind| *kind != WorkloadKind::Deployment)
    {
        return Method::Embedded;
    }
    request
        .method
        .unwrap_or(if model.workloads.len() > MAX_EMBEDDED_WORKLOADS {
            Method::Calculated
        } else {
            Method::Embedded
        })
}
