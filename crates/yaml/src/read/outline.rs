//! Positions of the items of one long list. Reads events only, so the memory does not depend on the length of
//! the text, apart from the result.

use std::ops::Range;

use super::event::{EventKind, Parser};
use super::scan::Scanner;
use super::source::Source;
use super::token::{ScanPosition, Style};
use crate::{Budget, Error};

/// The items of a list that is a value of the root map of a text's only document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Whether the list is in brackets.
    pub flow: bool,
    /// Start and end of each item, in bytes; the end of a block is the start of the next token.
    pub items: Vec<(usize, usize)>,
    /// Position at which the root map continues after the list: its next key, its closing brace, or the end.
    pub rest: usize,
}

/// Returns the items under `key`; `None` if there is no such list, if a key is repeated, or if the text
/// contains an anchor, an alias or a tag: then the meaning of an item may depend on others.
pub fn outline<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    key: &str,
    budget: &Budget,
) -> Result<Option<Outline>, Error> {
    let source = Source::new(text.as_ref(), budget)?;
    let scanner = Scanner::new(&source.text, source.skipped, source.failure);
    let mut walk = Walk {
        key,
        depth: 0,
        state: State::Document,
        outline: Outline::default(),
    };
    let mut parser = Parser::new(scanner);
    loop {
        let event = parser.next()?;
        if matches!(event.kind, EventKind::StreamEnd) {
            break;
        }
        if !walk.take(&event.kind, event.start, event.end, source.skipped) {
            return Ok(None);
        }
    }
    Ok((walk.state == State::Done).then_some(walk.outline))
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
    fn take(&mut self, kind: &EventKind<'_>, start: ScanPosition, end: ScanPosition, skipped: usize) -> bool {
        let (start, end) = (start.at as usize + skipped, end.at as usize + skipped);
        let (opens, closes) = match kind {
            EventKind::Alias(_) => return false,
            EventKind::Scalar { properties, .. }
            | EventKind::SequenceStart(_, properties)
            | EventKind::MappingStart(_, properties)
                if properties.anchor.is_some() || properties.tag.is_some() =>
            {
                return false;
            }
            EventKind::SequenceStart(..) | EventKind::MappingStart(..) => (true, false),
            EventKind::SequenceEnd | EventKind::MappingEnd => (false, true),
            EventKind::Scalar { .. } => (false, false),
            EventKind::DocumentStart => return self.state == State::Document,
            EventKind::DocumentEnd | EventKind::StreamEnd => return true,
        };
        self.depth -= usize::from(closes);
        let known = self.node(kind, start..end, opens, closes);
        self.depth += usize::from(opens);
        known
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
                    Some(last) => last.1 = range.end,
                    None => self.outline.items.push((range.start, range.end)),
                }
                true
            }
            (State::Value(_) | State::Items, _) => true,
            _ => false,
        }
    }
}
