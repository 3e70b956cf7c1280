//! Syntax check without a tree: applies the same limits and anchor rules as composition, event by event.

use std::collections::HashMap;

use super::event::{Event, EventKind, Parser};
use super::scan::Scanner;
use super::source::Source;
use super::token::ScanPosition;
use crate::{Budget, Error, Problem};

/// Checks that every document of `text` parses. The memory does not depend on the length of the text.
pub fn check_syntax(text: impl AsRef<[u8]>, budget: &Budget) -> Result<(), Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let mut events = CheckedEvents::new(&source, budget);
    while events.next()?.is_some() {}
    Ok(())
}

/// Events of a text, with the same errors as [`compose`](super::compose) in the same order.
pub(super) struct CheckedEvents<'a> {
    parser: Parser<'a>,
    budget: Budget,
    /// For each anchor of the current document, the last node with this anchor.
    anchors: HashMap<&'a str, Anchored>,
    /// Node that the last alias refers to.
    target: Anchored,
    nodes: usize,
    depth: usize,
    documents: usize,
}

/// A node with an anchor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Anchored {
    /// Offset of the node in the scanned text.
    pub(super) at: u32,
    /// Whether an earlier node of the document has the same anchor.
    pub(super) repeated: bool,
}

impl<'a> CheckedEvents<'a> {
    pub(super) fn new(source: &'a Source<'_>, budget: &Budget) -> Self {
        let scanner = Scanner::new(source.scanned(), source.skipped, source.failure);
        Self {
            parser: Parser::new(scanner),
            budget: *budget,
            anchors: HashMap::new(),
            target: Anchored::default(),
            nodes: 0,
            depth: 0,
            documents: 0,
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(super) fn next(&mut self) -> Result<Option<Event<'a>>, Error> {
        let event = self.parser.next()?;
        match &event.kind {
            EventKind::StreamEnd => return Ok(None),
            EventKind::DocumentStart => {
                self.anchors.clear();
                self.nodes = 0;
            }
            EventKind::DocumentEnd => self.end_document()?,
            EventKind::Alias(name) => {
                let Some(target) = self.anchors.get(name) else {
                    let name = (*name).to_owned();
                    return Err(self.error(Problem::UnknownAnchor { name }, event.start));
                };
                self.target = *target;
                self.count_node(event.start)?;
            }
            EventKind::Scalar { properties, .. } => {
                self.count_node(event.start)?;
                self.define_anchor(properties.anchor, event.start);
            }
            EventKind::SequenceStart(_, properties) | EventKind::MappingStart(_, properties) => {
                self.enter_collection(event.start)?;
                self.count_node(event.start)?;
                self.define_anchor(properties.anchor, event.start);
            }
            EventKind::SequenceEnd | EventKind::MappingEnd => self.depth = self.depth.saturating_sub(1),
        }
        Ok(Some(event))
    }

    /// Returns the node that the last alias refers to.
    pub(super) fn target(&self) -> Anchored {
        self.target
    }

    /// Returns the start of the last `-` of a block list.
    pub(super) fn entry(&self) -> ScanPosition {
        self.parser.entry()
    }

    /// Returns the last node with the anchor `name`.
    pub(super) fn anchor(&self, name: &str) -> Option<Anchored> {
        self.anchors.get(name).copied()
    }

    fn define_anchor(&mut self, anchor: Option<&'a str>, start: ScanPosition) {
        if let Some(anchor) = anchor {
            let repeated = self.anchors.contains_key(anchor);
            let at = start.at;
            self.anchors.insert(anchor, Anchored { at, repeated });
        }
    }

    fn end_document(&mut self) -> Result<(), Error> {
        self.documents += 1;
        if self.documents > self.budget.documents {
            let (quantity, limit) = ("documents", self.budget.documents);
            return Err(Problem::Budget { quantity, limit }.at(ScanPosition::default().position(0)));
        }
        Ok(())
    }

    fn enter_collection(&mut self, start: ScanPosition) -> Result<(), Error> {
        if self.depth >= self.budget.depth {
            let (quantity, limit) = ("levels of nesting", self.budget.depth);
            return Err(self.error(Problem::Budget { quantity, limit }, start));
        }
        self.depth += 1;
        Ok(())
    }

    fn count_node(&mut self, start: ScanPosition) -> Result<(), Error> {
        if self.nodes >= self.budget.nodes {
            let (quantity, limit) = ("nodes", self.budget.nodes);
            return Err(self.error(Problem::Budget { quantity, limit }, start));
        }
        self.nodes += 1;
        Ok(())
    }

    fn error(&self, problem: Problem, start: ScanPosition) -> Error {
        problem.at(start.position(self.parser.skipped()))
    }
}
