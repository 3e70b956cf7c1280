//! Parsing into a tree with the position of every node. Scalars remain text, and aliases are not expanded.

use std::borrow::Cow;

use crate::read::{Kind, Source, Style, Tree, TreeNode, compose, compose_text};
use crate::{Budget, Error, Numbers, Options, Position, Value, decode};

/// A range of the text; the end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Position of the first character.
    pub start: Position,
    /// Position after the last character.
    pub end: Position,
}

/// Index of a node in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'a> {
    /// Range of the document, including markers such as `---`.
    pub span: Span,
    /// Nodes in the order of their start positions. The first node is the root.
    pub nodes: Vec<Node<'a>>,
}

/// One node of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'a> {
    /// Range of the node, including its anchor and tag. A block collection ends with its last child.
    pub span: Span,
    /// The anchor, without `&`.
    pub anchor: Option<Cow<'a, str>>,
    /// The full tag, such as `tag:yaml.org,2002:str`.
    pub tag: Option<Box<str>>,
    /// Kind and content of the node.
    pub kind: NodeKind<'a>,
}

/// Kind and content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind<'a> {
    /// A scalar, with quotes and escapes resolved.
    Scalar {
        /// The text, borrowed from the input where possible.
        text: Cow<'a, str>,
        /// Style in the text.
        style: ScalarStyle,
    },
    /// A list.
    List {
        /// The items.
        items: Vec<NodeId>,
        /// Whether the list is in brackets.
        flow: bool,
    },
    /// A map.
    Map {
        /// Keys and values in the order of the text.
        entries: Vec<(NodeId, NodeId)>,
        /// Whether the map is in braces.
        flow: bool,
    },
    /// An alias.
    Alias {
        /// Name of the anchor.
        name: Cow<'a, str>,
        /// Node that the alias refers to.
        target: NodeId,
    },
}

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarStyle {
    /// Unquoted.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// Block scalar after `|`.
    Literal,
    /// Block scalar after `>`.
    Folded,
}

impl<'a> Document<'a> {
    /// Returns the root, or `None` if the document has no content.
    #[must_use]
    pub fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(NodeId(0))
    }

    /// Returns the node with this ID.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node<'a>> {
        self.nodes.get(id.0 as usize)
    }

    /// Returns the value of `key` in the map `id`; of several equal keys the last one, as in a parsed
    /// value. Follows aliases, but not merges.
    #[must_use]
    pub fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        let mut id = id;
        while let NodeKind::Alias { target, .. } = &self.node(id)?.kind {
            // An alias is always after its target, so this loop ends.
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

    /// Converts the document into one that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Document<'static> {
        let own = |node: Node<'a>| Node {
            span: node.span,
            anchor: node.anchor.map(|anchor| Cow::Owned(anchor.into_owned())),
            tag: node.tag,
            kind: match node.kind {
                NodeKind::Scalar { text, style } => NodeKind::Scalar {
                    text: Cow::Owned(text.into_owned()),
                    style,
                },
                NodeKind::Alias { name, target } => NodeKind::Alias {
                    name: Cow::Owned(name.into_owned()),
                    target,
                },
                NodeKind::List { items, flow } => NodeKind::List { items, flow },
                NodeKind::Map { entries, flow } => NodeKind::Map { entries, flow },
            },
        };
        Document {
            span: self.span,
            nodes: self.nodes.into_iter().map(own).collect(),
        }
    }

    /// Returns the value at the path `keys` from the root.
    #[must_use]
    pub fn find(&self, keys: &[&str]) -> Option<NodeId> {
        keys.iter().try_fold(self.root()?, |id, key| self.get(id, key))
    }
}

/// Parses every document of `text`.
pub fn parse_spanned<'a, T: AsRef<[u8]> + ?Sized>(
    text: &'a T,
    budget: &Budget,
) -> Result<Vec<Document<'a>>, Error> {
    let documents = read(text.as_ref(), budget, |_, _| ())?;
    Ok(documents.into_iter().map(|(document, ())| document).collect())
}

/// A document with its spans and its decoded value.
#[derive(Clone, Debug, PartialEq)]
pub struct SpannedValue<'a> {
    /// The document with the position of every node.
    pub document: Document<'a>,
    /// Decoded value, or the error of decoding. A document may have spans but no value, for example
    /// `<<: 1`.
    pub value: Result<Value, Error>,
}

