//! Applies the overlays of a component or an add-on: edits of rendered objects at paths.

use mainstay_yaml::{Map, Numbers, Options, Value, parse_json_map, parse_with};
use regex::RegexBuilder;

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use crate::limits::{MAX_OVERLAYS, MAX_PATCHES, StepLimit, Steps, input_budget};
use crate::merge::select;
use crate::object::Object;
use crate::path::{Path, PathError, Segment, Selector, describe_kind, scalar_text};
use crate::set::has_pair;
use crate::settings::Customization;
use crate::source::whole_numbers;

/// Maximum number of names in a message.
const MAX_LISTED: usize = 10;

/// Maximum size of a compiled regular expression in bytes.
const MAX_PATTERN_SIZE: usize = 64 << 10;

/// Error of applying a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OverlayError {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{at} has no {key:?}")]
    NoKey {
        at: Path,
        key: String,
        candidates: Vec<String>,
    },
    #[error("no item of {at} matches [{selector}]")]
    NoItem {
        at: Path,
        selector: String,
        candidates: Vec<String>,
    },
    #[error("{at} is {found}, not a map")]
    NotAMap { at: Path, found: &'static str },
    #[error("{at} is a list: select an item with [key:value] or [index]")]
    NoSelector { at: Path },
    #[error("{at} is {found}, not a list")]
    NotAList { at: Path, found: &'static str },
    #[error("[{pattern}] is not a valid pattern")]
    Pattern { pattern: String },
    #[error(transparent)]
    Steps(#[from] StepLimit),
}

impl OverlayError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey { key, candidates, .. } => {
                let near = did_you_mean(key, candidates.iter().map(String::as_str));
                near.or_else(|| list_candidates(candidates, std::borrow::ToOwned::to_owned))
            }
            Self::NoItem { candidates, .. } => list_candidates(candidates, |one| format!("[{one}]")),
            _ => None,
        }
    }
}

fn list_candidates(names: &[String], show: impl Fn(&str) -> String) -> Option<String> {
    let shown: Vec<String> = names.iter().take(MAX_LISTED).map(|one| show(one)).collect();
    (!shown.is_empty()).then(|| format!("there are {}", shown.join(", ")))
}

/// Revision and namespace that determine the names of objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming<'a> {
    /// Revision; empty for the default revision.
    pub(crate) revision: &'a str,
    /// Namespace of the component.
    pub(crate) namespace: &'a str,
}

impl Naming<'_> {
    /// Returns the object names to try for the name in an overlay, in order.
    fn candidates(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        if !self.revision.is_empty() {
            names.push(format!("{name}-{}", self.revision));
            let suffix = format!("-{}", self.namespace);
            if let Some(stem) = name.strip_suffix(&suffix) {
                names.push(format!("{stem}-{}{suffix}", self.revision));
            }
        }
        names
    }
}

/// Applies all overlays of a `k8s` block.
pub(crate) fn apply_overlays(
    customization: &Customization<'_>,
    naming: Naming<'_>,
    objects: &mut [Object],
    steps: &mut Steps,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let list = customization.settings.get("overlays");
    let Some(list) = list.and_then(Value::as_list) else {
        return diagnostics;
    };
    let base = customization.path.key("k8s").key("overlays");
    let patches: usize = list.iter().map(|one| patches(one).len()).sum();
    if list.len() > MAX_OVERLAYS || patches > MAX_PATCHES {
        let message = format!("more than {MAX_OVERLAYS} overlays or {MAX_PATCHES} patches");
        diagnostics.push(Diagnostic::fatal(base, message));
        return diagnostics;
    }
    for (index, overlay) in list.iter().enumerate() {
        let path = base.index(index);
        let targets = find_targets(overlay, naming, objects);
        if targets.is_empty() {
            diagnostics.push(no_target(overlay, path, objects));
            continue;
        }
        for target in targets {
            if let Some(object) = objects.get_mut(target) {
                patch_object(object, overlay, &path, steps, &mut diagnostics);
            }
        }
    }
    diagnostics
}

fn patches(overlay: &Value) -> &[Value] {
    let patches = overlay.get("patches").and_then(Value::as_list);
    patches.unwrap_or_default()
}

fn text<'a>(overlay: &'a Value, key: &str) -> &'a str {
    overlay.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the indexes of the objects that an overlay selects by kind and name.
