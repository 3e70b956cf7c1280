//! Compiled form of a schema. References are resolved to indexes of nodes.

use std::collections::BTreeMap;

use mainstay_sprig::Regex;
use mainstay_yaml::Value;

use super::draft::Draft;
use super::format::Format;

/// Index of a node.
pub(super) type NodeId = usize;

/// All schemas that are reachable from the root.
pub(super) struct Compiled {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

/// Value of `additionalProperties` or `additionalItems`.
#[derive(Clone, Copy)]
pub(super) enum Extra {
    Allowed(bool),
    Schema(NodeId),
}

/// Value of an entry of `dependencies`.
pub(super) enum Requirement {
    Names(Vec<String>),
    Schema(NodeId),
}

/// Value of `items` before 2020.
pub(super) enum Items {
    All(NodeId),
    ByPosition(Vec<NodeId>),
}

/// A regular expression and its text.
pub(super) struct Pattern {
    pub(super) regex: Regex,
    pub(super) text: String,
}

/// A compiled schema.
pub(super) struct Node {
    /// URL and JSON pointer, as shown in messages.
    pub(super) location: String,
    pub(super) draft: Draft,
    /// Innermost enclosing schema with an `$id`, or the root.
    pub(super) resource: NodeId,
    /// Result of a boolean schema; `None` for other schemas.
    pub(super) always: Option<bool>,
    pub(super) reference: Option<NodeId>,
    pub(super) recursive_ref: Option<NodeId>,
    pub(super) recursive_anchor: bool,
    pub(super) dynamic_ref: Option<(NodeId, String)>,
    pub(super) dynamic_anchor: String,
    pub(super) dynamic_anchors: BTreeMap<String, NodeId>,
    pub(super) types: Vec<&'static str>,
    pub(super) constant: Option<Value>,
    pub(super) allowed: Option<Vec<Value>>,
    pub(super) format: Option<Format>,
    pub(super) not: Option<NodeId>,
    pub(super) all_of: Vec<NodeId>,
    pub(super) any_of: Vec<NodeId>,
    pub(super) one_of: Vec<NodeId>,
    pub(super) condition: Option<NodeId>,
    pub(super) then: Option<NodeId>,
    pub(super) otherwise: Option<NodeId>,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, NodeId>,
    pub(super) pattern_properties: Vec<(Regex, NodeId)>,
    pub(super) additional_properties: Option<Extra>,
    pub(super) property_names: Option<NodeId>,
    pub(super) dependencies: BTreeMap<String, Requirement>,
    pub(super) dependent_schemas: BTreeMap<String, NodeId>,
    pub(super) dependent_required: BTreeMap<String, Vec<String>>,
    pub(super) unevaluated_properties: Option<NodeId>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) items: Option<Items>,
    pub(super) additional_items: Option<Extra>,
    pub(super) prefix_items: Vec<NodeId>,
    pub(super) other_items: Option<NodeId>,
    pub(super) contains: Option<NodeId>,
    pub(super) min_contains: Option<i64>,
    pub(super) max_contains: Option<i64>,
    pub(super) unevaluated_items: Option<NodeId>,
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) minimum: Option<Value>,
    pub(super) maximum: Option<Value>,
    pub(super) exclusive_minimum: Option<Value>,
    pub(super) exclusive_maximum: Option<Value>,
    pub(super) multiple_of: Option<Value>,
}

impl Node {
    /// Creates a schema without keywords.
    pub(super) fn new(location: String) -> Self {
        Self {
            location,
            draft: Draft::D2020,
            resource: 0,
            always: None,
            reference: None,
            recursive_ref: None,
            recursive_anchor: false,
            dynamic_ref: None,
            dynamic_anchor: String::new(),
            dynamic_anchors: BTreeMap::new(),
            types: Vec::new(),
            constant: None,
            allowed: None,
            format: None,
            not: None,
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            condition: None,
            then: None,
            otherwise: None,
            min_properties: None,
            max_properties: None,
            required: Vec::new(),
            properties: BTreeMap::new(),
            pattern_properties: Vec::new(),
            additional_properties: None,
            property_names: None,
            dependencies: BTreeMap::new(),
            dependent_schemas: BTreeMap::new(),
            dependent_required: BTreeMap::new(),
            unevaluated_properties: None,
            min_items: None,
            max_items: None,
            unique_items: false,
            items: None,
            additional_items: None,
            prefix_items: Vec::new(),
            other_items: None,
            contains: None,
            min_contains: None,
            max_contains: None,
            unevaluated_items: None,
            min_length: None,
            max_length: None,
            pattern: None,
            minimum: None,
            maximum: None,
            exclusive_minimum: None,
            exclusive_maximum: None,
            multiple_of: None,
        }
    }

    /// Whether this schema evaluates all properties, so that none remains for `unevaluatedProperties`.
    pub(super) fn evaluates_all_properties(&self) -> bool {
        self.additional_properties.is_some()
    }

    /// Returns the number of items that this schema evaluates, or `None` if it evaluates all of them.
    pub(super) fn evaluated_items(&self) -> Option<usize> {
        if self.draft < Draft::D2020 {
            match &self.items {
                _ if self.additional_items.is_some() => None,
                Some(Items::All(_)) => None,
                Some(Items::ByPosition(list)) => Some(list.len()),
                None => Some(0),
            }
        } else {
            self.other_items.is_none().then_some(self.prefix_items.len())
        }
    }
}
