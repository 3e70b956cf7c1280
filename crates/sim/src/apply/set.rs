//! Sets of field paths: takes paths, gives their union, difference and intersection, and the wire form `FieldsV1`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::element::Element;
use super::types::Ref;

/// A set of field paths as a tree. A child is there only if it holds something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    members: BTreeSet<Element>,
    children: BTreeMap<Element, Set>,
}

impl Set {
    /// The set of paths made of field names alone.
    pub(super) fn of(paths: &[&[&str]]) -> Self {
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
            [first, rest @ ..] => self
                .children
                .entry(Element::field(first))
                .or_default()
                .insert_fields(rest),
        }
    }

    /// Adds what lies directly below.
    pub(super) fn insert(&mut self, element: Element) {
        self.members.insert(element);
    }

    /// Adds everything in `below`, below `element`.
    pub(super) fn nest(&mut self, element: &Element, below: Self) {
        if below.is_empty() {
            return;
        }
        match self.children.get_mut(element) {
            Some(there) => *there = there.union(&below),
            None => drop(self.children.insert(element.clone(), below)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Whether the element itself is in the set.
    pub(super) fn has(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    /// Every element of this level, once.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Element> {
        let deeper = self.children.keys().filter(|element| !self.has(element));
        self.members.iter().chain(deeper)
    }

    /// What is in the set below `element`.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.children.get(element).filter(|below| !below.is_empty())
    }

    /// Whether the path is in the set.
    pub(super) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has_path(rest)),
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.members.extend(other.members.iter().cloned());
        for (element, below) in &other.children {
            out.nest(element, below.clone());
        }
        out
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut out = Self {
            members: self.members.intersection(&other.members).cloned().collect(),
            children: BTreeMap::new(),
        };
        for (element, below) in &self.children {
            if let Some(there) = other.children.get(element) {
                out.nest(element, below.intersection(there));
            }
        }
        out
    }

    /// What is here and not there; taking away a parent leaves its children.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.minus(other, false)
    }

    /// What is here and not there, nor below anything that is there.
    pub(super) fn difference_below(&self, other: &Self) -> Self {
        self.minus(other, true)
    }

    fn minus(&self, other: &Self, with_children: bool) -> Self {
        let mut out = Self {
            members: self.members.difference(&other.members).cloned().collect(),
            children: BTreeMap::new(),
        };
        for (element, below) in &self.children {
            if with_children && other.has(element) {
                continue;
            }
            let left = match other.children.get(element) {
                Some(there) => below.minus(there, with_children),
                None => below.clone(),
            };
            out.nest(element, left);
        }
        out
    }

    /// The set with every named field on the way to a member as a member too (keys of maps and list items excepted).
    pub(super) fn with_named_fields(&self, kind: Ref<'_>) -> Self {
        let atom = kind.resolve();
        let mut out = Self {
            members: self.members.clone(),
            children: BTreeMap::new(),
        };
        for (element, below) in &self.children {
            let inner = match (element, &atom.map, &atom.list) {
                (Element::Field(name), Some(map), _) => {
                    if map.field(name).is_some() {
                        out.insert(element.clone());
                    }
                    map.child(name)
                }
                (Element::Key(_), _, Some(list)) => list.element,
                _ => Ref::Nothing,
            };
            out.nest(element, below.with_named_fields(inner));
        }
        out
    }

    /// Every path, parents before what lies below, members of a level before anything deeper.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut all = Vec::new();
        self.collect(&mut Vec::new(), &mut all);
        all
    }

    fn collect(&self, prefix: &mut Vec<Element>, all: &mut Vec<Vec<Element>>) {
        for member in &self.members {
            let mut path = prefix.clone();
            path.push(member.clone());
            all.push(path);
        }
        for (element, below) in &self.children {
            prefix.push(element.clone());
            below.collect(prefix, all);
            prefix.pop();
        }
    }

    /// Reads `FieldsV1`.
    pub(super) fn parse(fields: &Value) -> Result<Self, String> {
        let Value::Object(map) = fields else {
            return Err("fields must be an object".into());
        };
        let mut set = Self::default();
        for (key, below) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = Element::parse(key)? else {
                continue;
            };
            let children = Self::parse(below)?;
            if below.get(".").is_some() || children.is_empty() {
                set.members.insert(element.clone());
            }
            set.nest(&element, children);
        }
        Ok(set)
    }

    /// Writes `FieldsV1`.
    pub(super) fn to_fields(&self) -> Value {
        let mut out: Map<String, Value> = Map::new();
        for member in &self.members {
            out.insert(member.wire(), json!({}));
        }
        for (element, below) in &self.children {
            let mut fields = below.to_fields();
            if let Value::Object(map) = &mut fields
                && self.has(element)
            {
                map.insert(".".into(), json!({}));
            }
            out.insert(element.wire(), fields);
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fields: &Value) -> Set {
        Set::parse(fields).unwrap()
    }

    #[test]
    fn the_wire_form_comes_back_as_it_went() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}, "f:tags": {"v:\"a\"": {}, "i:0": {}}},
        });
        assert_eq!(set(&fields).to_fields(), fields);
        let shown: Vec<String> = set(&fields)
            .paths()
            .iter()
            .map(|path| path.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(
            shown,
            [
                ".metadata.labels",
                ".metadata.labels.app",
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
                ".spec.tags[=\"a\"]",
                ".spec.tags[0]",
            ]
        );
    }

    #[test]
    fn forms_of_the_future_are_dropped_and_nonsense_is_refused() {
        assert_eq!(set(&json!({"f:a": {}, "z:b": {}})), set(&json!({"f:a": {}})));
        assert_eq!(Set::parse(&json!({"a": {}})), Err("missing colon: a".into()));
        assert!(Set::parse(&json!({"k:[]": {}})).is_err());
        assert!(Set::parse(&json!({"i:x": {}})).is_err());
        assert!(Set::parse(&json!([])).is_err());
    }

    #[test]
    fn taking_away_a_parent_leaves_its_children_unless_told() {
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
}