fn find_targets(overlay: &Value, naming: Naming<'_>, objects: &[Object]) -> Vec<usize> {
    let (kind, name) = (text(overlay, "kind"), text(overlay, "name"));
    let all = |name: &String| {
        let objects = objects.iter().enumerate();
        let matching = objects.filter(|(_, object)| object.kind() == kind && object.name() == *name);
        matching.map(|(index, _)| index).collect::<Vec<_>>()
    };
    let mut found = naming
        .candidates(name)
        .iter()
        .map(all)
        .collect::<Vec<_>>()
        .into_iter();
    found.find(|positions| !positions.is_empty()).unwrap_or_default()
}

fn no_target(overlay: &Value, path: Path, objects: &[Object]) -> Diagnostic {
    let (kind, name) = (text(overlay, "kind"), text(overlay, "name"));
    let message = format!("no {kind} {name:?} is rendered for this component");
    let names = |same: &dyn Fn(&Object) -> bool, show: &dyn Fn(&Object) -> String| {
        let mut names: Vec<String> = objects.iter().filter(|one| same(one)).map(show).collect();
        names.sort();
        names.dedup();
        names
    };
    let of_kind = names(&|one| one.kind() == kind, &Object::name);
    let kinds = names(&|_| true, &Object::kind);
    let hint = if of_kind.is_empty() {
        did_you_mean(kind, kinds.iter().map(String::as_str))
            .unwrap_or_else(|| format!("rendered kinds: {}", kinds.join(", ")))
    } else {
        let shown: Vec<&str> = of_kind.iter().take(MAX_LISTED).map(String::as_str).collect();
        format!("rendered objects of kind {kind}: {}", shown.join(", "))
    };
    Diagnostic::error(path, message).hint(hint)
}

fn patch_object(
    object: &mut Object,
    overlay: &Value,
    path: &Path,
    steps: &mut Steps,
    diagnostics: &mut Diagnostics,
) {
    for (index, patch) in patches(overlay).iter().enumerate() {
        let Err(error) = apply_edit(object, patch, steps) else {
            continue;
        };
        let place = path.key("patches").index(index).key("path");
        let message = format!("{} {}: {error}", object.kind(), object.name());
        let result = Diagnostic::error(place, message).value(text(patch, "path"));
        diagnostics.push(match error.hint() {
            Some(hint) => result.hint(hint),
            None => result,
        });
        if matches!(error, OverlayError::Steps(_)) {
            return;
        }
    }
}

fn apply_edit(object: &mut Object, patch: &Value, steps: &mut Steps) -> Result<(), OverlayError> {
    let path = Path::parse(text(patch, "path"))?;
    let value = patch.get("value").filter(|value| !value.is_null());
    let value = value.map(|value| {
        let value = whole_numbers(value.clone());
        if is_text_field(object, &path) {
            value
        } else {
            parse_map_text(value)
        }
    });
    Editor { steps }.edit(&mut object.0, &path, value)
}

/// Maps of which all values are strings: kind (empty for any kind) and path.
const TEXT_MAPS: &[(&str, &[&str])] = &[
    ("", &["metadata", "annotations"]),
    ("", &["metadata", "labels"]),
    ("ConfigMap", &["data"]),
    ("Secret", &["data"]),
    ("Secret", &["stringData"]),
];

/// Whether the field at a path is a string, so that text must not be parsed as a map.
fn is_text_field(object: &Object, path: &Path) -> bool {
    let parent = path.0.split_last().map(|(_, parent)| parent.to_vec());
    let is_text_map = |(kind, keys): &(&str, &[&str])| {
        (kind.is_empty() || *kind == object.kind()) && parent == Some(Path::from_keys(keys).0)
    };
    TEXT_MAPS.iter().any(is_text_map) || matches!(select(&object.0, path), Some(Value::String(_)))
}

/// Parses text that contains a YAML map. Returns other values, including JSON text, unchanged.
fn parse_map_text(value: Value) -> Value {
    let Value::String(text) = &value else {
        return value;
    };
    let is_candidate = if text.contains('\n') {
        text.contains(':')
    } else {
        text.contains(": ")
    };
    if !is_candidate || parse_json_map(text, Numbers::Exact, &input_budget()).is_ok() {
        return value;
    }
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: input_budget(),
    };
    match parse_with(text, &options) {
        Ok(map @ Value::Map(_)) => map,
        _ => value,
    }
}

/// Editor of an object.
struct Editor<'a> {
    steps: &'a mut Steps,
}

