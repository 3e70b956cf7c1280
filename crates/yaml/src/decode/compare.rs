//! Comparison of a composed document with a value, without creating a second value.

use std::collections::HashSet;

use super::scalar::{self, Scalar};
use super::value::is_merge;
use crate::Value;
use crate::read::{Kind, NONE, Tree, TreeNode};
use crate::resolve::Resolved;

/// Reports whether the node `id` decodes to `value` with exact numbers. Returns `None` if only decoding can
/// decide: for aliases, merges, repeated keys, and keys that are not strings. The recursion depth is
/// limited by composition.
pub(super) fn node_matches(tree: &Tree<'_>, id: u32, value: &Value) -> Option<bool> {
    let node = tree.node(id)?;
    match (node.kind, value) {
        (Kind::Scalar, _) => scalar_matches(node, value),
        (Kind::Sequence, Value::List(items)) => list_matches(tree, node, items),
        (Kind::Mapping, Value::Map(map)) => map_matches(tree, node, map),
        // An alias, or a value of another kind, which may still contain an error.
        _ => None,
    }
}

fn scalar_matches(node: &TreeNode<'_>, value: &Value) -> Option<bool> {
    Some(match (scalar::read(node, crate::Position::start).ok()?, value) {
        (Scalar::Text(text), Value::String(wanted)) => text == wanted,
        (Scalar::Resolved(Resolved::Bool(found)), Value::Bool(wanted)) => found == *wanted,
        (Scalar::Resolved(Resolved::Int(found)), Value::Int(wanted)) => found == *wanted,
        (Scalar::Resolved(Resolved::Null), Value::Null) => true,
        _ => return None,
    })
}

fn list_matches(tree: &Tree<'_>, node: &TreeNode<'_>, items: &[Value]) -> Option<bool> {
    let mut items = items.iter();
    for child in tree.chain(node.first) {
        let Some(item) = items.next() else {
            return Some(false);
        };
        if !node_matches(tree, child, item)? {
            return Some(false);
        }
    }
    Some(items.next().is_none())
}

fn map_matches(tree: &Tree<'_>, node: &TreeNode<'_>, map: &crate::Map) -> Option<bool> {
    if has_repeated_key(tree, node)? {
        return None;
    }
    let mut count = 0;
    let mut key = node.first;
    while let Some(key_node) = tree.node(key) {
        let Some(wanted) = map.get(&*key_node.value) else {
            return Some(false);
        };
        if !node_matches(tree, key_node.next, wanted)? {
            return Some(false);
        }
        count += 1;
        key = tree.node(key_node.next).map_or(NONE, |value| value.next);
    }
    Some(count == map.len())
}

/// Whether a key is repeated, or `None` if a key is not a plain string.
fn has_repeated_key(tree: &Tree<'_>, node: &TreeNode<'_>) -> Option<bool> {
    let keys = || tree.chain(node.first).step_by(2).filter_map(|key| tree.node(key));
    let mut count = 0;
    for key in keys() {
        let text = scalar::read(key, crate::Position::start).ok()?;
        if key.kind != Kind::Scalar || is_merge(key) || !matches!(text, Scalar::Text(_)) {
            return None;
        }
        count += 1;
    }
    // Most maps are small, and a linear search is faster than hashing for them.
    if count > 16 {
        let mut seen = HashSet::with_capacity(count);
        return Some(!keys().all(|key| seen.insert(&*key.value)));
    }
    let repeated = |(at, key): (usize, &TreeNode<'_>)| keys().take(at).any(|other| other.value == key.value);
    Some(keys().enumerate().any(repeated))
}
