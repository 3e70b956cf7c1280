//! Converts charts with their values to an `IstioOperator`, and compares the rendered objects. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_catalog::{Catalog, Flavour};
use mainstay_cluster::deploy::document;
use mainstay_cluster::installer::text;
use mainstay_manifest::{
    CatalogPackage, Diagnostics, InputFile, Profiles as _, Request, Segment, Severity, configuration,
    generate,
};
use serde_json::{Map, Value, json};

use crate::AdoptError;
use crate::derive::Dropped;
use crate::found::ComponentKind;
use crate::migrate::compare::{Comparison, Objects, compare, index_objects};
use crate::migrate::draft::{Draft, component_and_root, get, leaves, remove, spec_path};
use crate::migrate::from_operator::is_present;
use crate::migrate::helm_source::{HelmChart, HelmSource};
use crate::migrate::{Comments, KUBE_VERSION, Migration};
use crate::plan::{defaults, put};

/// Maximum number of attempts to remove rejected values before the conversion fails.
const MAX_ATTEMPTS: usize = 8;

/// Profiles in order of preference.
const PREFERRED: [&str; 3] = ["default", "minimal", "ambient"];

/// Converts charts with their values. Each control plane is converted to an `IstioOperator`; the first
/// one contains all other charts.
pub fn helm_to_operator(sources: &[HelmSource], catalog: &Arc<Catalog>) -> Result<Migration, AdoptError> {
    let mut migration = Migration::default();
    for group in group_by_control_plane(sources) {
        let Some(first) = group.first() else { continue };
        let conversion = Conversion {
            package: CatalogPackage::new(catalog, first.version.clone()),
            sources: &group,
            catalog,
        };
        conversion.run(&mut migration)?;
    }
    Ok(migration)
}

/// Groups the charts by control plane. Control planes without a revision come first. Each group starts
/// with its control plane; the first group also contains all other charts.
fn group_by_control_plane(sources: &[HelmSource]) -> Vec<Vec<&HelmSource>> {
    let is_plane = |source: &&HelmSource| source.chart == HelmChart::Istiod;
    let (mut planes, others): (Vec<&HelmSource>, Vec<&HelmSource>) = sources.iter().partition(is_plane);
    // Charts other than istiod usually belong to the control plane without a revision.
    planes.sort_by_key(|plane| {
        plane
            .values
            .get("revision")
            .is_some_and(|name| name.as_str() != Some(""))
    });
    let mut groups: Vec<Vec<&HelmSource>> = planes.into_iter().map(|plane| vec![plane]).collect();
    match groups.first_mut() {
        Some(first) => first.extend(others),
        None => groups.push(others),
    }
    groups
}

struct Conversion<'a> {
    sources: &'a [&'a HelmSource],
    catalog: &'a Arc<Catalog>,
    package: CatalogPackage<'a>,
}

/// A configuration, and the result of comparing the objects that it renders.
struct Candidate {
    operator: Value,
    not_carried: Vec<Dropped>,
    comparison: Comparison,
}

