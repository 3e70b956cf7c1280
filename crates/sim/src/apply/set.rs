//! Sets of field paths: union, difference, intersection, and the wire form `FieldsV1`.

use std::cmp::Ordering;

use serde_json::Value;

use super::element::Element;
use super::error::ManagedFieldsError;
use super::types::Ref;

/// A set of field paths, stored as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    /// Nodes sorted by element. Each is a member or has children.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    element: Element,
    /// Whether the element itself is in the set.
    member: bool,
    children: Set,
}

impl Node {
    fn is_used(&self) -> bool {
        self.member || !self.children.is_empty()
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
                let mut children = Self::default();
                children.insert_fields(rest);
                self.add(Element::field(first), false, children);
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

    /// Adds the element if `member` is true, and its children. Adding elements in order is the fastest.
    pub(super) fn add(&mut self, element: Element, member: bool, children: Self) {
        if !member && children.is_empty() {
            return;
        }
        let node = Node {
            element,
            member,
            children,
        };
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
            return;
        }
        let found = self
            .nodes
            .binary_search_by(|existing| existing.element.cmp(&node.element));
        match found {
            Err(at) => self.nodes.insert(at, node),
            Ok(at) => {
                if let Some(existing) = self.nodes.get_mut(at) {
                    existing.member |= node.member;
                    existing.children.extend(node.children);
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
            self.add(node.element, node.member, node.children);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns whether the element itself is in the set.
    pub(super) fn has(&self, element: &Element) -> bool {
        self.find(element).is_some_and(|node| node.member)
    }

    /// Returns the elements of the first level.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.nodes.iter().map(|node| &node.element)
    }

    /// Returns the paths below `element`, or `None` if there are none.
    pub(super) fn children_of(&self, element: &Element) -> Option<&Self> {
        self.find(element)
            .map(|node| &node.children)
            .filter(|children| !children.is_empty())
    }

    /// Returns whether the path is in the set.
    pub(super) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self
                .children_of(first)
                .is_some_and(|children| children.has_path(rest)),
        }
    }

    /// Returns whether the set contains all paths of `other`.
    pub(super) fn contains(&self, other: &Self) -> bool {
        other.nodes.iter().all(|node| {
            self.find(&node.element)
                .is_some_and(|ours| (ours.member || !node.member) && ours.children.contains(&node.children))
        })
    }

    /// Returns whether the sets have a path in common.
    pub(super) fn intersects(&self, other: &Self) -> bool {
        pairs(self, other).any(|(ours, theirs)| {
            theirs.is_some_and(|theirs| {
                (ours.member && theirs.member) || ours.children.intersects(&theirs.children)
            })
        })
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.extend(other.clone());
        out
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let common = pairs(self, other).filter_map(|(ours, theirs)| {
            let theirs = theirs?;
            Some(Node {
                element: ours.element.clone(),
                member: ours.member && theirs.member,
                children: ours.children.intersection(&theirs.children),
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
        let mut remaining = self.clone();
        remaining.remove(other, true);
        remaining
    }

    /// Like [`Set::difference`], but consumes the set.
    pub(super) fn without(mut self, other: &Self) -> Self {
        self.remove(other, false);
        self
    }

    /// Removes the paths in `other`; with `recursive`, also everything below them.
    pub(super) fn remove(&mut self, other: &Self, recursive: bool) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain_mut(|node| {
            let Some(theirs) = other.find(&node.element) else {
                return true;
            };
            if theirs.member && recursive {
                return false;
            }
            node.member &= !theirs.member;
            node.children.remove(&theirs.children, recursive);
            node.is_used()
        });
    }

    /// Returns the set with all named fields that have children as members. Keys of maps and list items
    /// are not named fields.
    pub(super) fn with_named_fields(&self, kind: Ref<'_>) -> Self {
        let atom = kind.resolve();
        let mut out = Self::default();
        for node in &self.nodes {
            if node.children.is_empty() {
                out.add(node.element.clone(), node.member, Self::default());
                continue;
            }
            let (named, inner) = match (&node.element, &atom.map, &atom.list) {
                (Element::Field(name), Some(map), _) => {
                    (map.field_type(name).is_some(), map.child_type(name))
                }
                (Element::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, Ref::Nothing),
            };
            let children = node.children.with_named_fields(inner);
            out.add(node.element.clone(), node.member || named, children);
        }
        out
    }

    /// Returns all paths. At each level, the members precede the paths below them.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut all = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut all);
        all
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, all: &mut Vec<Vec<Element>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            all.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, all);
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

    fn write_level(&self, is_member: bool, out: &mut String) {
        out.push('{');
        if is_member {
            out.push_str("\".\":{}");
        }
        let mut first = !is_member;
        let mut write_field = |node: &Node, name: &str, out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            write_key(name, out);
            out.push(':');
            node.children
                .write_level(node.member && !node.children.is_empty(), out);
        };
        if self
            .nodes
            .iter()
            .all(|node| matches!(node.element, Element::Field(_)))
        {
            // The most common case: field names are sorted already.
            let mut name = String::with_capacity(64);
            for node in &self.nodes {
                name.clear();
                node.element.write_wire(&mut name);
                write_field(node, &name, out);
            }
        } else {
            let mut keyed: Vec<(String, &Node)> = self
                .nodes
                .iter()
                .map(|node| (node.element.to_wire(), node))
                .collect();
            keyed.sort_by(|one, other| one.0.cmp(&other.0));
            for (name, node) in keyed {
                write_field(node, &name, out);
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

/// Returns each node of `one` with the node of `other` that has the same element.
fn pairs<'a>(one: &'a Set, other: &'a Set) -> impl Iterator<Item = (&'a Node, Option<&'a Node>)> {
    let mut rest = other.nodes.as_slice();
    one.nodes.iter().map(move |node| {
        while let [first, tail @ ..] = rest {
            match first.element.cmp(&node.element) {
                Ordering::Less => rest = tail,
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

    fn parse(fields: &Value) -> Set {
        Set::parse(fields).unwrap()
    }

    fn format(set: &Set) -> String {
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
        assert_eq!(format(&parse(&fields)), fields.to_string());
        let shown: Vec<String> = parse(&fields)
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
        assert_eq!(parse(&json!({"f:a": {}, "z:b": {}})), parse(&json!({"f:a": {}})));
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
        let all = parse(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let parent = parse(&json!({"f:a": {}}));
        assert_eq!(
            all.difference(&parent),
            parse(&json!({"f:a": {"f:b": {}}, "f:c": {}}))
        );
        assert_eq!(all.difference_below(&parent), parse(&json!({"f:c": {}})));
        assert_eq!(all.intersection(&parent), parent);
        assert_eq!(parent.union(&all), all);
        assert!(all.difference(&all).is_empty());
    }

    #[test]
    fn sets_are_compared_without_allocation() {
        let all = parse(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let check = |fields: Value, contained: bool, intersects: bool| {
            assert_eq!(all.contains(&parse(&fields)), contained, "{fields}");
            assert_eq!(all.intersects(&parse(&fields)), intersects, "{fields}");
            assert_eq!(parse(&fields).intersects(&all), intersects, "{fields}");
        };
        check(json!({"f:a": {}}), true, true);
        check(json!({"f:a": {"f:b": {}}}), true, true);
        check(json!({"f:a": {".": {}, "f:x": {}}}), false, true);
        check(json!({"f:a": {"f:x": {}}}), false, false);
        check(json!({"f:c": {"f:x": {}}, "f:d": {}}), false, false);
        check(json!({}), true, false);
    }
}
