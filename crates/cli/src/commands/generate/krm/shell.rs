//! A `ResourceList` without its items, whose size does not depend on the number of items.

use std::borrow::Cow;
use std::ops::Range;

use mainstay_yaml::{Budget, Document, NodeId, NodeKind, Outline, outline, parse_spanned};

use super::results::{self, Item};

/// Scalar in place of all items.
const PLACEHOLDER: &str = "items-of-the-resource-list";

/// A list with a placeholder for its items.
pub(super) struct Shell<'t> {
    original: &'t [u8],
    /// The list with the placeholder, or the whole list if its items cannot be separated from it.
    pub(super) text: Cow<'t, [u8]>,
    /// Range of the items in the original.
    range: Option<Range<usize>>,
    /// The items with their files.
    pub(super) items: Vec<Item>,
}

impl<'t> Shell<'t> {
    /// Separates the items of a single `ResourceList`; `None` for any other text.
    pub(super) fn new(original: &'t [u8]) -> Option<Self> {
        let shell = Self::without_items(original).or_else(|| Self::whole(original))?;
        is_resource_list(&shell.text).then_some(shell)
    }

    fn whole(original: &'t [u8]) -> Option<Self> {
        let documents = parse_spanned(original, &Budget::default()).ok()?;
        let list = documents.first()?;
        let node = list.find(&["items"]).and_then(|id| list.node(id));
        let items = match node.map(|node| &node.kind) {
            Some(NodeKind::List { items, .. }) => items.as_slice(),
            _ => &[],
        };
        Some(Self {
            original,
            text: Cow::Borrowed(original),
            range: None,
            items: items.iter().filter_map(|id| Item::new(list, *id, 0)).collect(),
        })
    }

    /// Reads one item at a time. `None` if that is not possible, for instance because of an alias.
    fn without_items(original: &'t [u8]) -> Option<Self> {
        if super::contains(original, PLACEHOLDER.as_bytes()) {
            return None;
        }
        let outline = outline(original, "items", &Budget::default()).ok()??;
        let mut items = Vec::with_capacity(outline.items.len());
        for index in 0..outline.items.len() {
            items.push(item(original, &outline, index)?);
        }
        let range = items.first()?.range.start..items.last()?.range.end;
        let mut text = original.get(..range.start)?.to_vec();
        text.extend_from_slice(PLACEHOLDER.as_bytes());
        if original.get(range.clone())?.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(original.get(range.end..)?);
        Some(Self {
            original,
            text: Cow::Owned(text),
            range: Some(range),
            items,
        })
    }

    /// Returns `new`, an edited shell, with its items; `None` if `new` has no placeholder
    /// for them.
    pub(super) fn restored(&self, new: &[u8]) -> Option<Vec<u8>> {
        let Some(range) = &self.range else {
            return Some(new.to_vec());
        };
        let items = self.original.get(range.clone())?;
        let at = memchr::memmem::find(new, PLACEHOLDER.as_bytes())?;
        let mut rest = new.get(at + PLACEHOLDER.len()..)?;
        if items.ends_with(b"\n") {
            rest = rest.strip_prefix(b"\n")?;
        }
        Some([new.get(..at)?, items, rest].concat())
    }
}

/// Whether `text` is a single `ResourceList`.
fn is_resource_list(text: &[u8]) -> bool {
    let documents = parse_spanned(text, &Budget::default()).unwrap_or_default();
    let Some(document) = only(&documents) else {
        return false;
    };
    let is =
        |key, wanted: fn(&str) -> bool| results::scalar(document, document.find(&[key])).is_some_and(wanted);
    is("kind", |kind| kind == "ResourceList")
        && is("apiVersion", |it| it.starts_with("config.kubernetes.io/"))
}

/// Parses the item with this index as a separate document.
fn item(text: &[u8], outline: &Outline, index: usize) -> Option<Item> {
    let place = outline.items.get(index)?;
    if outline.flow {
        let documents = parse_spanned(text.get(place.start..place.end)?, &Budget::default()).ok()?;
        let document = only(&documents)?;
        return Item::new(document, document.root()?, place.start);
    }
    let line = |at: usize| {
        let before = text.get(..at)?;
        Some(memchr::memrchr(b'\n', before).map_or(0, |at| at + 1))
    };
    let start = line(place.entry)?;
    let end = match outline.items.get(index + 1) {
        Some(next) => line(next.entry)?,
        None if outline.rest >= text.len() => text.len(),
        None => line(outline.rest)?,
    };
    let documents = parse_spanned(text.get(start..end)?, &Budget::default()).ok()?;
    let document = only(&documents)?;
    // Only an item on its own lines is a list by itself.
    match &document.node(document.root()?)?.kind {
        NodeKind::List { items, flow: false } if items.len() == 1 => {
            Item::new(document, *items.first()?, start)
        }
        _ => None,
    }
}

fn only<'d, 'a>(documents: &'d [Document<'a>]) -> Option<&'d Document<'a>> {
    match documents {
        [document] => Some(document),
        _ => None,
    }
}

impl Item {
    /// Creates the item `id` of a document that starts at `base`.
    fn new(document: &Document<'_>, id: NodeId, base: usize) -> Option<Self> {
        let span = document.node(id)?.span;
        Some(Self {
            range: base + span.start.offset..base + span.end.offset,
            file: results::file(document, id),
        })
    }
}
