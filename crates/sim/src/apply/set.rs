//! Sets of field paths: union, difference, intersection, and the wire form `FieldsV1`.

use std::cmp::Ordering;

use serde_json::Value;

use super::element::Element;
use super::error::ManagedFieldsError;
use super::types::Ref;

/// A set of field paths as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    /// Sorted by element. A node exists only if it is a member or has children.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: Element,
    /// Whether the element itself is in the set.
    member: bool,
    below: Set,
}

impl Node {
    fn is_used(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

impl Set {
    /// Creates a set of paths that consist of field names only.
    pub(super) fn from_field_paths(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert_fields(path);
        }
        set
    }

    fn insert_fields(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => self.insert(Element::field(last)),
            [first, rest @ ..] => {
                let mut below = Self::default();
                below.insert_fields(rest);
                self.add(Element::field(first), false, below);
            }
        }
    }

    fn find(&self, element: &Element) -> Option<&Node> {
        let at = self
            .nodes
            .binary_search_by(|node| node.element.cmp(element))
            .ok()?;
        self.nodes.get(at)
    }

    /// Adds the element if `member`, and its children. Fastest if elements are added in order.
    pub(super) fn add(&mut self, element: Element, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = Node {
            element,
            member,
            below,
        };
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
            return;
        }
        let found = self
            .nodes
            .binary_search_by(|there| there.element.cmp(&node.element));
        match found {
            Err(at) => self.nodes.insert(at, node),
            Ok(at) => {
                if let Some(there) = self.nodes.get_mut(at) {
                    there.member |= node.member;
                    there.below.extend(node.below);
                }
            }
        }
    }

    /// Adds the element as a member.
    pub(super) fn insert(&mut self, element: Element) {
        self.add(element, true, Self::default());
    }

    /// Adds all paths of `other`.
    pub(super) fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for node in other.nodes {
            self.add(node.element, node.member, node.below);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns whether the element itself is in the set.
    pub(super) fn has(&self, element: &Element) -> bool {
        self.find(element).is_some_and(|node| node.member)
    }

    /// Returns every element of this level, once.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.nodes.iter().map(|node| &node.element)
    }

    /// Returns the paths below `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.find(element)
            .map(|node| &node.below)
            .filter(|below| !below.is_empty())
    }

    /// Returns whether the path is in the set.
    pub(super) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has_path(rest)),
        }
    }

    /// Returns whether the set contains all paths of `other`.
    pub(super) fn contains(&self, other: &Self) -> bool {
        other.nodes.iter().all(|node| {
            self.find(&node.element)
                .is_some_and(|here| (here.member || !node.member) && here.below.contains(&node.below))
        })
    }

    /// Returns whether the sets have a path in common.
    pub(super) fn intersects(&self, other: &Self) -> bool {
        pairs(self, other).any(|(here, there)| {
            there.is_some_and(|there| (here.member && there.member) || here.below.intersects(&there.below))
        })
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.extend(other.clone());
        out
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let common = pairs(self, other).filter_map(|(here, there)| {
            let there = there?;
            Some(Node {
                element: here.element.clone(),
                member: here.member && there.member,
                below: here.below.intersection(&there.below),
            })
        });
        Self {
            nodes: common.filter(Node::is_used).collect(),
        }
    }

    /// Returns the paths that are not in `other`; removing a parent keeps its children.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.clone().without(other)
    }

    /// Returns the paths that are neither in `other` nor below one of its members.
    pub(super) fn difference_below(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.remove(other, true);
        left
    }

    /// Like [`Set::difference`], in place.
    pub(super) fn without(mut self, other: &Self) -> Self {
        self.remove(other, false);
        self
    }

    /// Removes the paths in `other`; with `children`, also everything below them.
    pub(super) fn remove(&mut self, other: &Self, children: bool) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain_mut(|node| {
            let Some(there) = other.find(&node.element) else {
                return true;
            };
            if there.member && children {
                return false;
            }
            node.member &= !there.member;
            node.below.remove(&there.below, children);
            node.is_used()
        });
    }

    /// Adds every named field above a member as a member (except keys of maps and list items).
    pub(super) fn with_named_fields(&self, kind: Ref<'_>) -> Self {
        let atom = kind.resolve();
        let mut out = Self::default();
        for node in &self.nodes {
            if node.below.is_empty() {
                out.add(node.element.clone(), node.member, Self::default());
                continue;
            }
            let (named, inner) = match (&node.element, &atom.map, &atom.list) {
                (Element::Field(name), Some(map), _) => (map.field(name).is_some(), map.child(name)),
                (Element::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, Ref::Nothing),
            };
            let below = node.below.with_named_fields(inner);
            out.add(node.element.clone(), node.member || named, below);
        }
        out
    }

    /// Returns all paths, parents before children, the members of a level before deeper paths.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut all = Vec::new();
        self.collect(&mut Vec::new(), &mut all);
        all
    }

    fn collect(&self, prefix: &mut Vec<Element>, all: &mut Vec<Vec<Element>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            all.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.below.collect(prefix, all);
            prefix.pop();
        }
    }

    /// Parses `FieldsV1`.
    pub(super) fn parse(fields: &Value) -> Result<Self, ManagedFieldsError> {
        let Value::Object(map) = fields else {
            return Err(ManagedFieldsError::NotAnObject);
        };
        let mut set = Self::default();
        for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = Element::parse(key)? else {
                continue;
            };
            let children = Self::parse(below)?;
            let member = below.get(".").is_some() || children.is_empty();
            set.add(element, member, children);
        }
        Ok(set)
    }

    /// Writes `FieldsV1` with sorted keys.
    pub(super) fn write(&self, out: &mut String) {
        self.write_level(false, out);
    }

    fn write_level(&self, itself: bool, out: &mut String) {
        out.push('{');
        if itself {
            out.push_str("\".\":{}");
        }
        let mut first = !itself;
        let mut field = |node: &Node, name: &str, out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            write_key(name, out);
            out.push(':');
            node.below.write_level(node.member && !node.below.is_empty(), out);
        };
        if self
            .nodes
            .iter()
            .all(|node| matches!(node.element, Element::Field(_)))
        {
            // Field names are already sorted, which is the most common case.
            let mut name = String::with_capacity(64);
            for node in &self.nodes {
                name.clear();
                node.element.write_wire(&mut name);
                field(node, &name, out);
            }
        } else {
            let mut named: Vec<(String, &Node)> = self
                .nodes
                .iter()
                .map(|node| (node.element.wire(), node))
                .collect();
            named.sort_by(|one, other| one.0.cmp(&other.0));
            for (name, node) in named {
                field(node, &name, out);
            }
        }
        out.push('}');
    }
}

