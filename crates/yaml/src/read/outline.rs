//! Positions of the items of one long list, and a scalar of the root. Reads events only, so the memory does
//! not depend on the length of the text, apart from the result.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check::CheckedEvents;
use super::event::{Event, EventKind};
use super::source::Source;
use super::token::{ScanPosition, Style};
use crate::{Budget, Error};

/// The items of a list that is a value of the root map of a text's only document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Whether the list is in brackets.
    pub flow: bool,
    /// The items in their order.
    pub items: Vec<OutlineItem>,
    /// Position at which the root map continues after the list: its next key, its closing brace, or the end.
    pub rest: usize,
    /// Pairs of items of which the first contains an alias of a node in the second, in the order of the
    /// aliases.
    pub references: Vec<(usize, usize)>,
    /// Anchors of those nodes with their items. No other node of the document has one of them.
    pub shared: BTreeMap<String, usize>,
}

/// Positions of one item, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlineItem {
    /// Start of the dash; of the item itself in brackets.
    pub entry: usize,
    /// Start of the item.
    pub start: usize,
    /// End of the item; the start of the next token for a block.
    pub end: usize,
}

/// Returns the items under `key`; `None` if there is no such list, if a key is repeated, or if the meaning of
/// an alias could change when other items are left out.
pub fn outline<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    key: &str,
    budget: &Budget,
) -> Result<Option<Outline>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let mut walk = Walk {
        key,
        depth: 0,
        state: State::Document,
        outline: Outline::default(),
    };
    let mut events = CheckedEvents::new(&source, budget);
    let mut supported = true;
    while let Some(event) = events.next()? {
        // The rest is read for its errors.
        supported = supported && walk.take(&event, &events, source.skipped);
    }
    let unique = |name: &String| events.anchor(name).is_some_and(|anchor| !anchor.repeated);
    let known = supported && walk.state == State::Done && walk.outline.shared.keys().all(unique);
    Ok(known.then_some(walk.outline))
}

/// Returns the text of the scalar under `key` in the root map of a text's only document; `None` if there is
/// none, or if another key could change it: the same one, or a merge.
pub fn root_scalar<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    key: &str,
    budget: &Budget,
) -> Result<Option<String>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let mut events = CheckedEvents::new(&source, budget);
    let mut root = RootWalk::default();
    while let Some(event) = events.next()? {
        root.take(&event, key);
    }
    Ok(root.found.filter(|_| !root.is_unclear))
}

/// Search for a scalar in the root map.
#[derive(Default)]
struct RootWalk {
    documents: usize,
    /// Number of open collections.
    depth: usize,
    /// Number of completed nodes of the root map.
    nodes: usize,
    /// Whether the value of the key comes next.
    is_next: bool,
    found: Option<String>,
    is_unclear: bool,
}

impl RootWalk {
    fn take(&mut self, event: &Event<'_>, key: &str) {
        match &event.kind {
            EventKind::DocumentStart => {
                self.documents += 1;
                self.is_unclear |= self.documents > 1;
            }
            EventKind::DocumentEnd | EventKind::StreamEnd => {}
            EventKind::SequenceStart(..) | EventKind::MappingStart(..) => {
                self.is_unclear |= self.depth == 0 && !matches!(event.kind, EventKind::MappingStart(..));
                self.node(None, key);
                self.depth += 1;
            }
            EventKind::SequenceEnd | EventKind::MappingEnd => self.depth = self.depth.saturating_sub(1),
            EventKind::Scalar { value, .. } => self.node(Some(value), key),
            EventKind::Alias(_) => self.node(None, key),
        }
    }

    /// Processes a node, which starts before its content; `None` for anything but a scalar.
    fn node(&mut self, scalar: Option<&str>, key: &str) {
        if self.depth != 1 {
            return;
        }
        let is_key = self.nodes.is_multiple_of(2);
        self.nodes += 1;
        if is_key {
            let is_ours = scalar == Some(key);
            self.is_unclear |= scalar.is_none_or(|name| name == "<<") || (is_ours && self.found.is_some());
            self.is_next = is_ours;
        } else if self.is_next {
            self.is_unclear |= scalar.is_none();
            self.found = scalar.map(str::to_owned);
            self.is_next = false;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the root.
    Document,
    /// A key of the root comes next; the flag is set after the list.
    Key(bool),
    /// The value of another key comes next.
    Value(bool),
    /// The value of the requested key comes next.
    List,
    /// In the list.
    Items,
    /// After the root.
    Done,
}

struct Walk<'k> {
    key: &'k str,
    /// Number of open collections.
    depth: usize,
    state: State,
    outline: Outline,
}

impl Walk<'_> {
    /// Processes one event; returns `false` if the text is not supported.
    fn take(&mut self, event: &Event<'_>, events: &CheckedEvents<'_>, skipped: usize) -> bool {
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
        let known = self.node(&event.kind, range.clone(), opens, closes);
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
            EventKind::Alias(name) => known && self.alias(name, events.target().at as usize + skipped),
            _ => known,
        }
    }

    /// Records an alias of the node at `target`; returns `false` if it is outside of the list and the node is
    /// inside.
    fn alias(&mut self, name: &str, target: usize) -> bool {
        let items = &self.outline.items;
        let Some(item) = items.partition_point(|item| item.start <= target).checked_sub(1) else {
            return true;
        };
        if self.state != State::Items {
            // After the list; the node may be there too.
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

    fn node(&mut self, kind: &EventKind<'_>, range: Range<usize>, opens: bool, closes: bool) -> bool {
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
