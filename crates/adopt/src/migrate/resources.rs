//! Derives the custom resources of a component, and compares the objects that the operator renders for
//! them. Pure.

use std::sync::Arc;

use mainstay_api::names;
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::definitions::istio_definitions;
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Renderer;
use serde_json::Value;

use crate::AdoptError;
use crate::derive::{Derivation, Derived, derive};
use crate::found::{Component, ComponentKind};
use crate::migrate::compare::{Comparison, Objects, compare, index_objects};
use crate::migrate::{Comments, KUBE_VERSION, Migration};
use crate::plan::{defaults, with_live_values, without_chart_defaults};
use crate::releases::{Environment, PlaceholderOwners};

/// The charts and settings of an operator.
pub(super) struct OperatorCharts {
    settings: Settings,
    library: Library,
    renderer: Renderer,
}

impl OperatorCharts {
    pub(super) fn new(catalog: &Arc<Catalog>) -> Self {
        let (library, _) = Library::from_catalog(catalog);
        Self {
            settings: Settings::default(),
            renderer: Renderer::for_version(catalog.clone(), KUBE_VERSION),
            library,
        }
    }
}

/// Derives resources for one Istio version.
pub(super) struct Resources<'a> {
    pub(super) charts: &'a OperatorCharts,
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) version: &'a Version,
}

impl Resources<'_> {
    /// Adds the resources of a component to the migration, and returns them. `before` contains the objects
    /// that the previous installer rendered.
    pub(super) fn add(
        &self,
        component: &Component,
        before: &Objects,
        migration: &mut Migration,
    ) -> Result<Option<Derived>, AdoptError> {
        let Some(derivation) = derive(component, &self.version.name()) else {
            return Ok(None);
        };
        let best = self.select_best(component.kind, derivation, before)?;
        let documents = best.derivation.derived.documents();
        migration
            .comments
            .extend(documents.iter().map(|_| Comments::default()));
        migration.resources.extend(documents);
        migration.not_carried.extend(best.derivation.dropped);
        migration.add(best.comparison);
        Ok(Some(best.derivation.derived))
    }

    /// Compares the objects of the chart `base` with those that the operator and `mainstay crds install`
    /// install. The operator installs them for the default revision or tag.
    pub(super) fn compare_base(
        &self,
        planes: &[Derived],
        before: &Objects,
        migration: &mut Migration,
    ) -> Result<(), AdoptError> {
        let mut after = Vec::new();
        for plane in planes {
            after.extend(self.render(plane, |chart| chart == names::BASE_CHART)?);
        }
        let is_definition = |id: &String| id.starts_with("CustomResourceDefinition ");
        if before.keys().any(is_definition) {
            let definitions = istio_definitions(self.catalog, self.version);
            after.extend(definitions.map_err(|source| AdoptError::Definitions(Box::new(source)))?);
        }
        let after = index_objects(after.into_iter());
        migration.add(compare(ComponentKind::Istiod, before, &after));
        Ok(())
    }

    /// Returns the resources with the fewest differences. Values that equal defaults are removed, and
    /// values for fields that differ are added, unless that increases the number of differences.
    fn select_best(
        &self,
        kind: ComponentKind,
        full: Derivation,
        before: &Objects,
    ) -> Result<Compared, AdoptError> {
        let chart = match kind {
            ComponentKind::Cni => names::CNI_CHART,
            ComponentKind::Ztunnel => names::ZTUNNEL_CHART,
            _ => names::ISTIOD_CHART,
        };
        let short = without_chart_defaults(
            &full,
            kind,
            &defaults(self.catalog, self.version, Flavour::Operator, chart),
        );
        let full = self.compare(kind, full, before)?;
        let best = match self.compare(kind, short, before) {
            Ok(short) if short.count() <= full.count() => short,
            _ => full,
        };
        let mut derivation = best.derivation.clone();
        let values = derivation.derived.values_mut();
        let Some(better) = with_live_values(values, &best.comparison.differences) else {
            return Ok(best);
        };
        *values = better;
        match self.compare(kind, derivation, before) {
            Ok(better) if better.count() < best.count() => Ok(better),
            _ => Ok(best),
        }
    }

    fn compare(
        &self,
        kind: ComponentKind,
        derivation: Derivation,
        before: &Objects,
    ) -> Result<Compared, AdoptError> {
        let after = self.render(&derivation.derived, |chart| chart != names::BASE_CHART)?;
        let comparison = compare(kind, before, &index_objects(after.into_iter()));
        Ok(Compared {
            derivation,
            comparison,
        })
    }

    /// Renders the releases of the selected charts.
    fn render(&self, derived: &Derived, is_selected: fn(&str) -> bool) -> Result<Vec<Value>, AdoptError> {
        let environment = Environment {
            settings: &self.charts.settings,
            library: &self.charts.library,
        };
        let mut objects = Vec::new();
        let releases = environment.releases(derived, &PlaceholderOwners)?;
        for release in releases.iter().filter(|release| is_selected(release.chart)) {
            let rendered = self.charts.renderer.render(release);
            objects.extend(rendered.map_err(|source| AdoptError::Render {
                component: release.key.name.clone(),
                source: Box::new(source),
            })?);
        }
        Ok(objects)
    }
}

/// Derived resources, and the result of comparing the objects that they render.
struct Compared {
    derivation: Derivation,
    comparison: Comparison,
}

impl Compared {
    /// Returns the number of fields that differ.
    fn count(&self) -> usize {
        self.comparison.differences.len()
    }
}
