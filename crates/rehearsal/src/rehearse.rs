//! One rehearsal: takes an input and a wish, chooses how to play, gives the report.

use std::sync::Arc;

use mainstay_catalog::Catalog;
use mainstay_mesh::migration::MigrationSettings;
use mainstay_mesh::workload::WorkloadKind;

use crate::compose::{self, Play};
use crate::embedded;
use crate::error::RehearsalError;
use crate::input::Input;
use crate::limits::Limits;
use crate::model;
use crate::objects::Shelf;
use crate::report::{Method, Report};
use crate::scene::Scene;
use crate::wish::{EMBEDDED_MOST, Plot, Wish, plot};

/// What the upgrade will do. The same input and wish give the same report.
pub fn rehearse(catalog: &Arc<Catalog>, input: &Input, wish: &Wish) -> Result<Report, RehearsalError> {
    let plot = plot(input, wish)?;
    let version = catalog
        .resolve(&plot.wanted.spec.version)
        .map_err(|_| RehearsalError::Version(format!("{:?}", plot.wanted.spec.version)))?;
    let scene = Scene::of(input, wish);
    let limits = Limits::of(input, &plot, scene.workloads.len());
    let method = method(&scene, &plot, wish);
    let recording = match method {
        Method::Embedded => embedded::play(catalog.clone(), input, (&scene, &plot, &limits), wish.seed)?,
        Method::Calculated => model::play(catalog, input, (&scene, &plot, &limits)),
    };
    Ok(compose::compose(&Play {
        catalog,
        input,
        wish,
        plot: &plot,
        scene: &scene,
        recording: &recording,
        version: &version,
        method,
        shelf: Shelf::new(catalog.clone()),
    }))
}

/// Only Deployments can be calculated, and only clusters of many workloads need be.
fn method(scene: &Scene, plot: &Plot, wish: &Wish) -> Method {
    let settings = MigrationSettings::from_istio(&plot.wanted).unwrap_or_default();
    if settings
        .kinds
        .iter()
        .any(|kind| *kind != WorkloadKind::Deployment)
    {
        return Method::Embedded;
    }
    wish.method.unwrap_or(if scene.workloads.len() > EMBEDDED_MOST {
        Method::Calculated
    } else {
        Method::Embedded
    })
}
