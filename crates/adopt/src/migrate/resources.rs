//! Derives the custom resources of a component, and compares the objects that the operator renders for
//! them. Pure.

use std::sync::Arc;

use mainstay_api::names;
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_mesh::{Library, Settings};
use mainstay_operator::Renderer;

use crate::AdoptError;
use crate::derive::{Derivation, derive};
use crate::differences::FieldDifference;
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
    /// Adds the resources of a component to the migration. `before` contains the objects that the
    /// previous installer rendered.
    pub(super) fn add(
        &self,
        component: &Component,
        before: &Objects,
        migration: &mut Migration,
    ) -> Result<(), AdoptError> {
        let Some(derivation) = derive(component, &self.version.name()) else {
            return Ok(());
        };
        let best = self.select_best(component.kind, derivation, before)?;
        let documents = best.derivation.derived.documents();
        migration
            .comments
            .extend(documents.iter().map(|_| Comments::default()));
        migration.resources.extend(documents);
        migration.not_carried.extend(best.derivation.dropped);
        migration.equal_objects += best.equal;
        migration.differences.extend(best.differences);
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
            Ok(short) if short.differences.len() <= full.differences.len() => short,
            _ => full,
        };
        let mut derivation = best.derivation.clone();
        let values = derivation.derived.values_mut();
        let Some(better) = with_live_values(values, &best.differences) else {
            return Ok(best);
        };
        *values = better;
        match self.compare(kind, derivation, before) {
            Ok(better) if better.differences.len() < best.differences.len() => Ok(better),
            _ => Ok(best),
        }
    }

    fn compare(
        &self,
        kind: ComponentKind,
        derivation: Derivation,
        before: &Objects,
    ) -> Result<Compared, AdoptError> {
        let environment = Environment {
            settings: &self.charts.settings,
            library: &self.charts.library,
        };
        let mut after = Vec::new();
        for release in environment.releases(&derivation.derived, &PlaceholderOwners)? {
            if release.chart == names::BASE_CHART {
                continue;
            }
            let rendered = self.charts.renderer.render(&release);
            after.extend(rendered.map_err(|source| AdoptError::Render {
                component: release.key.name.clone(),
                source: Box::new(source),
            })?);
        }
        let Comparison { equal, differences } = compare(kind, before, &index_objects(after.into_iter()));
        Ok(Compared {
            derivation,
            equal,
            differences,
        })
    }
}

/// Derived resources, and the result of comparing the objects that they render.
struct Compared {
    derivation: Derivation,
    equal: usize,
    differences: Vec<FieldDifference>,
}
