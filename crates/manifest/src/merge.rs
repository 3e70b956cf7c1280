//! Merges layers: the profile, the files in order, the `--set` expressions in order.

use mainstay_chart::merge_maps;
use mainstay_yaml::{Map, Value};

use crate::component::COMPONENTS;
use crate::diagnostic::{Diagnostic, Diagnostics, Location};
use crate::features::translate_features;
use crate::limits::{MAX_FILES, MAX_SETS};
use crate::path::{Path, Segment, Selector};
use crate::profile::load_profile;
use crate::request::{GatewayLists, Request};
use crate::set::{SetError, SetExpression};
use crate::source::{InputFile, Layer};

/// Merged configuration, and the origins of its values.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    /// The complete `IstioOperator`.
    pub(crate) operator: Map,
    /// The user's `spec.values`, which override translated fields.
    pub(crate) user_values: Map,
    /// Merged files and expressions of the user, untranslated.
    pub(crate) user_operator: Map,
    /// Errors and warnings of feature blocks.
    pub(crate) features: Diagnostics,
    /// Locations of the user's values.
    pub(crate) origins: Origins,
}

/// The user's files and expressions, used to locate values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    files: Vec<Layer>,
    sets: Vec<(Path, String)>,
}

impl Origins {
    /// Returns the location at which the value at `path` is set. If the path itself is not set, returns the
    /// location of the nearest enclosing value.
    pub(crate) fn locate(&self, path: &Path) -> Option<Location> {
        let sets = self.sets.iter().rev();
        let mut sets = sets.filter(|(set, _)| path.0.starts_with(&set.0) || set.0.starts_with(&path.0));
        if let Some((_, text)) = sets.next() {
            return Some(Location {
                file: "--set".into(),
                line: 1,
                column: 1,
                source: text.clone(),
            });
        }
        let found = self.files.iter().rev().map(|layer| layer.locate(path));
        let deepest = found.reduce(|best, next| if next.1 > best.1 { next } else { best });
        deepest.and_then(|(location, _)| location)
    }

    /// Adds the location of the diagnostic's path.
    pub(crate) fn add_location(&self, diagnostic: Diagnostic) -> Diagnostic {
        let location = self.locate(&diagnostic.path);
        diagnostic.at(location)
    }
}

/// Returns the directory with charts and profiles that the files or expressions specify, if any.
#[must_use]
pub fn install_package_path(files: &[InputFile], sets: &[String]) -> Option<String> {
    let keys = ["spec", "installPackagePath"];
    let layers = files.iter().filter_map(|file| Layer::parse(file).ok());
    let named = layers.map(|layer| text_at(&layer.value, &keys));
    let expressions = sets.iter().filter_map(|text| SetExpression::parse(text).ok());
    let set = expressions.filter(|set| set.path == Path::from_keys(&["installPackagePath"]));
    let set = set.filter_map(|set| set.value.as_str().map(ToOwned::to_owned));
    let mut found = named.chain(set).filter(|path| !path.is_empty());
    found.next_back()
}

/// Parses and merges all inputs of a request.
pub(crate) fn merge_inputs(request: &Request<'_>) -> Result<Merged, Diagnostics> {
    let mut origins = Origins {
        files: parse_files(request)?,
        sets: Vec::new(),
    };
    let mut user = empty_operator();
    for layer in &origins.files {
        let mut operator = layer.value.clone();
        if operator.get("spec").is_some_and(Value::is_null) {
            operator.remove("spec");
        }
        merge_operators(&mut user, operator, request.gateway_lists);
    }
    apply_sets(request, &mut user, &mut origins)?;
    let user_operator = user.clone();
    let (disabled, features) = translate_features(&mut user);
    let profile = text_at(&user, &["spec", "profile"]);
    let mut operator = load_profile(request.profiles, &profile)
        .map_err(|error| origins.add_location(*error))?
        .operator;
    let user_values = map_at(&user, &["spec", "values"]);
    merge_operators(&mut operator, user, request.gateway_lists);
    disabled.disable_components(&mut operator);
    Ok(Merged {
        operator,
        user_values,
        user_operator,
        features,
        origins,
    })
}

fn empty_operator() -> Map {
    Map::from([
        ("apiVersion".into(), "install.istio.io/v1alpha1".into()),
        ("kind".into(), "IstioOperator".into()),
        ("metadata".into(), Value::Map(Map::new())),
        ("spec".into(), Value::Map(Map::new())),
    ])
}

fn parse_files(request: &Request<'_>) -> Result<Vec<Layer>, Diagnostics> {
    if request.files.len() > MAX_FILES {
        let message = format!("more than {MAX_FILES} files");
        return Err(Diagnostic::fatal(Path::default(), message).into());
    }
    let layers = request.files.iter().map(Layer::parse);
    layers
        .collect::<Result<_, _>>()
        .map_err(|error| Diagnostics::from(*error))
}

