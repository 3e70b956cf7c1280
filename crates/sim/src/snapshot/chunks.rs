//! Reads a list in the format of `kubectl` in chunks, so that not the whole text of a large cluster is in
//! memory.
//!
//! *Invariant:* the result equals that of parsing the whole text. A text in any other format is not read in
//! chunks.

use std::io::{BufRead, Read as _};
use std::ops::Range;

use serde_json::Value;

use super::text::{Convert, ListLine, is_separator, parse_document, parse_item, parse_items};
use crate::tree;

/// Minimum size of a chunk in bytes: it contains enough items for several threads.
pub(super) const CHUNK_SIZE: usize = 16 << 20;
/// Maximum size of the text before and of that after the items, in bytes.
const MAX_REMAINDER: u64 = 64 << 10;

/// Reads the items of a list, or returns `None` if the text is not a list of objects with their types.
pub(super) fn read_list<T: Send>(
    mut reader: impl BufRead,
    chunk_size: usize,
    convert: &Convert<'_, T>,
) -> Option<Vec<T>> {
    let mut remainder = read_head(&mut reader)?;
    let (mut objects, mut chunk) = (Vec::new(), Chunk::default());
    let (mut line, mut column) = (String::new(), None);
    while reader.read_line(&mut line).ok()? > 0 {
        let column = *column.get_or_insert(line.len() - line.trim_start_matches(' ').len());
        match ListLine::classify(&line, column) {
            ListLine::Item => {
                if chunk.text.len() >= chunk_size {
                    objects.append(&mut chunk.parse(convert)?);
                    chunk = Chunk::default();
                }
                chunk.start_item(&line);
            }
            ListLine::Content => chunk.continue_item(&line)?,
            ListLine::End => {
                remainder.push_str(&line);
                break;
            }
        }
        line.clear();
    }
    objects.append(&mut chunk.parse(convert)?);
    read_tail(&mut reader, &mut remainder)?;
    is_list(&remainder).then_some(objects)
}

/// Items of a list that are parsed together.
#[derive(Default)]
struct Chunk {
    text: String,
    items: Vec<Range<usize>>,
}

impl Chunk {
    fn start_item(&mut self, line: &str) {
        let start = self.text.len();
        self.text.push_str(line);
        self.items.push(start..self.text.len());
    }

    fn continue_item(&mut self, line: &str) -> Option<()> {
        self.text.push_str(line);
        self.items.last_mut()?.end = self.text.len();
        Some(())
    }

    /// Converts the items. Returns `None` if there are none.
    fn parse<T: Send>(&self, convert: &Convert<'_, T>) -> Option<Vec<T>> {
        self.items.first()?;
        parse_items(&self.items, &|range| {
            let object = parse_item(self.text.get(range.clone())?)?;
            has_type(&object).then(|| convert(object))
        })
    }
}

/// Whether an object has a type: that of the list is not known before its end.
fn has_type(object: &Value) -> bool {
    let has = |key| !tree::text(object, &[key]).is_empty();
    has("kind") && has("apiVersion")
}

/// Reads the text before the items.
fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    loop {
        let start = head.len();
        let rest = MAX_REMAINDER.saturating_sub(start as u64);
        reader.by_ref().take(rest).read_line(&mut head).ok()?;
        let line = head.get(start..)?;
        if line == "items:\n" {
            head.truncate(start);
            return Some(head);
        }
        if !line.ends_with('\n') {
            return None;
        }
    }
}

/// Appends the text after the items.
fn read_tail(reader: &mut impl BufRead, remainder: &mut String) -> Option<()> {
    let read = reader.by_ref().take(MAX_REMAINDER).read_to_string(remainder);
    ((read.ok()? as u64) < MAX_REMAINDER).then_some(())
}

/// Whether the text of a list without its items is one document.
fn is_list(remainder: &str) -> bool {
    let list = parse_document(remainder).unwrap_or_default();
    let is_list = tree::text(&list, &["kind"]).ends_with("List");
    is_list && list.get("items").is_none() && !remainder.lines().any(is_separator)
}

#[cfg(test)]
mod tests {
    use super::super::text::parse;
    use super::*;

    /// Reads a text in chunks of several sizes and compares it with parsing the whole text.
    fn check(text: &str, is_read: bool) {
        for size in [1, 100, CHUNK_SIZE] {
            let found = read_list(text.as_bytes(), size, &|object| object);
            assert_eq!(found.is_some(), is_read, "chunks of {size}: {text}");
            if let Some(found) = found {
                assert_eq!(found, parse(text).unwrap(), "chunks of {size}: {text}");
            }
        }
    }

    const ITEM: &str = "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n";

    fn list(items: &str) -> String {
        format!("apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n")
    }

    #[test]
    fn lists_are_read_in_chunks() {
        check(&list(ITEM), true);
        check(&list(&ITEM.repeat(5)), true);
        check(&list(&format!("{ITEM}# a note\n\n{ITEM}")), true);
        check(&list(&ITEM.replace('\n', "\r\n")), true);
        check(&list("  - apiVersion: v1\n    kind: Pod\n"), true);
        check("kind: PodList\nitems:\n- {kind: Pod, apiVersion: v1}", true);
    }

    #[test]
    fn other_texts_are_not_read_in_chunks() {
        check("", false);
        check(ITEM, false);
        check(&list(""), false);
        check(&list("- plain\n"), false);
        check(&list("- {kind: Pod}\n"), false);
        check(&list(&format!("{ITEM}  data: {{x: 'a\n- b', y: 1}}\n")), false);
        check(&list(&format!("{ITEM}---\n{ITEM}")), false);
        check(&format!("{}---\n{ITEM}", list(ITEM)), false);
        check(&format!("---\n{}", list(ITEM)), false);
        check(&list(ITEM).replace("kind: List", "kind: Menu"), false);
        check(&list(ITEM).replace("kind: List", "kind: List\nitems: []"), false);
        check(
            &format!("{}# {}\n", list(ITEM), "x".repeat(MAX_REMAINDER as usize)),
            false,
        );
        check(
            &format!("# {}\n{}", "x".repeat(MAX_REMAINDER as usize), list(ITEM)),
            false,
        );
        assert!(read_list(&b"items:\n- kind: \xff\n"[..], 1, &|object| object).is_none());
    }
}
