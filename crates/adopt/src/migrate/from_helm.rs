//! Converts charts with their values to custom resources. Pure.

use std::sync::Arc;

use mainstay_api::names;
use mainstay_catalog::Catalog;
use serde_json::Value;

use crate::AdoptError;
use crate::found::{Component, ComponentKind, Installer};
use crate::migrate::comments::KeyPath;
use crate::migrate::compare::index_objects;
use crate::migrate::draft::component_and_root;
use crate::migrate::from_operator::is_present;
use crate::migrate::helm_source::{HelmChart, HelmSource};
use crate::migrate::resources::{OperatorCharts, Resources};
use crate::migrate::{Migration, revision_tags};

/// Converts charts with their values. Each control plane, the CNI plugin and ztunnel are converted to a
/// resource.
pub fn helm_to_resources(sources: &[HelmSource], catalog: &Arc<Catalog>) -> Result<Migration, AdoptError> {
    let charts = OperatorCharts::new(catalog);
    let resources = |version| Resources {
        charts: &charts,
        catalog,
        version,
    };
    let mut migration = Migration::default();
    let mut planes = Vec::new();
    for source in sources {
        let Some(component) = convert_component(source, &mut migration) else {
            continue;
        };
        let before = index_objects(source.objects(catalog)?.into_iter());
        let first = migration.resources.len();
        let derived = resources(&source.version).add(&component, &before, &mut migration)?;
        planes.extend(derived.filter(|_| source.chart == HelmChart::Istiod));
        move_comments(source, &mut migration, first);
    }
    for source in sources.iter().filter(|source| source.chart == HelmChart::Base) {
        let before = index_objects(source.objects(catalog)?.into_iter());
        resources(&source.version).compare_base(&planes, &before, &mut migration)?;
    }
    Ok(migration)
}

/// Returns the component of a chart; `None` if no resource manages it; the reason is then added to
/// `migration`.
fn convert_component(source: &HelmSource, migration: &mut Migration) -> Option<Component> {
    let kind = match source.chart {
        HelmChart::Istiod => ComponentKind::Istiod,
        HelmChart::Cni => ComponentKind::Cni,
        HelmChart::Ztunnel => ComponentKind::Ztunnel,
        HelmChart::Base => {
            migration.drop_field(
                source.describe(),
                "run `mainstay crds install` for the definitions; the operator installs the rest",
            );
            return None;
        }
        HelmChart::Gateway => {
            migration.drop_field(
                source.describe(),
                "no resource manages gateways; keep the Helm release and its values",
            );
            return None;
        }
    };
    let text = |key: &str| source.values.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(Component {
        kind,
        namespace: source.namespace.clone(),
        workload: String::new(),
        revision: match text("revision") {
            "" => names::DEFAULT_REVISION.to_owned(),
            revision => revision.to_owned(),
        },
        versions: Vec::new(),
        installer: Installer::Unknown,
        values: source.values.clone(),
        values_from: source.origin.clone(),
        tags: revision_tags(&source.values),
        instance: source.release.clone(),
    })
}

/// Adds the comments of a file to the resource that was derived from it.
fn move_comments(source: &HelmSource, migration: &mut Migration, first: usize) {
    let (Some(resource), Some(comments)) =
        (migration.resources.get(first), migration.comments.get_mut(first))
    else {
        return;
    };
    comments.extend(source.comments.map_paths(|path| {
        let (_, root) = component_and_root(source.chart);
        let places: [&[&str]; 2] = [&["spec", "values"], &["spec", "values", root]];
        let full = |place: &[&str]| -> KeyPath {
            let place = place.iter().map(|key| (*key).to_owned());
            place.chain(path.iter().cloned()).collect()
        };
        let mut found = places.into_iter().map(full);
        found.find(|place| is_present(resource, place))
    }));
}
