//! Divides a `List` into pieces and composes the text of each piece.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use mainstay_yaml::{Budget, Outline, outline};

use super::{ComposedPiece, Part};
use crate::lines;

/// A list with items that can be processed separately.
pub(super) struct List<'t> {
    text: &'t [u8],
    outline: &'t Outline,
    /// Ranges of the whole items in their order, with only separators between them.
    items: Vec<Range<usize>>,
}

/// Consecutive items of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    items: Range<usize>,
    /// Earlier items with anchors that these items refer to.
    context: BTreeSet<usize>,
}

impl<'t> List<'t> {
    /// Returns the list of `text`; `None` if its items are not on separate lines, or if required aliases
    /// cannot be added after the last item.
    pub(super) fn new(text: &'t [u8], outline: &'t Outline) -> Option<Self> {
        let items = item_ranges(text, outline)?;
        let has_shared_anchors = !outline.shared.is_empty();
        // An item can be added after a line break only.
        let can_append = outline.flow || text.get(..items.last()?.end)?.ends_with(b"\n");
        (can_append || !has_shared_anchors).then_some(Self { text, outline, items })
    }

    /// Returns the text before the first item.
    pub(super) fn head(&self) -> &'t [u8] {
        let start = self.items.first().map_or(0, |item| item.start);
        self.text.get(..start).unwrap_or_default()
    }

    fn tail(&self) -> &'t [u8] {
        let end = self.items.last().map_or(0, |item| item.end);
        self.text.get(end..).unwrap_or_default()
    }

    /// Divides the items into pieces of about `size` bytes; `None` if that has no advantage.
    pub(super) fn pieces(&self, size: usize) -> Option<Vec<Piece>> {
        // The text around the items is parsed again with each piece.
        let size = size.max(self.head().len() + self.tail().len());
        let mut pieces: Vec<Piece> = Vec::new();
        let mut len = 0;
        let mut repeated = 0;
        for (index, item) in self.items.iter().enumerate() {
            if let Some(piece) = pieces.last_mut() {
                let new = self.missing_context(index, piece);
                let more = self.len(&new);
                if len + item.len() + more <= size {
                    piece.items.end = index + 1;
                    piece.context.extend(new);
                    len += item.len() + more;
                    repeated += more;
                    continue;
                }
            }
            let mut piece = Piece {
                items: index..index + 1,
                context: BTreeSet::new(),
            };
            piece.context = self.missing_context(index, &piece);
            let context = self.len(&piece.context);
            len = item.len() + context;
            repeated += context;
            if repeated > self.text.len() {
                return None;
            }
            pieces.push(piece);
        }
        (pieces.len() > 1).then_some(pieces)
    }

    fn len(&self, items: &BTreeSet<usize>) -> usize {
        items
            .iter()
            .filter_map(|item| self.items.get(*item))
            .map(Range::len)
            .sum()
    }

    /// Returns the earlier items that an item refers to, directly or indirectly, and that `piece` does not
    /// contain yet.
    fn missing_context(&self, item: usize, piece: &Piece) -> BTreeSet<usize> {
        let contains = |item: &usize| *item >= piece.items.start || piece.context.contains(item);
        let mut missing_context = BTreeSet::new();
        let mut open = vec![item];
        while let Some(item) = open.pop() {
            let referenced_items = self.referenced_items(item).filter(|target| !contains(target));
            open.extend(referenced_items.filter(|target| missing_context.insert(*target)));
        }
        missing_context
    }

    /// Returns the items with anchors that an item refers to directly.
    fn referenced_items(&self, item: usize) -> impl Iterator<Item = usize> + '_ {
        let references = &self.outline.references;
        let first = references.partition_point(|(user, _)| *user < item);
        let own = references.iter().skip(first);
        own.take_while(move |(user, _)| *user == item)
            .map(|(_, target)| *target)
    }

    /// Whether item `index` of the composed list belongs to the piece itself and not to its context.
    pub(super) fn owns(piece: &Piece, index: usize) -> bool {
        let first = piece.context.len();
        (first..first + piece.items.len()).contains(&index)
    }

    /// Returns the range of the items of a piece in the document.
    pub(super) fn range(&self, piece: &Piece) -> Option<Range<usize>> {
        let items = self.items.get(piece.items.clone())?;
        Some(items.first()?.start..items.last()?.end)
    }

    /// Composes the separate list of a piece.
    pub(super) fn compose(&self, piece: &Piece) -> Option<ComposedPiece> {
        let (range, tail) = (self.range(piece)?, self.tail());
        let mut text = self.head().to_vec();
        let mut parts = Vec::new();
        for item in &piece.context {
            let range = self.items.get(*item)?.clone();
            parts.push(Part::new(&text, &range));
            text.extend_from_slice(self.text.get(range)?);
            if self.outline.flow {
                text.extend_from_slice(b", ");
            }
        }
        parts.push(Part::new(&text, &range));
        text.extend_from_slice(self.text.get(range)?);
        let end = text.len();
        text.extend_from_slice(self.aliases(piece)?.as_bytes());
        text.extend_from_slice(tail);
        Some(ComposedPiece {
            tail: text.len() - end,
            text,
            parts,
        })
    }

    /// Returns an additional item for each anchor of the piece that other items refer to. It is a list with
    /// an alias, which is not processed as an object.
    fn aliases(&self, piece: &Piece) -> Option<String> {
        let mut aliases = String::new();
        let shared = self.outline.shared.iter();
        for (name, _) in shared.filter(|(_, item)| piece.items.contains(item)) {
            if self.outline.flow {
                let _ = write!(aliases, ", [*{name}]");
            } else {
                let first = self.outline.items.first()?.entry;
                let column = first - lines::start(self.text, first);
                let _ = writeln!(aliases, "{:column$}- [*{name}]", "");
            }
        }
        Some(aliases)
    }

    /// Returns the items of a piece in `new`, the processed text of `composed`.
    pub(super) fn items_of<'n>(
        &self,
        piece: &Piece,
        composed: &ComposedPiece,
        new: &'n [u8],
    ) -> Option<&'n [u8]> {
        if piece.context.is_empty() {
            let end = new.len().checked_sub(composed.tail)?;
            let same_end = new.get(end..) == composed.text.get(composed.text.len() - composed.tail..);
            let items = new.get(..end).filter(|_| same_end)?;
            return items.strip_prefix(self.head());
        }
        let outline = outline(new, "items", &Budget::default()).ok()??;
        let items = item_ranges(new, &outline)?;
        let own = items.get(piece.context.len()..)?.get(..piece.items.len())?;
        new.get(own.first()?.start..own.last()?.end)
    }
}

/// Returns the ranges of whole items: their lines in block style, the items themselves in flow style.
fn item_ranges(text: &[u8], outline: &Outline) -> Option<Vec<Range<usize>>> {
    if outline.flow {
        return Some(outline.items.iter().map(|item| item.start..item.end).collect());
    }
    let mut starts = Vec::with_capacity(outline.items.len() + 1);
    for item in &outline.items {
        starts.push(lines::start_of_own_line(text, item.entry)?);
    }
    starts.push(if outline.rest >= text.len() {
        text.len()
    } else {
        lines::start(text, outline.rest)
    });
    let pairs = starts.iter().zip(starts.iter().skip(1));
    Some(pairs.map(|(start, end)| *start..*end).collect())
}
