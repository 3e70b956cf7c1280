//! Composition of events into a table of nodes per document, without recursion. Only anchors are resolved,
//! as in go-yaml.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::event::{Event, EventKind, Parser, Properties};
use super::scan::Scanner;
use super::source::Source;
use super::token::{ScanPosition, Style};
use crate::{Budget, Error, Problem};

/// Bytes of text per node for which memory is reserved, up to `MAX_RESERVED_NODES`. An estimate, not a
/// limit.
const BYTES_PER_NODE: usize = 12;
const MAX_RESERVED_NODES: usize = 1 << 10;

/// Index that means "no node".
pub(crate) const NONE: u32 = u32::MAX;

/// Nodes of one document in the order of their start positions.
#[derive(Debug, Default)]
pub(crate) struct Tree<'a> {
    pub(crate) nodes: Vec<TreeNode<'a>>,
    pub(crate) start: ScanPosition,
    pub(crate) end: ScanPosition,
}

/// A node. Its children form a linked list.
#[derive(Clone, Debug)]
pub(crate) struct TreeNode<'a> {
    pub(crate) kind: Kind,
    /// Text of a scalar, or name of an alias.
    pub(crate) value: Cow<'a, str>,
    pub(crate) tag: Option<Box<str>>,
    pub(crate) anchor: Option<&'a str>,
    pub(crate) style: Style,
    pub(crate) implicit: bool,
    pub(crate) start: ScanPosition,
    pub(crate) end: ScanPosition,
    /// First child of a collection, or target of an alias.
    pub(crate) first: u32,
    /// Next sibling.
    pub(crate) next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Sequence,
    Mapping,
    Alias,
}

impl<'a> Tree<'a> {
    /// Iterates over the children of `parent`.
    pub(crate) fn children(&self, parent: u32) -> impl Iterator<Item = u32> + '_ {
        self.chain(self.nodes.get(parent as usize).map_or(NONE, |node| node.first))
    }

    /// Iterates over `first` and the siblings after it.
    pub(crate) fn chain(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(first), |child| {
            self.nodes.get(*child as usize).map(|node| node.next)
        })
        .take_while(|child| *child != NONE)
    }

    pub(crate) fn node(&self, id: u32) -> Option<&TreeNode<'a>> {
        self.nodes.get(id as usize)
    }
}

/// Composes the first document of `source`, or all documents if `all` is set. The result is empty for an
/// empty stream.
pub(crate) fn compose<'a>(
    source: &'a Source<'_>,
    budget: &Budget,
    all: bool,
) -> Result<Vec<Tree<'a>>, Error> {
    compose_text(&source.text, source, budget, all)
}

/// Composes the documents of `text`, the text of `source`. `text` may outlive the source.
pub(crate) fn compose_text<'a>(
    text: &'a str,
    source: &Source<'_>,
    budget: &Budget,
    all: bool,
) -> Result<Vec<Tree<'a>>, Error> {
    let text = source.scannable(text);
    let scanner = Scanner::new(text, source.skipped, source.failure);
    let mut composer = Composer {
        parser: Parser::new(scanner),
        budget: *budget,
        tree: Tree::default(),
        estimated_nodes: (text.len() / BYTES_PER_NODE).min(MAX_RESERVED_NODES),
        anchors: HashMap::new(),
        open: Vec::new(),
    };
    let mut trees = Vec::new();
    while let Some(tree) = composer.document()? {
        trees.push(tree);
        if !all {
            break;
        }
        if trees.len() > budget.documents {
            let (quantity, limit) = ("documents", budget.documents);
            return Err(Problem::Budget { quantity, limit }.at(ScanPosition::default().position(0)));
        }
    }
    Ok(trees)
}

struct Composer<'a> {
    parser: Parser<'a>,
    budget: Budget,
    tree: Tree<'a>,
    /// Estimated number of nodes of a document.
    estimated_nodes: usize,
    anchors: HashMap<&'a str, u32>,
    /// Open collections, each with its last child.
    open: Vec<(u32, u32)>,
}