/// Parses every document of `text` with spans and values, for callers that edit the text and also need its
/// values. Integers remain integers; of several equal keys the last one takes precedence.
pub fn parse_spanned_values<'a, T: AsRef<[u8]> + ?Sized>(
    text: &'a T,
    budget: &Budget,
) -> Result<Vec<SpannedValue<'a>>, Error> {
    let options = Options {
        numbers: Numbers::Exact,
        strict: false,
        budget: *budget,
    };
    let documents = read(text.as_ref(), budget, |tree, skipped| {
        decode::tree_value(tree, skipped, &options)
    })?;
    let spanned = |(document, value)| SpannedValue { document, value };
    Ok(documents.into_iter().map(spanned).collect())
}

/// Parses every document and applies `inspect` to its tree and to the number of skipped bytes.
fn read<'a, S>(
    text: &'a [u8],
    budget: &Budget,
    inspect: impl Fn(&Tree<'_>, usize) -> S,
) -> Result<Vec<(Document<'a>, S)>, Error> {
    let source = Source::new(text, budget)?;
    let skipped = source.skipped;
    let both = |tree: Tree<'a>| {
        let seen = inspect(&tree, skipped);
        (convert_document(tree, skipped), seen)
    };
    if let Cow::Borrowed(text) = source.text {
        let trees = compose_text(text, &source, budget, true)?;
        return Ok(trees.into_iter().map(both).collect());
    }
    // UTF-16 is converted, so the result cannot borrow from the input.
    let trees = compose(&source, budget, true)?.into_iter();
    Ok(trees
        .map(|tree| (inspect(&tree, skipped), tree))
        .map(|(seen, tree)| (convert_document(tree, skipped).into_owned(), seen))
        .collect())
}

fn convert_document(mut tree: Tree<'_>, skipped: usize) -> Document<'_> {
    let mut nodes = Vec::with_capacity(tree.nodes.len());
    for id in 0..tree.nodes.len() {
        nodes.extend(convert_node(&mut tree, id, skipped));
    }
    Document {
        span: Span {
            start: tree.start.position(skipped),
            end: tree.end.position(skipped),
        },
        nodes,
    }
}

/// Converts the node `id` and moves its text out of the tree.
fn convert_node<'a>(tree: &mut Tree<'a>, id: usize, skipped: usize) -> Option<Node<'a>> {
    let raw = tree.nodes.get_mut(id)?;
    let (text, tag) = (std::mem::take(&mut raw.value), raw.tag.take());
    let raw = tree.nodes.get(id)?;
    Some(Node {
        span: Span {
            start: raw.start.position(skipped),
            end: raw.end.position(skipped),
        },
        anchor: raw.anchor.map(Cow::Borrowed),
        tag,
        kind: convert_kind(tree, raw, text),
    })
}

fn convert_kind<'a>(tree: &Tree<'a>, raw: &TreeNode<'a>, text: Cow<'a, str>) -> NodeKind<'a> {
    let flow = raw.style == Style::Flow;
    match raw.kind {
        Kind::Scalar => NodeKind::Scalar {
            text,
            style: convert_style(raw.style),
        },
        Kind::Alias => NodeKind::Alias {
            name: text,
            target: NodeId(raw.first),
        },
        Kind::Sequence => {
            let mut items = Vec::with_capacity(tree.chain(raw.first).count());
            items.extend(tree.chain(raw.first).map(NodeId));
            NodeKind::List { items, flow }
        }
        Kind::Mapping => {
            let mut entries = Vec::with_capacity(tree.chain(raw.first).count() / 2);
            let mut children = tree.chain(raw.first);
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                entries.push((NodeId(key), NodeId(value)));
            }
            NodeKind::Map { entries, flow }
        }
    }
}

fn convert_style(style: Style) -> ScalarStyle {
    match style {
        Style::Single => ScalarStyle::Single,
        Style::Double => ScalarStyle::Double,
        Style::Literal => ScalarStyle::Literal,
        Style::Folded => ScalarStyle::Folded,
        Style::Plain | Style::Block | Style::Flow => ScalarStyle::Plain,
    }
}
