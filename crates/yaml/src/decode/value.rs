//! Decoding of a composed document into the tree that Go's JSON decoder returns.
//!
//! Keys are converted to strings directly. The rare documents for which this may change the text of an
//! error (`null` as a key, NaN) are decoded a second time with Go's types, see [`super::typed`].

use std::borrow::Cow;
use std::collections::HashSet;

use mainstay_gostd::float::{format_float32, format_special};
use mainstay_gostd::utf8::to_string_lossy;

use super::scalar::{self, Scalar};
use super::{Options, typed};
use crate::read::{Kind, NONE, Tree, TreeNode};
use crate::resolve::Resolved;
use crate::{Error, Map, Numbers, Position, Problem, Value};

/// Returns the value of a document.
pub(super) fn decode(tree: &Tree<'_>, skipped: usize, options: &Options) -> Result<Value, Error> {
    let mut decoder = Decoder {
        tree,
        skipped,
        options,
        // The document itself is one node.
        decoded: 1,
        aliased: 0,
        expanded_bytes: 0,
        active: Vec::new(),
        depth: 0,
        has_unusual_key: false,
        has_unusual_number: false,
        duplicates: Vec::new(),
    };
    let value = if tree.nodes.is_empty() {
        Value::Null
    } else {
        decoder.decode_node(0)?
    };
    if !decoder.duplicates.is_empty() {
        let lines = decoder.duplicates;
        return Err(Problem::Duplicates { lines }.at(Position::start()));
    }
    if decoder.has_unusual_key
        && let Some(problem) = typed::key_problem(tree)
    {
        return Err(problem.at(Position::start()));
    }
    if decoder.has_unusual_number
        && let Some(value) = unsupported_number(&value)
    {
        return Err(Problem::UnsupportedNumber { value }.at(Position::start()));
    }
    Ok(value)
}

struct Decoder<'t, 'a> {
    tree: &'t Tree<'a>,
    skipped: usize,
    options: &'t Options,
    decoded: usize,
    aliased: usize,
    /// Number of bytes of scalars that come from aliases.
    expanded_bytes: usize,
    /// Aliases that are being expanded.
    active: Vec<u32>,
    depth: usize,
    has_unusual_key: bool,
    has_unusual_number: bool,
    duplicates: Vec<String>,
}

/// Keys of a map so far. Recorded only if repeated keys are errors.
type Seen = HashSet<String>;

impl<'t, 'a> Decoder<'t, 'a> {
    // These functions recurse by the depth of the document, so they have small stack frames and no
    // closures.

    fn decode_node(&mut self, id: u32) -> Result<Value, Error> {
        let tree = self.tree;
        let Some(node) = tree.node(id) else {
            return Ok(Value::Null);
        };
        self.count_node(node)?;
        match node.kind {
            Kind::Scalar => self.decode_scalar(node),
            Kind::Alias => {
                self.enter_alias(id, node)?;
                let value = self.decode_node(node.first)?;
                self.leave_alias();
                Ok(value)
            }
            Kind::Sequence => self.decode_sequence(id, node),
            Kind::Mapping => {
                let mut map = Map::new();
                self.enter(node)?;
                self.decode_mapping(id, &mut map, &mut Seen::new())?;
                self.depth -= 1;
                Ok(Value::Map(map))
            }
        }
    }

    fn decode_sequence(&mut self, id: u32, node: &TreeNode<'_>) -> Result<Value, Error> {
        let tree = self.tree;
        self.enter(node)?;
        let mut items = Vec::new();
        for child in tree.children(id) {
            items.push(self.decode_node(child)?);
        }
        self.depth -= 1;
        Ok(Value::List(items))
    }

    fn enter(&mut self, node: &TreeNode<'_>) -> Result<(), Error> {
        let limit = self.options.budget.depth;
        if self.depth >= limit {
            let quantity = "levels of nesting";
            return Err(Problem::Budget { quantity, limit }.at(self.position(node)));
        }
        self.depth += 1;
        Ok(())
    }

    /// Enters an alias. Fails if it is already being expanded.
    fn enter_alias(&mut self, id: u32, node: &TreeNode<'_>) -> Result<(), Error> {
        if self.active.contains(&id) {
            let name = node.value.to_string();
            return Err(Problem::CyclicAnchor { name }.at(self.position(node)));
        }
        self.active.push(id);
        self.enter(node)
    }

