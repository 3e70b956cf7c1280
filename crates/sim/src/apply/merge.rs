//! Merges an applied configuration into the live object. Values of the configuration take precedence. List
//! items keep their live order unless the configuration contains them in a different order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::element::Element;
use super::types::{Form, List, Ref, Rule};

/// Merges `applied` into `live`.
pub(super) fn merge(kind: Ref<'_>, live: &Value, applied: &Value) -> Value {
    merge_values(kind, Some(live), Some(applied)).unwrap_or(Value::Null)
}

/// Returns the applied value if present, otherwise the live one.
fn applied_or_live(live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    applied.or(live).cloned()
}

fn merge_values(kind: Ref<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    if applied.is_none() {
        return live.cloned();
    }
    let atom = kind.resolve();
    match (atom.form(applied), &atom.map, &atom.list) {
        (Form::Map, Some(map), _) if !map.atomic => {
            let before = live.and_then(Value::as_object).filter(|map| !map.is_empty());
            let after = applied.and_then(Value::as_object).filter(|map| !map.is_empty());
            if before.is_none() && after.is_none() {
                return applied_or_live(live, applied);
            }
            let empty = Map::new();
            let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
            let kept = before.iter().filter(|(name, _)| !after.contains_key(*name));
            let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
            let merged = after.iter().filter_map(|(name, value)| {
                let merged = merge_values(map.child_type(name), before.get(name), Some(value))?;
                Some((name.clone(), merged))
            });
            Some(Value::Object(kept.chain(merged).collect()))
        }
        (Form::List, _, Some(list)) if !matches!(list.rule, Rule::Atomic) => {
            let before = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let after = applied.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if before.is_empty() && after.is_empty() {
                return applied_or_live(live, applied);
            }
            Some(Value::Array(merge_lists(list, before, after)))
        }
        _ => applied_or_live(live, applied),
    }
}

/// Items of a list with their path elements.
struct Items<'v> {
    order: Vec<(Element, &'v Value)>,
    /// Items by path element. Items with duplicate keys are not merged: they map to null.
    by_element: BTreeMap<Element, &'v Value>,
}

impl<'v> Items<'v> {
    fn new(list: &List<'_>, values: &'v [Value]) -> Self {
        let mut items = Self {
            order: Vec::with_capacity(values.len()),
            by_element: BTreeMap::new(),
        };
        for value in values {
            let Ok(element) = list.path_element(value) else {
                continue;
            };
            let unique = items.by_element.entry(element.clone()).or_insert(value);
            if !std::ptr::eq(*unique, value) {
                *unique = &Value::Null;
            }
            items.order.push((element, value));
        }
        items
    }

    fn get(&self, element: &Element) -> Option<&'v Value> {
        self.by_element.get(element).copied()
    }
}

fn merge_lists(list: &List<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let (live, applied) = (Items::new(list, live), Items::new(list, applied));
    let mut shared: VecDeque<&Element> = applied
        .order
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live.by_element.contains_key(*element))
        .collect();
    let mut next_shared = shared.pop_front();
    let mut merged: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.order.len().max(applied.order.len()));
    let (mut left, mut right) = (live.order.iter().peekable(), applied.order.iter().peekable());
    while left.peek().is_some() || right.peek().is_some() {
        if let (Some((one, _)), Some((other, _))) = (left.peek(), right.peek()) {
            if one == other {
                merged.insert(other);
                out.extend(merge_values(list.element, live.get(one), applied.get(other)));
                left.next();
                right.next();
                next_shared = shared.pop_front();
                continue;
            }
            // The item is at another position in the configuration and is merged there.
            if applied.by_element.contains_key(one) && next_shared.is_some_and(|next| next != one) {
                left.next();
                continue;
            }
        }
        if let Some((one, value)) = left.peek() {
            if !applied.by_element.contains_key(one) {
                out.extend(merge_values(list.element, Some(value), None));
                left.next();
                continue;
            }
            if merged.contains(one) {
                left.next();
            }
        }
        if let Some((other, _)) = right.next() {
            merged.insert(other);
            out.extend(merge_values(list.element, live.get(other), applied.get(other)));
            if next_shared == Some(other) {
                next_shared = shared.pop_front();
            }
        }
    }
    out
}