fn apply_sets(request: &Request<'_>, user: &mut Map, origins: &mut Origins) -> Result<(), Diagnostics> {
    if request.sets.len() > MAX_SETS {
        let message = format!("more than {MAX_SETS} --set expressions");
        return Err(Diagnostic::fatal(Path::default(), message).into());
    }
    let revision = request
        .revision
        .iter()
        .filter(|it| !matches!(it.as_str(), "" | "default"));
    let aliases = revision.map(|revision| format!("revision={revision}"));
    let mut problems = Diagnostics::default();
    for text in request.sets.iter().cloned().chain(aliases) {
        let spec = user.entry("spec".into()).or_default();
        let done = SetExpression::parse(&text).and_then(|set| set.apply(spec).map(|()| set));
        match done {
            Ok(set) => {
                let mut path = Path::from_keys(&["spec"]);
                path.0.extend(set.path.0);
                origins.sets.push((path, text));
            }
            Err(error) => problems.push(set_error_diagnostic(&text, &error)),
        }
    }
    if problems.list().is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn set_error_diagnostic(text: &str, error: &SetError) -> Diagnostic {
    const WIDTH: usize = 400;
    let before = text.get(..error.offset()).unwrap_or_default();
    let location = Location {
        file: "--set".into(),
        line: 1,
        column: before.chars().count() + 1,
        source: text.chars().take(WIDTH).collect(),
    };
    let result = Diagnostic::fatal(Path::default(), error.to_string()).at(Some(location));
    match error.hint() {
        Some(hint) => result.hint(hint),
        None => result,
    }
}

/// Merges `over` into `base`. Maps are merged, all other values are replaced. Lists of gateways are
/// combined as specified by `lists`.
pub(crate) fn merge_operators(base: &mut Map, mut over: Map, lists: GatewayLists) {
    let gateways = match lists {
        GatewayLists::MergeByName => take_gateways(&mut over),
        GatewayLists::Replace => Vec::new(),
    };
    merge_maps(base, over);
    for (key, default_name, items) in gateways {
        let components = ["spec", "components"]
            .into_iter()
            .try_fold(&mut *base, |map, step| {
                map.entry(step.into())
                    .or_insert_with(|| Value::Map(Map::new()))
                    .as_map_mut()
            });
        let Some(components) = components else { continue };
        let list = components.entry(key.into()).or_default();
        if let Value::List(existing) = list {
            merge_named(existing, items, default_name);
        } else {
            *list = Value::List(with_default_names(items, default_name));
        }
    }
}

/// Removes the lists of gateways from a layer. Returns key, default name and items of each list.
fn take_gateways(over: &mut Map) -> Vec<(&'static str, &'static str, Vec<Value>)> {
    let components = over.get_mut("spec").and_then(Value::as_map_mut);
    let components = components.and_then(|spec| spec.get_mut("components")?.as_map_mut());
    let Some(components) = components else {
        return Vec::new();
    };
    let gateways = COMPONENTS.iter().filter(|component| component.is_gateway);
    gateways
        .filter_map(|gateway| match components.get(gateway.key) {
            Some(Value::List(_)) => match components.remove(gateway.key) {
                Some(Value::List(items)) => Some((gateway.key, gateway.workload, items)),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

fn merge_named(existing: &mut Vec<Value>, items: Vec<Value>, default_name: &str) {
    for item in with_default_names(items, default_name) {
        let name = item.get("name").cloned();
        let same = existing.iter_mut().find(|one| one.get("name") == name.as_ref());
        match (same, item) {
            (Some(Value::Map(base)), Value::Map(over)) => merge_maps(base, over),
            (_, item) => existing.push(item),
        }
    }
}

/// Sets the names of gateways without a name to the default name of their kind.
fn with_default_names(mut items: Vec<Value>, default_name: &str) -> Vec<Value> {
    for item in items.iter_mut().filter_map(Value::as_map_mut) {
        let name = item.entry("name".into()).or_default();
        if name.is_null() || name.as_str() == Some("") {
            *name = default_name.into();
        }
    }
    items
}

/// Returns the string at a path of keys, or an empty string if there is none.
pub(crate) fn text_at(map: &Map, keys: &[&str]) -> String {
    let value = value_at(map, keys).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// Returns the map at a path of keys, or an empty map if there is none.
pub(crate) fn map_at(map: &Map, keys: &[&str]) -> Map {
    let value = value_at(map, keys).and_then(Value::as_map);
    value.cloned().unwrap_or_default()
}

/// Returns the value at a path of keys.
pub(crate) fn value_at<'a>(map: &'a Map, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    map.get(*first)?.at(rest)
}

/// Sets the value at a path of keys. Values on the path that are not maps are replaced by maps.
pub(crate) fn put(map: &mut Map, keys: &[&str], value: Value) {
    let Some((first, rest)) = keys.split_first() else {
        return;
    };
    if rest.is_empty() {
        map.insert((*first).into(), value);
        return;
    }
    let entry = map.entry((*first).into()).or_default();
    if entry.as_map().is_none() {
        *entry = Value::Map(Map::new());
    }
    if let Some(inner) = entry.as_map_mut() {
        put(inner, rest, value);
    }
}

/// Returns the value at a path that may contain selectors.
#[must_use]
pub fn select<'a>(root: &'a Value, path: &Path) -> Option<&'a Value> {
    path.0.iter().try_fold(root, |node, segment| match segment {
        Segment::Key(key) => node.get(key),
        Segment::Item(Selector { pair: Some(pair), .. }) => {
            let mut items = node.as_list()?.iter();
            items.find(|item| crate::set::has_pair(item, pair))
        }
        Segment::Item(selector) => node.as_list()?.get(usize::try_from(selector.index?).ok()?),
    })
}