fn write_key(name: &str, out: &mut String) {
    let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if name.bytes().all(plain) {
        out.push('"');
        out.push_str(name);
        out.push('"');
    } else {
        out.push_str(&Value::from(name).to_string());
    }
}

/// Pairs the nodes of one set with those of the other by element.
fn pairs<'a>(one: &'a Set, other: &'a Set) -> impl Iterator<Item = (&'a Node, Option<&'a Node>)> {
    let mut rest = other.nodes.as_slice();
    one.nodes.iter().map(move |node| {
        while let [first, behind @ ..] = rest {
            match first.element.cmp(&node.element) {
                Ordering::Less => rest = behind,
                Ordering::Equal => return (node, Some(first)),
                Ordering::Greater => break,
            }
        }
        (node, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(fields: &Value) -> Set {
        Set::parse(fields).unwrap()
    }

    fn text(set: &Set) -> String {
        let mut out = String::new();
        set.write(&mut out);
        out
    }

    #[test]
    fn the_wire_form_round_trips() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:a\"b": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "f:tags": {"v:\"a\"": {}, "i:0": {}}},
        });
        assert_eq!(text(&set(&fields)), fields.to_string());
        let shown: Vec<String> = set(&fields)
            .paths()
            .iter()
            .map(|path| path.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(
            shown,
            [
                ".metadata.labels",
                ".metadata.labels.a\"b",
                ".metadata.labels.app",
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
                ".spec.tags[=\"a\"]",
                ".spec.tags[0]",
            ]
        );
    }

    #[test]
    fn future_forms_are_dropped_and_invalid_ones_rejected() {
        assert_eq!(set(&json!({"f:a": {}, "z:b": {}})), set(&json!({"f:a": {}})));
        assert_eq!(
            Set::parse(&json!({"a": {}})).unwrap_err().to_string(),
            "missing colon: a"
        );
        assert!(Set::parse(&json!({"k:[]": {}})).is_err());
        assert!(Set::parse(&json!({"i:x": {}})).is_err());
        assert!(Set::parse(&json!([])).is_err());
    }

    #[test]
    fn removing_a_parent_keeps_its_children_by_default() {
        let all = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let parent = set(&json!({"f:a": {}}));
        assert_eq!(
            all.difference(&parent),
            set(&json!({"f:a": {"f:b": {}}, "f:c": {}}))
        );
        assert_eq!(all.difference_below(&parent), set(&json!({"f:c": {}})));
        assert_eq!(all.intersection(&parent), parent);
        assert_eq!(parent.union(&all), all);
        assert!(all.difference(&all).is_empty());
    }

    #[test]
    fn sets_are_compared_without_allocation() {
        let all = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let check = |fields: Value, contained: bool, touched: bool| {
            assert_eq!(all.contains(&set(&fields)), contained, "{fields}");
            assert_eq!(all.intersects(&set(&fields)), touched, "{fields}");
            assert_eq!(set(&fields).intersects(&all), touched, "{fields}");
        };
        check(json!({"f:a": {}}), true, true);
        check(json!({"f:a": {"f:b": {}}}), true, true);
        check(json!({"f:a": {".": {}, "f:x": {}}}), false, true);
        check(json!({"f:a": {"f:x": {}}}), false, false);
        check(json!({"f:c": {"f:x": {}}, "f:d": {}}), false, false);
        check(json!({}), true, false);
    }
}