impl Conversion<'_> {
    fn run(&self, migration: &mut Migration) -> Result<(), AdoptError> {
        let mut before = Vec::new();
        for source in self.sources {
            before.extend(source.objects(self.catalog)?);
        }
        let before = index_objects(before.into_iter());
        let mut draft = Draft::from_sources(self.sources);
        self.check_versions(&mut draft);
        let short = self.build_candidate(&draft, true, &before);
        let best = match short {
            Ok(short) if short.comparison.differences.is_empty() => short,
            short => {
                let full = self.build_candidate(&draft, false, &before)?;
                match short {
                    Ok(short) if short.comparison.differences.len() <= full.comparison.differences.len() => {
                        short
                    }
                    _ => full,
                }
            }
        };
        migration.comments.push(self.comments(&best.operator));
        migration.resources.push(best.operator);
        migration.not_carried.extend(draft.not_carried);
        migration.not_carried.extend(best.not_carried);
        migration.equal_objects += best.comparison.equal;
        migration.differences.extend(best.comparison.differences);
        Ok(())
    }

    /// Reports charts with another version, because an `IstioOperator` has only one.
    fn check_versions(&self, draft: &mut Draft) {
        let version = self.package.version();
        for source in self.sources.iter().filter(|source| source.version != *version) {
            draft.not_carried.push(Dropped {
                path: format!("{}: version {}", source.describe(), source.version),
                reason: format!("all components of an IstioOperator have one version: {version}"),
            });
        }
    }

    /// Builds a configuration without rejected values, and compares its objects with `before`.
    fn build_candidate(
        &self,
        draft: &Draft,
        is_minimal: bool,
        before: &Objects,
    ) -> Result<Candidate, AdoptError> {
        let mut operator = self.shortest_configuration(draft, is_minimal)?;
        let mut not_carried = Vec::new();
        for _ in 0..MAX_ATTEMPTS {
            match self.render(&operator) {
                Ok(after) => {
                    return Ok(Candidate {
                        operator,
                        not_carried,
                        comparison: compare(ComponentKind::Istiod, before, &after),
                    });
                }
                Err(problems) => {
                    if !resolve_rejected(&mut operator, &problems, &mut not_carried) {
                        return Err(AdoptError::Converted(Box::new(problems)));
                    }
                }
            }
        }
        Err(AdoptError::Unsupported(
            "the values of the charts are rejected repeatedly".to_owned(),
        ))
    }

    fn render(&self, operator: &Value) -> Result<Objects, Diagnostics> {
        let mut request = Request::new(&self.package);
        request.kube_version = Some(KUBE_VERSION.to_owned());
        request.files = vec![InputFile {
            name: "converted".to_owned(),
            text: document(operator).unwrap_or_default().into_bytes(),
        }];
        let rendered = generate(&request)?;
        let all = rendered
            .components
            .into_iter()
            .flat_map(|component| component.objects);
        Ok(index_objects(all.map(|object| Value::from(object.0))))
    }

    /// Returns the configuration based on the profile that requires the fewest settings.
    fn shortest_configuration(&self, draft: &Draft, is_minimal: bool) -> Result<Value, AdoptError> {
        let mut names = self.package.profile_names().unwrap_or_default();
        names.sort_by_key(|name| {
            PREFERRED
                .iter()
                .position(|one| one == name)
                .unwrap_or(PREFERRED.len())
        });
        let mut best: Option<(usize, Map<String, Value>)> = None;
        for name in names {
            let Some(profile) = self.profile(&name) else {
                continue;
            };
            let same = |keys: &[&str]| {
                let own = get(&draft.spec, keys).filter(|own| own.as_str() != Some(""));
                own == get(&profile, keys).filter(|own| own.as_str() != Some(""))
            };
            // A value profile or platform that a profile sets cannot be unset.
            if !same(&["values", "profile"]) || !same(&["values", "global", "platform"]) {
                continue;
            }
            let mut spec = self.relative_to_profile(draft, &profile, is_minimal);
            let size = leaves(&spec).len();
            if best.as_ref().is_none_or(|(least, _)| size < *least) {
                if name != "default" {
                    spec.insert("profile".to_owned(), name.into());
                }
                best = Some((size, spec));
            }
        }
        let (_, spec) = best.ok_or_else(|| {
            let profile = draft.profile();
            AdoptError::Unsupported(format!("no profile has the value profile {profile:?}"))
        })?;
        Ok(json!({"apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator", "spec": spec}))
    }

    /// Returns the `spec` of a profile; `None` if it cannot be read.
    fn profile(&self, name: &str) -> Option<Map<String, Value>> {
        let mut request = Request::new(&self.package);
        request.sets = vec![format!("profile={name}")];
        let operator = configuration(&request).ok()?;
        let operator = Value::from(mainstay_yaml::Value::Map(operator));
        let mut spec = operator.get("spec")?.as_object().cloned()?;
        // Unless the user sets this value, rendering sets it to whether the CNI component is enabled.
        let has_cni = self.sources.iter().any(|source| source.chart == HelmChart::Cni);
        put(&mut spec, &["values", "pilot", "cni", "enabled"], has_cni.into());
        Some(spec)
    }

    /// Returns the settings that differ from those of the profile, including chart defaults that the
    /// profile overrides. If `is_minimal` is true, settings that equal chart defaults are removed.
    fn relative_to_profile(
        &self,
        draft: &Draft,
        profile: &Map<String, Value>,
        is_minimal: bool,
    ) -> Map<String, Value> {
        let mut spec = draft.spec.clone();
        let defaults = self.defaults();
        for (path, value) in leaves(profile)
            .into_iter()
            .filter(|(path, _)| path.first().is_some_and(|key| key == "values"))
        {
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let wanted = get(&defaults, &keys);
            if get(&draft.spec, &keys).is_none() && wanted.is_some_and(|wanted| *wanted != value) {
                put(&mut spec, &keys, wanted.cloned().unwrap_or_default());
            }
        }
        for (path, value) in leaves(&spec)
            .into_iter()
            .filter(|(path, _)| path.first().is_some_and(|key| key != "components"))
        {
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let is_default = match get(profile, &keys) {
                Some(set) => is_equal(set, &value),
                None => is_minimal && get(&defaults, &keys).is_some_and(|default| is_equal(default, &value)),
            };
            if is_default {
                remove(&mut spec, &keys);
            }
        }
        self.switch_components(&mut spec, profile);
        spec
    }

    /// Returns the defaults of the charts at their paths below `spec`.
    fn defaults(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for source in self
            .sources
            .iter()
            .filter(|source| source.chart != HelmChart::Gateway)
        {
            let version = self.package.version();
            let own = defaults(self.catalog, version, Flavour::Installer, source.chart.name());
            for (path, value) in leaves(&own) {
                let place = spec_path(source.chart, &path);
                let keys: Vec<&str> = place.iter().map(String::as_str).collect();
                if get(&all, &keys).is_none() {
                    put(&mut all, &keys, value);
                }
            }
        }
        all
    }

    /// Enables and disables components for which the profile has another setting.
    fn switch_components(&self, spec: &mut Map<String, Value>, profile: &Map<String, Value>) {
        let wanted: BTreeSet<&str> = self
            .sources
            .iter()
            .map(|source| component_and_root(source.chart).0)
            .collect();
        for key in ["base", "pilot", "cni", "ztunnel"] {
            let enabled = get(profile, &["components", key, "enabled"]).and_then(Value::as_bool);
            let is_wanted = wanted.contains(key);
            let is_mentioned = get(spec, &["components", key]).is_some();
            if enabled != Some(is_wanted) && (is_wanted || enabled.is_some() || is_mentioned) {
                put(spec, &["components", key, "enabled"], is_wanted.into());
            }
        }
        for key in ["ingressGateways", "egressGateways"] {
            let items = get(profile, &["components", key]).and_then(Value::as_array);
            let enabled = items
                .into_iter()
                .flatten()
                .filter(|item| item.get("enabled") == Some(&true.into()));
            let mut off: Vec<Value> = enabled
                .map(|item| json!({"name": text(item, "/name"), "enabled": false}))
                .collect();
            if let Some(Value::Array(own)) = get(spec, &["components", key]) {
                off.retain(|item| !own.iter().any(|own| own.get("name") == item.get("name")));
                off.extend(own.iter().cloned());
            }
            if !off.is_empty() {
                put(spec, &["components", key], Value::Array(off));
            }
        }
    }

    /// Returns the comments of all files at the paths of their entries.
    fn comments(&self, operator: &Value) -> Comments {
        let mut all = Comments::default();
        for source in self.sources {
            all.extend(source.comments.map_paths(|path| {
                let place = spec_path(source.chart, path);
                let mut full = vec!["spec".to_owned()];
                full.extend(place);
                if is_present(operator, &full) {
                    return Some(full);
                }
                if let Some(values) = full.get_mut(1).filter(|values| *values == "values") {
                    "unvalidatedValues".clone_into(values);
                }
                is_present(operator, &full).then_some(full)
            }));
        }
        all
    }
}

