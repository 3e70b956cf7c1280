//! Root objects of templates. Templates of one chart share one root object, so that a value set by one
//! template is visible in the next one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_template::{Map, MapType, Str, Value};

use super::RenderOptions;
use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::objects;
use crate::prepare::Prepared;

/// A template that is ready to run.
pub(super) struct Renderable<'a> {
    /// Path of the template: `chart/charts/sub/templates/x.yaml`.
    pub(super) path: String,
    /// Base path: `chart/charts/sub/templates`.
    pub(super) base_path: String,
    /// Text of the template.
    pub(super) text: &'a Arc<[u8]>,
    /// Root object of the template's chart.
    pub(super) scope: Map,
}

impl Renderable<'_> {
    /// Whether the template is parsed but not run.
    pub(super) fn is_partial(&self) -> bool {
        self.path.rsplit('/').next().unwrap_or_default().starts_with('_')
    }
}

/// Returns all templates in the order in which Helm parses and runs them: the deepest path first, then by
/// name in reverse.
pub(super) fn renderables<'a>(prepared: &'a Prepared, options: &'a RenderOptions) -> Vec<Renderable<'a>> {
    let shared = SharedObjects {
        dialect: options.dialect,
        release: release(options),
        capabilities: objects::capabilities(&options.capabilities, options.dialect),
    };
    let mut found = BTreeMap::new();
    let values = prepared.values.retyped(shared.values());
    shared.collect(
        &prepared.chart,
        Position {
            path: prepared.chart.name(),
            is_root: true,
        },
        &values,
        &mut found,
    );
    let mut renderables: Vec<Renderable<'a>> = found.into_values().collect();
    renderables.sort_by_cached_key(|it| Reverse((it.path.matches('/').count(), it.path.clone())));
    renderables
}

fn release(options: &RenderOptions) -> Value {
    let release = &options.release;
    let entries = [
        ("Name", Value::string(release.name.as_str())),
        ("Namespace", Value::string(release.namespace.as_str())),
        ("IsUpgrade", Value::Bool(release.is_upgrade)),
        ("IsInstall", Value::Bool(!release.is_upgrade)),
        ("Revision", Value::int(release.revision)),
        ("Service", Value::from("Helm")),
    ];
    Value::map(
        entries
            .into_iter()
            .map(|(key, value)| (Str::from(key), value))
            .collect(),
    )
}

/// Position of a chart in the tree of charts.
#[derive(Clone, Copy)]
struct Position<'a> {
    path: &'a str,
    is_root: bool,
}

/// Objects that all charts of a render share.
struct SharedObjects {
    dialect: Dialect,
    release: Value,
    capabilities: Value,
}

impl SharedObjects {
    fn values(&self) -> MapType {
        MapType::Named(self.dialect.values_type())
    }

    /// Adds the templates of `chart` and its subcharts to `found`. Returns the chart's root object.
    fn collect<'a>(
        &self,
        chart: &'a Chart,
        at: Position<'_>,
        values: &Map,
        found: &mut BTreeMap<String, Renderable<'a>>,
    ) -> Map {
        let subcharts = Map::new(MapType::Any, BTreeMap::new());
        let root = self.root_object(chart, at.is_root, values, &subcharts);
        for sub in &chart.dependencies {
            let path = format!("{}/charts/{}", at.path, sub.name());
            let below = self.subtable(values, sub.name());
            let sub_root = self.collect(
                sub,
                Position {
                    path: &path,
                    is_root: false,
                },
                &below,
                found,
            );
            subcharts.insert(sub.name(), Value::Map(sub_root));
        }
        for file in chart.templates.iter().filter(|file| is_used(chart, &file.name)) {
            let path = format!("{}/{}", at.path, file.name);
            let base_path = format!("{}/templates", at.path);
            found.insert(
                path.clone(),
                Renderable {
                    path,
                    base_path,
                    text: &file.data,
                    scope: root.clone(),
                },
            );
        }
        root
    }

    fn root_object(&self, chart: &Chart, is_root: bool, values: &Map, subcharts: &Map) -> Map {
        let files = objects::Files::new(&chart.files, self.dialect);
        let entries = [
            ("Chart", objects::chart(&chart.metadata, is_root, self.dialect)),
            ("Files", Value::object(files)),
            ("Release", self.release.clone()),
            ("Capabilities", self.capabilities.clone()),
            ("Values", Value::Map(values.clone())),
            ("Subcharts", Value::Map(subcharts.clone())),
        ];
        Map::new(
            MapType::Any,
            entries
                .into_iter()
                .map(|(key, value)| (Str::from(key), value))
                .collect(),
        )
    }

    /// Returns the table at `name`, or an empty table if there is none. Helm treats the name as a dotted
    /// path.
    fn subtable(&self, values: &Map, name: &str) -> Map {
        let found = name
            .split('.')
            .try_fold(values.clone(), |map, part| match map.get(part.as_bytes()) {
                Some(Value::Map(map)) => Some(map),
                _ => None,
            });
        found.map_or_else(
            || Map::new(self.values(), BTreeMap::new()),
            |map| map.retyped(self.values()),
        )
    }
}

/// Whether a template is part of the render. Only partials of a library chart are.
fn is_used(chart: &Chart, name: &str) -> bool {
    let is_partial = name.rsplit('/').next().unwrap_or(name).starts_with('_');
    is_partial || !chart.metadata.kind.eq_ignore_ascii_case("library")
}
