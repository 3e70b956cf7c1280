//! Confines releases to the objects and namespaces of their chart, because the operator would create other
//! objects with its own permissions.

use mainstay_api::names;
use mainstay_chart::confine::{find_added, is_outside};
use mainstay_mesh::plan::Release;
use serde_json::Value;

use super::identify;

/// Error for a release with an object that it must not contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfineError {
    /// A value adds an object.
    #[error(
        "{object} is not part of chart {chart:?}: a value with a line break adds it; remove the line break from spec.values"
    )]
    Object {
        /// Name of the chart.
        chart: &'static str,
        /// Kind, namespace and name of the object.
        object: String,
    },
    /// The chart cannot be rendered without the line breaks in its values.
    #[error(
        "cannot tell which objects of chart {chart:?} come from values with line breaks; remove the line breaks from spec.values"
    )]
    Unverified {
        /// Name of the chart.
        chart: &'static str,
    },
    /// An object is in a namespace that the chart does not use.
    #[error("{object} is outside the namespace {namespace:?} of the release of chart {chart:?}")]
    Namespace {
        /// Name of the chart.
        chart: &'static str,
        /// Kind, namespace and name of the object.
        object: String,
        /// Namespace of the release.
        namespace: String,
    },
}

/// Checks that every object is in a namespace that the chart uses.
pub(super) fn check_namespaces(release: &Release, objects: &[Value]) -> Result<(), ConfineError> {
    let allowed = release_namespaces(release);
    let mut objects = objects.iter().map(identify);
    match objects.find(|object| is_outside(object, &allowed)) {
        None => Ok(()),
        Some(object) => Err(ConfineError::Namespace {
            chart: release.chart,
            object: object.to_string(),
            namespace: release.key.namespace.clone(),
        }),
    }
}

/// Returns the namespaces of a release: its own namespace, and for the charts of a revision also that of
/// the control plane. Revisions are validated, so that both are the namespace in their spec.
fn release_namespaces(release: &Release) -> Vec<&str> {
    let own = release.key.namespace.as_str();
    let global = release
        .values
        .get("global")
        .and_then(|global| global.get("istioNamespace"));
    let is_revision = !matches!(release.chart, names::CNI_CHART | names::ZTUNNEL_CHART);
    let control_plane = global.and_then(Value::as_str).filter(|_| is_revision);
    [own].into_iter().chain(control_plane).collect()
}

/// Checks that `reference` contains every object, and contains it at least as often as `objects`.
pub(super) fn check_objects(
    release: &Release,
    objects: &[Value],
    reference: &[Value],
) -> Result<(), ConfineError> {
    let identities = |objects: &[Value]| objects.iter().map(identify).collect::<Vec<_>>();
    match find_added(identities(objects), identities(reference)) {
        None => Ok(()),
        Some(object) => Err(ConfineError::Object {
            chart: release.chart,
            object: object.to_string(),
        }),
    }
}
