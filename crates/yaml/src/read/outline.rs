//! Positions of the items of one long list, and a scalar of the root. Processes events only, so that the
//! memory does not depend on the length of the text, apart from the result.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check::CheckedEvents;
use super::event::{Event, EventKind};
use super::source::Source;
use super::token::{ScanPosition, Style};
use crate::{Budget, Error};

/// Items of a list that is a value in the root map of the only document of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Whether the list is in brackets.
    pub flow: bool,
    /// Items in the order of the text.
    pub items: Vec<OutlineItem>,
    /// Byte offset at which the root map continues after the list: its next key, its closing brace, or the
    /// end.
    pub rest: usize,
    /// Pairs of items: the first contains an alias of a node in the second. In the order of the aliases.
    pub references: Vec<(usize, usize)>,
    /// Anchors of these nodes, with the index of the item that contains the node. No other node of the
    /// document has one of these anchors.
    pub shared: BTreeMap<String, usize>,
}

/// Byte offsets of one item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlineItem {
    /// Start of the dash, or of the item itself if the list is in brackets.
    pub entry: usize,
    /// Start of the item.
    pub start: usize,
    /// End of the item. For a block collection, the start of the next token.
    pub end: usize,
}

/// Returns the items of the list under `key`. Returns `None` if there is no such list, if a key is
/// repeated, or if the meaning of an alias could change when other items are left out.
pub fn outline<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    key: &str,
    budget: &Budget,
) -> Result<Option<Outline>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let mut builder = OutlineBuilder {
        key,
        depth: 0,
        state: State::Document,
        outline: Outline::default(),
    };
    let mut events = CheckedEvents::new(&source, budget);
    let mut supported = true;
    while let Some(event) = events.next()? {
        // The remaining events are read for their errors.
        supported = supported && builder.process_event(&event, &events, source.skipped);
    }
    let unique = |name: &String| events.anchor(name).is_some_and(|anchor| !anchor.repeated);
    let known = supported && builder.state == State::Done && builder.outline.shared.keys().all(unique);
    Ok(known.then_some(builder.outline))
}

/// Returns the text of the scalar under `key` in the root map of the only document of a text. Returns
/// `None` if there is no such scalar, or if another key could change it: an equal key, or a merge.
pub fn root_scalar<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    key: &str,
    budget: &Budget,
) -> Result<Option<String>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let mut events = CheckedEvents::new(&source, budget);
    let mut root = RootScalarSearch::default();
    while let Some(event) = events.next()? {
        root.process_event(&event, key);
    }
    Ok(root.found.filter(|_| !root.is_ambiguous))
}

/// State of the search for a scalar in the root map.
#[derive(Default)]
struct RootScalarSearch {
    documents: usize,
    /// Number of open collections.
    depth: usize,
    /// Number of nodes of the root map so far.
    nodes: usize,
    /// Whether the next node of the root map is the value of the key.
    is_next: bool,
    found: Option<String>,
    is_ambiguous: bool,
}

impl RootScalarSearch {
    fn process_event(&mut self, event: &Event<'_>, key: &str) {
        match &event.kind {
            EventKind::DocumentStart => {
                self.documents += 1;
                self.is_ambiguous |= self.documents > 1;
            }
            EventKind::DocumentEnd | EventKind::StreamEnd => {}
            EventKind::SequenceStart(..) | EventKind::MappingStart(..) => {
                self.is_ambiguous |= self.depth == 0 && !matches!(event.kind, EventKind::MappingStart(..));
                self.process_node(None, key);
                self.depth += 1;
            }
            EventKind::SequenceEnd | EventKind::MappingEnd => self.depth = self.depth.saturating_sub(1),
            EventKind::Scalar { value, .. } => self.process_node(Some(value), key),
            EventKind::Alias(_) => self.process_node(None, key),
        }
    }