    fn leave_alias(&mut self) {
        self.active.pop();
        self.depth -= 1;
    }

    /// Counts a node against the budget and go-yaml's alias limit.
    fn count_node(&mut self, node: &TreeNode<'_>) -> Result<(), Error> {
        self.decoded += 1;
        self.aliased += usize::from(!self.active.is_empty());
        let share = self.aliased as f64 / self.decoded as f64;
        if self.aliased > 100 && self.decoded > 1000 && share > allowed_share(self.decoded) {
            return Err(Problem::ExcessiveAliasing.at(self.position(node)));
        }
        if !self.active.is_empty() {
            self.expanded_bytes = self.expanded_bytes.saturating_add(node.value.len());
        }
        let budget = &self.options.budget;
        let (quantity, limit) = if self.expanded_bytes > budget.expanded_bytes {
            ("bytes from aliases", budget.expanded_bytes)
        } else if self.aliased > budget.alias_expansion {
            ("nodes from aliases", budget.alias_expansion)
        } else if self.decoded > budget.nodes {
            ("nodes", budget.nodes)
        } else {
            return Ok(());
        };
        Err(Problem::Budget { quantity, limit }.at(self.position(node)))
    }

    fn position(&self, node: &TreeNode<'_>) -> Position {
        node.start.position(self.skipped)
    }

    fn decode_scalar(&mut self, node: &'t TreeNode<'a>) -> Result<Value, Error> {
        let read = scalar::read(node, || node.start.position(self.skipped))?;
        let exact = self.options.numbers == Numbers::Exact;
        Ok(match read {
            Scalar::Text(text) => Value::String(text.to_owned()),
            Scalar::Bytes(bytes) => Value::String(to_string_lossy(&bytes).into_owned()),
            Scalar::Resolved(Resolved::Bool(value)) => Value::Bool(value),
            Scalar::Resolved(Resolved::Int(value)) if exact => Value::Int(value),
            Scalar::Resolved(Resolved::Uint(value)) if exact => Value::Uint(value),
            Scalar::Resolved(Resolved::Int(value)) => Value::Float(value as f64),
            Scalar::Resolved(Resolved::Uint(value)) => Value::Float(value as f64),
            Scalar::Resolved(Resolved::Float(value)) => {
                self.has_unusual_number |= !value.is_finite();
                Value::Float(value)
            }
            Scalar::Resolved(Resolved::Null | Resolved::Text | Resolved::Timestamp) => Value::Null,
        })
    }

    /// Adds the entries of mapping `id` to `map`.
    fn decode_mapping(&mut self, id: u32, map: &mut Map, seen: &mut Seen) -> Result<(), Error> {
        let tree = self.tree;
        let mut key = tree.node(id).map_or(NONE, |node| node.first);
        while let Some(key_node) = tree.node(key) {
            let value = key_node.next;
            if is_merge(key_node) {
                self.merge_value(value, map, seen)?;
            } else {
                let name = self.decode_key(key)?;
                let typed = self.options.strict.then(|| typed::print_node(tree, key));
                let entry = self.decode_node(value)?;
                if typed.is_none_or(|typed| self.is_new(value, typed, seen)) {
                    map.insert(name.into_owned(), entry);
                }
            }
            key = tree.node(value).map_or(NONE, |node| node.next);
        }
        Ok(())
    }

