//! Applies edits to the value of a document, as an independent check of the text editor.

use mainstay_yaml::{Map, Value};

use crate::item::Item;
use crate::plan::{End, PodEdit};
use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::record::UNDO_ANNOTATION;
use crate::select::Step;

/// Applies `edits` to the pod spec at `steps`; returns false if there is no pod spec.
pub(crate) fn apply(document: &mut Value, steps: &[Step], edits: &[PodEdit]) -> bool {
    let Some(spec) = get_mut(document, steps).and_then(Value::as_map_mut) else {
        return false;
    };
    edits.iter().all(|edit| apply_edit(spec, edit))
}

/// Drops edits whose result is already in place: an up-to-date container that was added manually is kept as
/// is.
pub(crate) fn drop_applied_edits(document: &Value, steps: &[Step], mut edits: Vec<PodEdit>) -> Vec<PodEdit> {
    let Some(spec) = get(document, steps) else {
        return edits;
    };
    let applied: Vec<(&'static str, String)> = edits
        .iter()
        .filter_map(|edit| match edit {
            PodEdit::Insert { list, item, end } if is_in_place(spec, list, item, *end) => {
                Some((*list, item.name()?.to_owned()))
            }
            _ => None,
        })
        .collect();
    edits.retain(|edit| {
        let (list, name) = match edit {
            PodEdit::Insert { list, item, .. } => (*list, item.name().unwrap_or_default()),
            PodEdit::Remove { list, name } => (*list, *name),
            _ => return true,
        };
        !applied
            .iter()
            .any(|(other, known)| *other == list && known == name)
    });
    edits
}

fn is_in_place(spec: &Value, list: &str, item: &Item, end: End) -> bool {
    let items = spec.get(list).and_then(Value::as_list).unwrap_or_default();
    let same_name = items.iter().filter(|other| name_of(other) == item.name()).count();
    let place = match end {
        End::First => items.first(),
        End::Last => items.last(),
    };
    same_name == 1 && place == Some(&item.value())
}

fn apply_edit(spec: &mut Map, edit: &PodEdit) -> bool {
    match edit {
        PodEdit::Remove { list, name } => {
            if let Some(Value::List(items)) = spec.get_mut(*list) {
                items.retain(|item| name_of(item) != Some(name));
            }
            true
        }
        PodEdit::Mount { lists, mount } => lists.iter().all(|list| match spec.get_mut(*list) {
            Some(Value::List(items)) => items.iter_mut().all(|item| add_mount(item, mount)),
            _ => true,
        }),
        PodEdit::Insert { list, item, end } => insert(spec, list, item, *end),
        PodEdit::InsertIfAbsent { list, item } => insert_if_absent(spec, list, item),
    }
}

fn add_mount(container: &mut Value, mount: &Item) -> bool {
    container
        .as_map_mut()
        .is_some_and(|container| insert_if_absent(container, "volumeMounts", mount))
}

fn insert_if_absent(map: &mut Map, list: &str, item: &Item) -> bool {
    let exists = match map.get(list) {
        Some(Value::List(items)) => items.iter().any(|other| name_of(other) == item.name()),
        _ => false,
    };
    exists || insert(map, list, item, End::Last)
}

fn insert(map: &mut Map, list: &str, item: &Item, end: End) -> bool {
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

/// Removes everything with a reserved name, and empty lists, from the pod spec at `steps`, so that two
/// texts can be compared without their injected content.
pub(crate) fn remove_reserved_names(document: &mut Value, steps: &[Step]) {
    remove_record(document, steps);
    let Some(spec) = get_mut(document, steps).and_then(Value::as_map_mut) else {
        return;
    };
    retain_by_name(spec, "initContainers", |name| {
        name != INITIALIZER && name != SERVICE_MESH
    });
    retain_by_name(spec, "volumes", is_not_our_volume);
    for list in ["containers", "initContainers"] {
        let Some(Value::List(containers)) = spec.get_mut(list) else {
            continue;
        };
        for container in containers.iter_mut().filter_map(Value::as_map_mut) {
            retain_by_name(container, "volumeMounts", is_not_our_volume);
        }
    }
}

fn is_not_our_volume(name: &str) -> bool {
    Profile::ALL.iter().all(|profile| profile.volume != name)
}

fn retain_by_name(map: &mut Map, list: &str, wanted: impl Fn(&str) -> bool) {
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

/// Returns the value at `steps`.
pub(crate) fn get<'v>(document: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps
        .iter()
        .try_fold(document, |value, step| match (value, step) {
            (Value::Map(map), Step::Key(key)) => map.get(key),
            (Value::List(items), Step::Index(index)) => items.get(*index),
            _ => None,
        })
}

/// Adds the undo record to the pod template with the spec at `steps`; returns false if there is no pod
/// template.
pub(crate) fn annotate(document: &mut Value, steps: &[Step], record: &str) -> bool {
    let template = steps
        .split_last()
        .and_then(|(_, template)| get_mut(document, template));
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

/// Removes the undo record from the pod template with the spec at `steps`, and then empty annotations and
/// metadata.
pub(crate) fn remove_record(document: &mut Value, steps: &[Step]) {
    let template = steps
        .split_last()
        .and_then(|(_, template)| get_mut(document, template));
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

fn get_mut<'v>(document: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps
        .iter()
        .try_fold(document, |value, step| match (value, step) {
            (Value::Map(map), Step::Key(key)) => map.get_mut(key),
            (Value::List(items), Step::Index(index)) => items.get_mut(*index),
            _ => None,
        })
}
