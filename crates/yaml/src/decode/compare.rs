//! A document against a value: takes a composed document, says whether it means that value, without building a second one.

use std::collections::HashSet;

use super::scalar::{self, Scalar};
use super::value::is_merge;
use crate::Value;
use crate::read::{Kind, NONE, Tree, TreeNode};
use crate::resolve::Resolved;

/// Whether the node `id` means `value`, whole numbers being whole; `None` where only decoding can tell (aliases, merges,
/// keys given twice, keys that are no strings). Recurses by the depth of the document, which composing bounds.
pub(super) fn means(tree: &Tree<'_>, id: u32, value: &Value) -> Option<bool> {
    let node = tree.node(id)?;
    match (node.kind, value) {
        (Kind::Scalar, _) => scalar_means(node, value),
        (Kind::Sequence, Value::List(items)) => list_means(tree, node, items),
        (Kind::Mapping, Value::Map(map)) => map_means(tree, node, map),
        // An alias, or another kind of value: something hidden in it may still be an error.
        _ => None,
    }
}

fn scalar_means(node: &TreeNode<'_>, value: &Value) -> Option<bool> {
    Some(match (scalar::read(node, crate::Position::start).ok()?, value) {
        (Scalar::Text(text), Value::String(wanted)) => text == wanted,
        (Scalar::Resolved(Resolved::Bool(found)), Value::Bool(wanted)) => found == *wanted,
        (Scalar::Resolved(Resolved::Int(found)), Value::Int(wanted)) => found == *wanted,
        (Scalar::Resolved(Resolved::Null), Value::Null) => true,
        _ => return None,
    })
}

fn list_means(tree: &Tree<'_>, node: &TreeNode<'_>, items: &[Value]) -> Option<bool> {
    let mut items = items.iter();
    for child in tree.chain(node.first) {
        let Some(item) = items.next() else {
            return Some(false);
        };
        if !means(tree, child, item)? {
            return Some(false);
        }
    }
    Some(items.next().is_none())
}

fn map_means(tree: &Tree<'_>, node: &TreeNode<'_>, map: &crate::Map) -> Option<bool> {
    if has_twice(tree, node)? {
        return None;
    }
    let mut count = 0;
    let mut key = node.first;
    while let Some(key_node) = tree.node(key) {
        let Some(wanted) = map.get(&*key_node.value) else {
            return Some(false);
        };
        if !means(tree, key_node.next, wanted)? {
            return Some(false);
        }
        count += 1;
        key = tree.node(key_node.next).map_or(NONE, |value| value.next);
    }
    Some(count == map.len())
}

/// Whether a key stands twice; `None` if one is no plain string.
fn has_twice(tree: &Tree<'_>, node: &TreeNode<'_>) -> Option<bool> {
    let keys = || tree.chain(node.first).step_by(2).filter_map(|key| tree.node(key));
    let mut count = 0;
    for key in keys() {
        let text = scalar::read(key, crate::Position::start).ok()?;
        if key.kind != Kind::Scalar || is_merge(key) || !matches!(text, Scalar::Text(_)) {
            return None;
        }
        count += 1;
    }
    // Most maps are small: there, looking is faster than hashing.
    if count > 16 {
        let mut seen = HashSet::with_capacity(count);
        return Some(!keys().all(|key| seen.insert(&*key.value)));
    }
    let twice = |(at, key): (usize, &TreeNode<'_>)| keys().take(at).any(|other| other.value == key.value);
    Some(keys().enumerate().any(twice))
}