    /// Returns the JSON form of the key `id`.
    fn decode_key(&mut self, id: u32) -> Result<Cow<'t, str>, Error> {
        let tree = self.tree;
        let Some(node) = tree.node(id) else {
            return Ok(Cow::Borrowed(""));
        };
        self.count_node(node)?;
        match node.kind {
            Kind::Alias => {
                self.enter_alias(id, node)?;
                let key = self.decode_key(node.first)?;
                self.leave_alias();
                Ok(key)
            }
            Kind::Scalar => {
                let read = scalar::read(node, || node.start.position(self.skipped))?;
                Ok(self.key_text(read))
            }
            Kind::Sequence | Kind::Mapping => {
                // The errors and the cost of the key itself take precedence.
                self.decoded -= 1;
                self.decode_node(id)?;
                let key = typed::print_node(tree, id);
                Err(Problem::InvalidKey { key }.at(self.position(node)))
            }
        }
    }

    fn key_text(&mut self, key: Scalar<'t>) -> Cow<'t, str> {
        match key {
            Scalar::Text(text) => Cow::Borrowed(text),
            Scalar::Bytes(bytes) => Cow::Owned(to_string_lossy(&bytes).into_owned()),
            Scalar::Resolved(Resolved::Int(value)) => Cow::Owned(value.to_string()),
            Scalar::Resolved(Resolved::Bool(value)) => Cow::Borrowed(if value { "true" } else { "false" }),
            Scalar::Resolved(Resolved::Float(value)) => Cow::Owned(float_key(value)),
            Scalar::Resolved(_) => {
                self.has_unusual_key = true;
                Cow::Borrowed("null")
            }
        }
    }

    /// Whether the key is new. If not, records the line of its value.
    fn is_new(&mut self, value: u32, key: String, seen: &mut Seen) -> bool {
        if seen.contains(&key) {
            let line = self.tree.node(value).map_or(0, |node| node.start.line) + 1;
            self.duplicates
                .push(format!("line {line}: key {key} already set in map"));
            return false;
        }
        seen.insert(key)
    }

    /// Merges the value of `<<`: a map, or a list of maps. Earlier maps of the list take precedence.
    fn merge_value(&mut self, id: u32, map: &mut Map, seen: &mut Seen) -> Result<(), Error> {
        let tree = self.tree;
        let Some(node) = tree.node(id) else { return Ok(()) };
        if node.kind != Kind::Sequence {
            return self.merge_one(id, map, seen);
        }
        let children: Vec<u32> = tree.children(id).collect();
        for child in children.into_iter().rev() {
            self.merge_one(child, map, seen)?;
        }
        Ok(())
    }

    fn merge_one(&mut self, id: u32, map: &mut Map, seen: &mut Seen) -> Result<(), Error> {
        let tree = self.tree;
        let Some(node) = tree.node(id) else { return Ok(()) };
        let target = if node.kind == Kind::Alias {
            tree.node(node.first)
        } else {
            Some(node)
        };
        let Some(target) = target.filter(|target| target.kind == Kind::Mapping) else {
            return Err(Problem::Merge.at(self.position(node)));
        };
        self.count_node(node)?;
        if node.kind == Kind::Alias {
            self.enter_alias(id, node)?;
            self.count_node(target)?;
            self.decode_mapping(node.first, map, seen)?;
            self.leave_alias();
            return Ok(());
        }
        self.enter(node)?;
        self.decode_mapping(id, map, seen)?;
        self.depth -= 1;
        Ok(())
    }
}

pub(super) fn is_merge(node: &TreeNode<'_>) -> bool {
    let tagged = node.tag.as_deref() == Some("tag:yaml.org,2002:merge");
    node.kind == Kind::Scalar && node.value == "<<" && (node.implicit || tagged)
}

/// Returns go-yaml's limit on the share of nodes that come from aliases: 99 % in small documents, falling
/// to 10 % in large ones.
fn allowed_share(decoded: usize) -> f64 {
    const LOW: usize = 400_000;
    const HIGH: usize = 4_000_000;
    match decoded {
        0..=LOW => 0.99,
        HIGH.. => 0.10,
        _ => 0.99 - 0.89 * ((decoded - LOW) as f64 / (HIGH - LOW) as f64),
    }
}

fn float_key(value: f64) -> String {
    match format_special(f64::from(value as f32)) {
        Some("+Inf") => ".inf".into(),
        Some("-Inf") => "-.inf".into(),
        Some(_) => ".nan".into(),
        None => format_float32(value),
    }
}

/// Returns the first number that JSON cannot represent, in the order in which JSON is written.
fn unsupported_number(value: &Value) -> Option<&'static str> {
    match value {
        Value::Float(number) => format_special(*number),
        Value::List(items) => items.iter().find_map(unsupported_number),
        Value::Map(map) => map.values().find_map(unsupported_number),
        _ => None,
    }
}
