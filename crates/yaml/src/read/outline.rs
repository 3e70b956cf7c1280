//! Where the items of one long list are: takes a text, gives their places. Reads events only, so that a text of any length
//! costs no memory but that of the answer.

use super::event::{EventKind, Parser};
use super::scan::Scanner;
use super::source::Source;
use super::token::{Place, Style};
use crate::{Budget, Error};

/// The items of a list that is a value of the root map of a text's only document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Whether the list is in brackets.
    pub flow: bool,
    /// Where each item starts and ends, in bytes; a block's end is where the next token is.
    pub items: Vec<(usize, usize)>,
    /// Where the root map goes on behind the list: its next key, what closes it, or the end.
    pub rest: usize,
}

/// The items under `key`; `None` if there is no such list, if a key is given twice, or if anything in the text is an anchor, an
/// alias or a tag: then what an item means may depend on the others.
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
        at: At::Document,
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
    Ok((walk.at == At::Done).then_some(walk.outline))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the root.
    Document,
    /// A key of the root comes next; whether the list is behind us.
    Key(bool),
    /// The value of a key that is not ours comes next.
    Value(bool),
    /// The value of our key comes next.
    List,
    /// In the list.
    Items,
    /// Behind the root.
    Done,
}

struct Walk<'k> {
    key: &'k str,
    /// Open collections.
    depth: usize,
    at: At,
    outline: Outline,
}

impl Walk<'_> {
    /// Goes on with one event; false if the text is of another kind.
    fn take(&mut self, kind: &EventKind<'_>, start: Place, end: Place, skipped: usize) -> bool {
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
            EventKind::DocumentStart => return self.at == At::Document,
            EventKind::DocumentEnd | EventKind::StreamEnd => return true,
        };
        self.depth -= usize::from(closes);
        let known = self.node(kind, (start, end), opens, closes);
        self.depth += usize::from(opens);
        known
    }

    fn node(
        &mut self,
        kind: &EventKind<'_>,
        (start, end): (usize, usize),
        opens: bool,
        closes: bool,
    ) -> bool {
        match (self.at, self.depth) {
            (At::Document, 0) => {
                self.at = At::Key(false);
                matches!(kind, EventKind::MappingStart(..))
            }
            (At::Key(found), 0) => {
                self.at = At::Done;
                if found && self.outline.rest == 0 {
                    self.outline.rest = start;
                }
                found && closes
            }
            (At::Key(found), 1) => {
                let EventKind::Scalar { value, .. } = kind else {
                    return false;
                };
                let ours = value == self.key;
                if found && self.outline.rest == 0 {
                    self.outline.rest = start;
                }
                self.at = if ours { At::List } else { At::Value(found) };
                !(ours && found)
            }
            // A scalar, or the end of a collection: the value is read.
            (At::Value(found), 1) => {
                if !opens {
                    self.at = At::Key(found);
                }
                true
            }
            (At::List, 1) => {
                self.at = At::Items;
                self.outline.flow = matches!(kind, EventKind::SequenceStart(Style::Flow, _));
                matches!(kind, EventKind::SequenceStart(..))
            }
            (At::Items, 1) => {
                self.at = At::Key(true);
                true
            }
            (At::Items, 2) => {
                match self.outline.items.last_mut().filter(|_| closes) {
                    Some(last) => last.1 = end,
                    None => self.outline.items.push((start, end)),
                }
                true
            }
            (At::Value(_) | At::Items, _) => true,
            _ => false,
        }
    }
}
