//! A `ResourceList` without its items, which may be long: everything else of it is short.

use std::borrow::Cow;
use std::ops::Range;

use mainstay_yaml::{Budget, Outline, OutlineItem, outline};

/// A list and its text without items.
pub(super) struct Frame<'t> {
    text: &'t [u8],
    /// The items, if they can be left out.
    items: Range<usize>,
    short: Cow<'t, [u8]>,
}

impl<'t> Frame<'t> {
    /// Leaves out the items of `text`; a text in another layout stays whole.
    pub(super) fn new(text: &'t [u8]) -> Self {
        let items = outline(text, "items", &Budget::default()).ok().flatten();
        let Some(items) = items.and_then(|outline| all_items(text, &outline)) else {
            return Self {
                text,
                items: 0..0,
                short: Cow::Borrowed(text),
            };
        };
        let before = text.get(..items.start).unwrap_or_default();
        let behind = text.get(items.end..).unwrap_or_default();
        Self {
            text,
            short: Cow::Owned([before, behind].concat()),
            items,
        }
    }

    /// Returns the text without items.
    pub(super) fn short(&self) -> &[u8] {
        &self.short
    }

    /// Returns `new`, which has additions on one side of the items, with the items; `None` if that is not the
    /// same list any more.
    pub(super) fn with_items(&self, new: Vec<u8>) -> Option<Vec<u8>> {
        if self.items.is_empty() {
            return Some(new);
        }
        let before = self.text.get(..self.items.start)?;
        let behind = self.text.get(self.items.end..)?;
        let at = if new.starts_with(before) {
            before.len()
        } else {
            new.strip_suffix(behind)?.len()
        };
        let items = self.text.get(self.items.clone())?;
        let whole = [new.get(..at)?, items, new.get(at..)?].concat();
        let found = outline(&whole, "items", &Budget::default()).ok()??;
        (all_items(&whole, &found)? == (at..at + items.len())).then_some(whole)
    }
}

/// Returns where the items are, with their lines; `None` if there are none or lines contain more.
fn all_items(text: &[u8], outline: &Outline) -> Option<Range<usize>> {
    let (first, last) = (outline.items.first()?, outline.items.last()?);
    if outline.flow {
        return Some(first.start..last.end);
    }
    let end = line_start(text, outline.rest.min(text.len()));
    let end = if outline.rest >= text.len() {
        text.len()
    } else {
        end
    };
    let items = item_lines(text, first, end)?;
    text.get(items.clone())?.ends_with(b"\n").then_some(items)
}

/// Returns the lines of an item that ends at `end`; `None` if its dash is not the first on its line.
pub(super) fn item_lines(text: &[u8], item: &OutlineItem, end: usize) -> Option<Range<usize>> {
    let start = line_start(text, item.entry);
    let indentation = text.get(start..item.entry)?;
    (indentation.trim_ascii().is_empty() && start <= end).then_some(start..end)
}

fn line_start(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    memchr::memrchr(b'\n', before).map_or(0, |found| found + 1)
}
