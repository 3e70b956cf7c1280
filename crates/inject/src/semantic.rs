//! Applies edits to document values, as an independent check of the text editor.

use mainstay_yaml::{Map, Value};

use crate::item::Item;
use crate::plan::{End, PodEdit};
use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::record::UNDO_ANNOTATION;
use crate::select::Step;

/// Applies `edits` to the pod spec at `steps`; false if there is none.
pub(crate) fn apply(document: &mut Value, steps: &[Step], edits: &[PodEdit]) -> bool {
    let Some(spec) = at(document, steps).and_then(Value::as_map_mut) else {
        return false;
    };
    edits.iter().all(|edit| apply_one(spec, edit))
}

/// Removes edits whose result is already in place: an up-to-date container pasted by hand stays as it is.
pub(crate) fn settle(document: &Value, steps: &[Step], mut edits: Vec<PodEdit>) -> Vec<PodEdit> {
    let Some(spec) = get(document, steps) else {
        return edits;
    };
    let there: Vec<(&'static str, String)> = edits
        .iter()
        .filter_map(|edit| match edit {
            PodEdit::Put { list, item, end } if is_there(spec, list, item, *end) => {
                Some((*list, item.name()?.to_owned()))
            }
            _ => None,
        })
        .collect();
    edits.retain(|edit| {
        let (list, name) = match edit {
            PodEdit::Put { list, item, .. } => (*list, item.name().unwrap_or_default()),
            PodEdit::Drop { list, name } => (*list, *name),
            _ => return true,
        };
        !there.iter().any(|(other, known)| *other == list && known == name)
    });
    edits
}

fn is_there(spec: &Value, list: &str, item: &Item, end: End) -> bool {
    let items = spec.get(list).and_then(Value::as_list).unwrap_or_default();
    let same_name = items.iter().filter(|other| name_of(other) == item.name()).count();
    let place = match end {
        End::First => items.first(),
        End::Last => items.last(),
    };
    same_name == 1 && place == Some(&item.value())
}

fn apply_one(spec: &mut Map, edit: &PodEdit) -> bool {
    match edit {
        PodEdit::Drop { list, name } => {
            if let Some(Value::List(items)) = spec.get_mut(*list) {
                items.retain(|item| name_of(item) != Some(name));
            }
            true
        }
        PodEdit::Mount { lists, mount } => lists.iter().all(|list| match spec.get_mut(*list) {
            Some(Value::List(items)) => items.iter_mut().all(|item| mount_into(item, mount)),
            _ => true,
        }),
        PodEdit::Put { list, item, end } => put(spec, list, item, *end),
        PodEdit::Share { list, item } => share(spec, list, item),
    }
}

fn mount_into(container: &mut Value, mount: &Item) -> bool {
    container
        .as_map_mut()
        .is_some_and(|container| share(container, "volumeMounts", mount))
}

fn share(map: &mut Map, list: &str, item: &Item) -> bool {
    let there = match map.get(list) {
        Some(Value::List(items)) => items.iter().any(|other| name_of(other) == item.name()),
        _ => false,
    };
    there || put(map, list, item, End::Last)
}

fn put(map: &mut Map, list: &str, item: &Item, end: End) -> bool {
    let items = map.entry(list.to_owned()).or_default();
    if items.is_null() {
        *items = Value::List(Vec::new());
    }
    let Value::List(items) = items else { return false };
    match end {
        End::First => items.insert(0, item.value()),
        End::Last => items.push(item.value()),
    }
    true
}

fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// Removes everything with a reserved name from the pod spec at `steps`, and empty lists, so that two texts
/// can be compared apart from injected content.
pub(crate) fn bare(document: &mut Value, steps: &[Step]) {
    remove_record(document, steps);
    let Some(spec) = at(document, steps).and_then(Value::as_map_mut) else {
        return;
    };
    keep(spec, "initContainers", |name| {
        name != INITIALIZER && name != SERVICE_MESH
    });
    keep(spec, "volumes", is_not_our_volume);
    for list in ["containers", "initContainers"] {
        let Some(Value::List(containers)) = spec.get_mut(list) else {
            continue;
        };
        for container in containers.iter_mut().filter_map(Value::as_map_mut) {
            keep(container, "volumeMounts", is_not_our_volume);
        }
    }
}

fn is_not_our_volume(name: &str) -> bool {
    Profile::ALL.iter().all(|profile| profile.volume != name)
}

fn keep(map: &mut Map, list: &str, wanted: impl Fn(&str) -> bool) {
    let empty = match map.get_mut(list) {
        Some(Value::List(items)) => {
            items.retain(|item| name_of(item).is_none_or(&wanted));
            items.is_empty()
        }
        Some(Value::Null) => true,
        _ => false,
    };
    if empty {
        map.remove(list);
    }
}

/// The value at `steps`.
pub(crate) fn get<'v>(document: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps
        .iter()
        .try_fold(document, |value, step| match (value, step) {
            (Value::Map(map), Step::Key(key)) => map.get(key),
            (Value::List(items), Step::Index(index)) => items.get(*index),
            _ => None,
        })
}

/// Adds the undo record to the pod template whose spec is at `steps`; false if there is none.
pub(crate) fn annotate(document: &mut Value, steps: &[Step], record: &str) -> bool {
    let template = steps
        .split_last()
        .and_then(|(_, template)| at(document, template));
    let Some(template) = template.and_then(Value::as_map_mut) else {
        return false;
    };
    let Some(metadata) = submap(template, "metadata") else {
        return false;
    };
    let Some(annotations) = submap(metadata, "annotations") else {
        return false;
    };
    annotations.insert(UNDO_ANNOTATION.to_owned(), Value::from(record));
    true
}

fn submap<'m>(map: &'m mut Map, key: &str) -> Option<&'m mut Map> {
    let value = map.entry(key.to_owned()).or_default();
    if value.is_null() {
        *value = Value::Map(Map::new());
    }
    value.as_map_mut()
}

/// Removes the undo record of the pod template whose spec is at `steps`, and metadata and annotations that
/// are empty.
pub(crate) fn remove_record(document: &mut Value, steps: &[Step]) {
    let template = steps
        .split_last()
        .and_then(|(_, template)| at(document, template));
    let Some(template) = template.and_then(Value::as_map_mut) else {
        return;
    };
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_map_mut) {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_map_mut) {
            annotations.remove(UNDO_ANNOTATION);
        }
        remove_empty(metadata, "annotations");
    }
    remove_empty(template, "metadata");
}

fn remove_empty(map: &mut Map, key: &str) {
    let empty = match map.get(key) {
        Some(Value::Null) => true,
        Some(Value::Map(inner)) => inner.is_empty(),
        _ => false,
    };
    if empty {
        map.remove(key);
    }
}

fn at<'v>(document: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps
        .iter()
        .try_fold(document, |value, step| match (value, step) {
            (Value::Map(map), Step::Key(key)) => map.get_mut(key),
            (Value::List(items), Step::Index(index)) => items.get_mut(*index),
            _ => None,
        })
}