impl Editor<'_> {
    /// Sets the node at `path` to `value`, or removes it if `value` is `None`.
    fn edit(&mut self, root: &mut Value, path: &Path, value: Option<Value>) -> Result<(), OverlayError> {
        let Some((last, parents)) = path.0.split_last() else {
            return Err(PathError::Empty.into());
        };
        let creates = value.is_some();
        let mut node = root;
        let mut at = Path::default();
        for (index, segment) in parents.iter().enumerate() {
            let next_is_item = matches!(path.0.get(index + 1), Some(Segment::Item(_)));
            node = self.child(node, segment, &at, creates)?;
            if node.is_null() && creates {
                *node = if next_is_item {
                    Value::List(Vec::new())
                } else {
                    Value::Map(Map::new())
                };
            }
            at.0.push(segment.clone());
        }
        match value {
            Some(value) => {
                *self.child(node, last, &at, true)? = value;
                Ok(())
            }
            None => self.remove(node, last, &at),
        }
    }

    fn child<'v>(
        &mut self,
        node: &'v mut Value,
        segment: &Segment,
        at: &Path,
        creates: bool,
    ) -> Result<&'v mut Value, OverlayError> {
        self.steps.take(1)?;
        match segment {
            Segment::Key(key) => {
                let is_there = node.get(key).is_some();
                if node.as_map().is_none() || !(creates || is_there) {
                    return Err(no_key(node, key, at));
                }
                match node.as_map_mut() {
                    Some(map) => Ok(map.entry(key.clone()).or_default()),
                    None => Err(PathError::Empty.into()),
                }
            }
            Segment::Item(selector) => {
                let position = self.find(node, selector)?;
                let appends = position.is_none() && selector.index.is_some() && creates;
                if node.as_list().is_none() || (position.is_none() && !appends) {
                    return Err(no_item(node, selector, at));
                }
                let Value::List(items) = node else {
                    return Err(PathError::Empty.into());
                };
                if appends {
                    items.push(Value::Null);
                }
                let position = position.unwrap_or(items.len().saturating_sub(1));
                items.get_mut(position).ok_or_else(|| PathError::Empty.into())
            }
        }
    }

    fn remove(&mut self, node: &mut Value, last: &Segment, at: &Path) -> Result<(), OverlayError> {
        match last {
            Segment::Key(key) => {
                let removed = node.as_map_mut().and_then(|map| map.remove(key));
                removed.map(drop).ok_or_else(|| no_key(node, key, at))
            }
            Segment::Item(selector) => match (self.find(node, selector)?, &mut *node) {
                (Some(position), Value::List(items)) => {
                    items.remove(position);
                    Ok(())
                }
                _ => Err(no_item(node, selector, at)),
            },
        }
    }

    fn find(&mut self, node: &Value, selector: &Selector) -> Result<Option<usize>, OverlayError> {
        match node {
            Value::List(items) => self.position(items, selector),
            _ => Ok(None),
        }
    }

    /// Returns the position of the item that a selector matches.
    fn position(&mut self, items: &[Value], selector: &Selector) -> Result<Option<usize>, OverlayError> {
        self.steps.take(items.len() + 1)?;
        if let Some(index) = selector.index {
            let index = usize::try_from(index).ok();
            return Ok(index.filter(|index| *index < items.len()));
        }
        let has_maps = items.iter().any(|item| item.as_map().is_some());
        if let Some(pair) = selector.pair.as_ref().filter(|_| has_maps) {
            return Ok(items.iter().position(|item| has_pair(item, pair)));
        }
        if has_maps {
            return Ok(None);
        }
        let pattern = selector.pattern();
        let regex = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_SIZE).build();
        let regex = regex.map_err(|_| OverlayError::Pattern {
            pattern: pattern.to_owned(),
        })?;
        let matches = |item: &Value| scalar_text(item).is_some_and(|text| regex.is_match(&text));
        Ok(items.iter().position(matches))
    }
}

fn no_key(node: &Value, key: &str, at: &Path) -> OverlayError {
    let at = at.clone();
    match node {
        Value::Map(map) => OverlayError::NoKey {
            at,
            key: key.to_owned(),
            candidates: map.keys().cloned().collect(),
        },
        Value::List(_) => OverlayError::NoSelector { at },
        other => OverlayError::NotAMap {
            at,
            found: describe_kind(other),
        },
    }
}

fn no_item(node: &Value, selector: &Selector, at: &Path) -> OverlayError {
    let at = at.clone();
    let Value::List(items) = node else {
        let found = describe_kind(node);
        return OverlayError::NotAList { at, found };
    };
    let key = selector.pair.as_ref().map_or("name", |pair| pair.key.as_str());
    let describe = |item: &Value| match item.get(key).and_then(scalar_text) {
        Some(value) => Some(format!("{key}:{value}")),
        None => scalar_text(item),
    };
    OverlayError::NoItem {
        at,
        selector: selector.text.clone(),
        candidates: items.iter().filter_map(describe).take(MAX_LISTED).collect(),
    }
}

#[cfg(test)]
mod tests;