impl<'a> Composer<'a> {
    fn document(&mut self) -> Result<Option<Tree<'a>>, Error> {
        let event = self.parser.next()?;
        if matches!(event.kind, EventKind::StreamEnd) {
            return Ok(None);
        }
        self.tree = Tree {
            start: event.start,
            nodes: Vec::with_capacity(self.estimated_nodes),
            ..Tree::default()
        };
        self.anchors.clear();
        loop {
            let event = self.parser.next()?;
            if let EventKind::DocumentEnd | EventKind::StreamEnd = event.kind {
                self.tree.end = event.end;
                return Ok(Some(std::mem::take(&mut self.tree)));
            }
            self.take(event)?;
        }
    }

    fn take(&mut self, event: Event<'a>) -> Result<(), Error> {
        let (start, end) = (event.start, event.end);
        match event.kind {
            EventKind::Scalar {
                value,
                style,
                implicit,
                properties,
            } => {
                let node = new_node(Kind::Scalar, value, style, start..end);
                self.add(TreeNode { implicit, ..node }, properties)?;
            }
            EventKind::Alias(name) => self.alias(name, start..end)?,
            EventKind::SequenceStart(style, properties) => {
                self.open(Kind::Sequence, style, properties, start..end)?;
            }
            EventKind::MappingStart(style, properties) => {
                self.open(Kind::Mapping, style, properties, start..end)?;
            }
            EventKind::SequenceEnd | EventKind::MappingEnd => self.close(end),
            EventKind::DocumentStart | EventKind::DocumentEnd | EventKind::StreamEnd => {}
        }
        Ok(())
    }

    fn alias(&mut self, name: &'a str, span: Range<ScanPosition>) -> Result<(), Error> {
        let Some(&target) = self.anchors.get(name) else {
            let name = name.to_owned();
            return Err(Problem::UnknownAnchor { name }.at(span.start.position(self.parser.skipped())));
        };
        let mut node = new_node(Kind::Alias, Cow::Borrowed(name), Style::Plain, span);
        node.first = target;
        self.add(node, Properties::default())?;
        Ok(())
    }

    fn open(
        &mut self,
        kind: Kind,
        style: Style,
        properties: Properties<'a>,
        span: Range<ScanPosition>,
    ) -> Result<(), Error> {
        if self.open.len() >= self.budget.depth {
            let (quantity, limit) = ("levels of nesting", self.budget.depth);
            return Err(Problem::Budget { quantity, limit }.at(span.start.position(self.parser.skipped())));
        }
        let id = self.add(new_node(kind, Cow::Borrowed(""), style, span), properties)?;
        self.open.push((id, NONE));
        Ok(())
    }

    /// Closes the innermost collection. A block collection has no end marker: it ends with its last child.
    fn close(&mut self, end: ScanPosition) {
        let Some((id, last)) = self.open.pop() else { return };
        let last_end = self.tree.node(last).map(|child| child.end);
        if let Some(node) = self.tree.nodes.get_mut(id as usize) {
            node.end = match (node.style, last_end) {
                (Style::Flow, _) => end,
                (_, Some(end)) => end,
                (_, None) => node.end,
            };
        }
    }

    fn add(&mut self, mut node: TreeNode<'a>, properties: Properties<'a>) -> Result<u32, Error> {
        let id = self.tree.nodes.len() as u32;
        if self.tree.nodes.len() >= self.budget.nodes {
            let (quantity, limit) = ("nodes", self.budget.nodes);
            return Err(Problem::Budget { quantity, limit }.at(node.start.position(self.parser.skipped())));
        }
        if let Some(anchor) = properties.anchor {
            self.anchors.insert(anchor, id);
        }
        node.anchor = properties.anchor;
        node.tag = properties.tag;
        self.tree.nodes.push(node);
        if let Some((parent, last)) = self.open.last_mut() {
            let before = std::mem::replace(last, id);
            let link = if before == NONE {
                self.tree
                    .nodes
                    .get_mut(*parent as usize)
                    .map(|node| &mut node.first)
            } else {
                self.tree
                    .nodes
                    .get_mut(before as usize)
                    .map(|node| &mut node.next)
            };
            if let Some(link) = link {
                *link = id;
            }
        }
        Ok(id)
    }
}

fn new_node(kind: Kind, value: Cow<'_, str>, style: Style, span: Range<ScanPosition>) -> TreeNode<'_> {
    TreeNode {
        kind,
        value,
        tag: None,
        anchor: None,
        style,
        implicit: false,
        start: span.start,
        end: span.end,
        first: NONE,
        next: NONE,
    }
}