    /// Processes a node, before its content. `scalar` is `None` if the node is not a scalar.
    fn process_node(&mut self, scalar: Option<&str>, key: &str) {
        if self.depth != 1 {
            return;
        }
        let is_key = self.nodes.is_multiple_of(2);
        self.nodes += 1;
        if is_key {
            let is_ours = scalar == Some(key);
            self.is_ambiguous |= scalar.is_none_or(|name| name == "<<") || (is_ours && self.found.is_some());
            self.is_next = is_ours;
        } else if self.is_next {
            self.is_ambiguous |= scalar.is_none();
            self.found = scalar.map(str::to_owned);
            self.is_next = false;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the root.
    Document,
    /// Before a key of the root. The flag is set after the list.
    Key(bool),
    /// Before or in the value of another key.
    Value(bool),
    /// Before the value of the requested key.
    List,
    /// In the list.
    Items,
    /// After the root.
    Done,
}

struct OutlineBuilder<'k> {
    key: &'k str,
    /// Number of open collections.
    depth: usize,
    state: State,
    outline: Outline,
}

impl OutlineBuilder<'_> {
    /// Processes one event. Returns `false` if the text is not supported.
    fn process_event(&mut self, event: &Event<'_>, events: &CheckedEvents<'_>, skipped: usize) -> bool {
        let offset = |position: ScanPosition| position.at as usize + skipped;
        let (opens, closes) = match &event.kind {
            EventKind::SequenceStart(..) | EventKind::MappingStart(..) => (true, false),
            EventKind::SequenceEnd | EventKind::MappingEnd => (false, true),
            EventKind::Scalar { .. } | EventKind::Alias(_) => (false, false),
            EventKind::DocumentStart => return self.state == State::Document,
            EventKind::DocumentEnd | EventKind::StreamEnd => return true,
        };
        self.depth -= usize::from(closes);
        let starts_item = self.state == State::Items && self.depth == 2 && !closes;
        let range = offset(event.start)..offset(event.end);
        let known = self.process_node(&event.kind, range.clone(), opens, closes);
        self.depth += usize::from(opens);
        if let Some(item) = self
            .outline
            .items
            .last_mut()
            .filter(|_| starts_item && !self.outline.flow)
        {
            item.entry = offset(events.entry());
        }
        match &event.kind {
            EventKind::Alias(name) => known && self.record_alias(name, events.target().at as usize + skipped),
            _ => known,
        }
    }

    /// Records an alias of the node at `target`. Returns `false` if the alias is outside of the list and
    /// the node is inside.
    fn record_alias(&mut self, name: &str, target: usize) -> bool {
        let items = &self.outline.items;
        let Some(item) = items.partition_point(|item| item.start <= target).checked_sub(1) else {
            return true;
        };
        if self.state != State::Items {
            // After the list. The node may also be after the list.
            return self.outline.rest != 0 && target >= self.outline.rest;
        }
        let here = items.len() - 1;
        if item != here {
            if self.outline.references.last() != Some(&(here, item)) {
                self.outline.references.push((here, item));
            }
            self.outline.shared.insert(name.to_owned(), item);
        }
        true
    }

    fn process_node(&mut self, kind: &EventKind<'_>, range: Range<usize>, opens: bool, closes: bool) -> bool {
        match (self.state, self.depth) {
            (State::Document, 0) => {
                self.state = State::Key(false);
                matches!(kind, EventKind::MappingStart(..))
            }
            (State::Key(found), 0) => {
                self.state = State::Done;
                if found && self.outline.rest == 0 {
                    self.outline.rest = range.start;
                }
                found && closes
            }
            (State::Key(found), 1) => {
                let EventKind::Scalar { value, .. } = kind else {
                    return false;
                };
                let ours = value == self.key;
                if found && self.outline.rest == 0 {
                    self.outline.rest = range.start;
                }
                self.state = if ours { State::List } else { State::Value(found) };
                !(ours && found)
            }
            // A scalar, or the end of a collection: the value is complete.
            (State::Value(found), 1) => {
                if !opens {
                    self.state = State::Key(found);
                }
                true
            }
            (State::List, 1) => {
                self.state = State::Items;
                self.outline.flow = matches!(kind, EventKind::SequenceStart(Style::Flow, _));
                matches!(kind, EventKind::SequenceStart(..))
            }
            (State::Items, 1) => {
                self.state = State::Key(true);
                true
            }
            (State::Items, 2) => {
                match self.outline.items.last_mut().filter(|_| closes) {
                    Some(last) => last.end = range.end,
                    None => self.outline.items.push(OutlineItem {
                        entry: range.start,
                        start: range.start,
                        end: range.end,
                    }),
                }
                true
            }
            (State::Value(_) | State::Items, _) => true,
            _ => false,
        }
    }
}
