//! YAML text to a tree that remembers where everything was: takes a whole stream, gives every document with spans.
//! Knows what was written, not what it means: scalars are text, aliases stay aliases.

use crate::read::{Kind, Source, Style, Tree, TreeNode, compose};
use crate::{Budget, Error, Mark, Numbers, Options, Value, decode};

/// From where to where in the text; the end is just behind the last character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first character.
    pub start: Mark,
    /// Just behind the last one.
    pub end: Mark,
}

/// The number of a node in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it is, marks like `---` included.
    pub span: Span,
    /// Its nodes in the order they start; the first is the root.
    pub nodes: Vec<Node>,
}

/// One node of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it is, its anchor and tag included. A block ends with its last child.
    pub span: Span,
    /// Its anchor, without `&`.
    pub anchor: Option<String>,
    /// Its tag in full, such as `tag:yaml.org,2002:str`.
    pub tag: Option<String>,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A scalar, quotes and escapes resolved.
    Scalar {
        /// Its text.
        text: String,
        /// How it was written.
        style: Scalar,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<NodeId>,
        /// Whether it is in brackets.
        flow: bool,
    },
    /// A map.
    Map {
        /// Its keys and values, in their order.
        entries: Vec<(NodeId, NodeId)>,
        /// Whether it is in braces.
        flow: bool,
    },
    /// An alias.
    Alias {
        /// The anchor's name.
        name: String,
        /// The node it stands for.
        target: NodeId,
    },
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// Behind `|`.
    Literal,
    /// Behind `>`.
    Folded,
}

impl Document {
    /// The root; none in a document without content.
    #[must_use]
    pub fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(NodeId(0))
    }

    /// The node `id`.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    /// The value at `key` of map `id`; of several the last, as when the document is read. Aliases are followed, merges not.
    #[must_use]
    pub fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        let mut id = id;
        while let NodeKind::Alias { target, .. } = &self.node(id)?.kind {
            // An alias stands behind its target, so this ends.
            id = *target;
        }
        let NodeKind::Map { entries, .. } = &self.node(id)?.kind else {
            return None;
        };
        let named = |id: NodeId| matches!(self.node(id).map(|node| &node.kind), Some(NodeKind::Scalar { text, .. }) if text == key);
        entries
            .iter()
            .rev()
            .find(|(key, _)| named(*key))
            .map(|(_, value)| *value)
    }

    /// The value reached from the root by going through `keys`.
    #[must_use]
    pub fn find(&self, keys: &[&str]) -> Option<NodeId> {
        keys.iter().try_fold(self.root()?, |id, key| self.get(id, key))
    }
}

/// Reads every document of `text`.
pub fn parse_spanned(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let trees = compose(&source, budget, true)?;
    Ok(trees.iter().map(|tree| document(tree, source.skipped)).collect())
}

/// Whether every document of `text` can be read, at the cost of reading and no more.
pub fn check_syntax(text: impl AsRef<[u8]>, budget: &Budget) -> Result<(), Error> {
    let source = Source::new(text.as_ref(), budget)?;
    compose(&source, budget, true).map(drop)
}

/// A document's spans, and what it means.
pub type Both = (Document, Result<Value, Error>);

/// Reads every document of `text` together with what it means, for who edits the one and must know the other: whole
/// numbers stay whole, of a key given twice the last wins. A document may have spans and no value, as `<<: 1` has none.
pub fn parse_spanned_values(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Both>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: *budget,
    };
    let trees = compose(&source, budget, true)?;
    let both = |tree: &Tree<'_>| {
        let value = decode::tree_value(tree, source.skipped, &options);
        (document(tree, source.skipped), value)
    };
    Ok(trees.iter().map(both).collect())
}

fn document(tree: &Tree<'_>, skipped: usize) -> Document {
    let nodes = (0..tree.nodes.len() as u32).zip(&tree.nodes);
    Document {
        span: Span {
            start: tree.start.mark(skipped),
            end: tree.end.mark(skipped),
        },
        nodes: nodes.map(|(id, raw)| node(tree, id, raw, skipped)).collect(),
    }
}

fn node(tree: &Tree<'_>, id: u32, raw: &TreeNode<'_>, skipped: usize) -> Node {
    Node {
        span: Span {
            start: raw.start.mark(skipped),
            end: raw.end.mark(skipped),
        },
        anchor: raw.anchor.map(str::to_owned),
        tag: raw.tag.as_deref().map(str::to_owned),
        kind: kind(tree, id, raw),
    }
}

fn kind(tree: &Tree<'_>, id: u32, raw: &TreeNode<'_>) -> NodeKind {
    let flow = raw.style == Style::Flow;
    match raw.kind {
        Kind::Scalar => NodeKind::Scalar {
            text: raw.value.to_string(),
            style: style(raw.style),
        },
        Kind::Alias => NodeKind::Alias {
            name: raw.value.to_string(),
            target: NodeId(raw.first),
        },
        Kind::Sequence => NodeKind::List {
            items: tree.children(id).map(NodeId).collect(),
            flow,
        },
        Kind::Mapping => {
            let children: Vec<u32> = tree.children(id).collect();
            let pairs = children.chunks_exact(2).filter_map(|pair| match pair {
                [key, value] => Some((NodeId(*key), NodeId(*value))),
                _ => None,
            });
            NodeKind::Map {
                entries: pairs.collect(),
                flow,
            }
        }
    }
}

fn style(style: Style) -> Scalar {
    match style {
        Style::Single => Scalar::Single,
        Style::Double => Scalar::Double,
        Style::Literal => Scalar::Literal,
        Style::Folded => Scalar::Folded,
        Style::Plain | Style::Block | Style::Flow => Scalar::Plain,
    }
}