/// Whether two values are equal. Numbers are compared as floats, because those of files and of profiles
/// have different types.
fn is_equal(a: &Value, b: &Value) -> bool {
    a == b || matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if (a - b).abs() < f64::EPSILON)
}

/// Moves unknown values to `unvalidatedValues`, and removes other rejected values. Returns whether
/// anything changed.
fn resolve_rejected(operator: &mut Value, problems: &Diagnostics, not_carried: &mut Vec<Dropped>) -> bool {
    let Some(Value::Object(spec)) = operator.get_mut("spec") else {
        return false;
    };
    let mut is_changed = false;
    for problem in problems
        .list()
        .iter()
        .filter(|one| one.severity == Severity::Error)
    {
        let keys: Option<Vec<&str>> = problem.path.0.iter().skip(1).map(segment_key).collect();
        let Some(keys) = keys.filter(|keys| keys.first() == Some(&"values")) else {
            continue;
        };
        let Some(value) = remove(spec, &keys) else {
            continue;
        };
        is_changed = true;
        if problem.message == "unknown field" {
            let mut place = vec!["unvalidatedValues"];
            place.extend(keys.iter().skip(1));
            put(spec, &place, value);
            continue;
        }
        let hint = problem.hint.as_deref().map(|hint| format!("; {hint}"));
        not_carried.push(Dropped {
            path: keys.join("."),
            reason: format!("{}{}", problem.message, hint.unwrap_or_default()),
        });
    }
    is_changed
}

fn segment_key(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Key(key) => Some(key),
        Segment::Item(_) => None,
    }
}
