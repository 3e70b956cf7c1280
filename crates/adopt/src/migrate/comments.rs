//! Comments of a YAML file by the path of the entry they describe, and placing them in other text.

use std::collections::BTreeMap;

use mainstay_yaml::{Budget, Document, NodeId, NodeKind, ScalarStyle, parse_spanned};

/// The keys that lead to an entry; items of a list are `[0]`.
pub(crate) type KeyPath = Vec<String>;

/// The comments of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Comment {
    /// Whole lines above it.
    above: Vec<String>,
    /// The rest of its line.
    beside: String,
}

/// Comments of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// Lines at the top that belong to no entry.
    head: Vec<String>,
    entries: BTreeMap<KeyPath, Comment>,
}

impl Comments {
    /// Reads the comments of the first document; text that cannot be parsed has none.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let documents = parse_spanned(text, &Budget::default()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let mut comments = Self::default();
        let mut first = lines.len();
        for (path, entry) in entries(&documents) {
            let Some(line) = lines.get(entry.line.saturating_sub(1)) else {
                continue;
            };
            first = first.min(entry.line.saturating_sub(1));
            let above = if is_first(line, entry.column) {
                above(&lines, entry.line.saturating_sub(1))
            } else {
                Vec::new()
            };
            let beside = text.get(entry.rest..).map(beside).unwrap_or_default();
            if !above.is_empty() || !beside.is_empty() {
                comments.entries.insert(path, Comment { above, beside });
            }
        }
        comments.head = head(lines.get(..first).unwrap_or_default());
        comments
    }

    /// Reports whether there are no comments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.entries.is_empty()
    }

    /// Returns the comments at other paths; `moved` returns `None` for entries without a place.
    pub(crate) fn moved(&self, moved: impl Fn(&[String]) -> Option<KeyPath>) -> Self {
        let entries = self.entries.iter();
        Self {
            head: self.head.clone(),
            entries: entries
                .filter_map(|(path, comment)| Some((moved(path)?, comment.clone())))
                .collect(),
        }
    }

    /// Returns the comments that `moved` has a place for, at their places, and the others.
    pub(crate) fn split(&self, moved: impl Fn(&[String]) -> Option<KeyPath>) -> (Self, Self) {
        let taken = self.moved(&moved);
        let entries = self.entries.iter();
        let left = entries.filter(|(path, _)| moved(path).is_none());
        let rest = Self {
            head: Vec::new(),
            entries: left
                .map(|(path, comment)| (path.clone(), comment.clone()))
                .collect(),
        };
        (taken, rest)
    }

    /// Returns the comments below a key of the root.
    pub(crate) fn below(&self, key: &str) -> Self {
        let below = self.moved(|path| match path {
            [first, rest @ ..] if first == key && !rest.is_empty() => Some(rest.to_vec()),
            _ => None,
        });
        Self {
            head: Vec::new(),
            ..below
        }
    }

    /// Adds the comments of another file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.head.extend(other.head);
        self.entries.extend(other.entries);
    }

    /// Writes the comments into a block-style document; those of absent entries are omitted.
    #[must_use]
    pub fn write(&self, text: &str) -> String {
        let documents = parse_spanned(text, &Budget::default()).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        let mut places: Vec<(usize, &Comment)> = entries(&documents)
            .into_iter()
            .filter_map(|(path, entry)| Some((entry.line.saturating_sub(1), self.entries.get(&path)?)))
            .collect();
        places.sort_by_key(|(line, _)| std::cmp::Reverse(*line));
        for (at, comment) in places {
            let Some(line) = lines.get_mut(at) else { continue };
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            if !comment.beside.is_empty() {
                line.push(' ');
                line.push_str(&comment.beside);
            }
            for above in comment.above.iter().rev() {
                lines.insert(at, format!("{indent}{above}"));
            }
        }
        let head = self.head.iter().cloned();
        head.chain(lines)
            .flat_map(|line| [line, "\n".to_owned()])
            .collect()
    }
}

/// Where an entry is written.
struct Entry {
    line: usize,
    column: usize,
    /// Offset after the scalar, or after the key of a collection.
    rest: usize,
}

/// All entries of maps and items of lists of the first document.
fn entries(documents: &[Document<'_>]) -> Vec<(KeyPath, Entry)> {
    let mut found = Vec::new();
    let Some(document) = documents.first() else {
        return found;
    };
    // The parser bounds the depth; aliases are not followed.
    let mut open: Vec<(KeyPath, NodeId)> = document
        .root()
        .map(|root| (Vec::new(), root))
        .into_iter()
        .collect();
    while let Some((path, id)) = open.pop() {
        for (name, key, value) in children(document, id) {
            let mut path = path.clone();
            path.push(name);
            if let Some(entry) = entry(document, key, value) {
                found.push((path.clone(), entry));
            }
            open.push((path, value));
        }
    }
    found
}

/// Name, key and value of each child.
fn children(document: &Document<'_>, id: NodeId) -> Vec<(String, NodeId, NodeId)> {
    match document.node(id).map(|node| &node.kind) {
        Some(NodeKind::Map { entries, .. }) => entries
            .iter()
            .filter_map(|(key, value)| match &document.node(*key)?.kind {
                NodeKind::Scalar { text, .. } => Some((text.to_string(), *key, *value)),
                _ => None,
            })
            .collect(),
        Some(NodeKind::List { items, .. }) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (format!("[{index}]"), *item, *item))
            .collect(),
        _ => Vec::new(),
    }
}

fn entry(document: &Document<'_>, key: NodeId, value: NodeId) -> Option<Entry> {
    let (at, node) = (document.node(key)?.span, document.node(value)?);
    let rest = match &node.kind {
        NodeKind::Scalar {
            style: ScalarStyle::Literal | ScalarStyle::Folded,
            ..
        } => at.end.offset,
        NodeKind::Scalar { .. } => node.span.end.offset.max(at.end.offset),
        NodeKind::List { flow: true, .. } | NodeKind::Map { flow: true, .. } => node.span.end.offset,
        _ if key == value => {
            return Some(Entry {
                line: at.start.line,
                column: at.start.column,
                rest: usize::MAX,
            });
        }
        _ => at.end.offset,
    };
    Some(Entry {
        line: at.start.line,
        column: at.start.column,
        rest,
    })
}

/// Whether only indentation and list markers precede a column.
fn is_first(line: &str, column: usize) -> bool {
    line.chars()
        .take(column.saturating_sub(1))
        .all(|c| matches!(c, ' ' | '-'))
}

/// The comment lines directly above a line.
fn above(lines: &[&str], line: usize) -> Vec<String> {
    let before = lines.get(..line).unwrap_or_default().iter().rev();
    let comments = before
        .map(|line| line.trim())
        .take_while(|line| line.starts_with('#'));
    let mut above: Vec<String> = comments.map(ToOwned::to_owned).collect();
    above.reverse();
    above
}

/// The comment in the rest of a line.
fn beside(rest: &str) -> String {
    let line = rest.lines().next().unwrap_or_default().trim();
    let line = line.strip_prefix(':').unwrap_or(line).trim();
    if line.starts_with('#') {
        line.to_owned()
    } else {
        String::new()
    }
}

/// Comments at the top that a blank line separates from the first entry.
fn head(lines: &[&str]) -> Vec<String> {
    let end = lines.iter().rposition(|line| line.trim().is_empty()).unwrap_or(0);
    let top = lines.get(..end).unwrap_or_default().iter();
    top.map(|line| line.trim())
        .filter(|line| line.starts_with('#'))
        .map(ToOwned::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# owned by the platform team\n\n# two replicas\npilot: # the control plane\n  # see #12\n  \
                        autoscaleMin: 2 # at least\n  env:\n    A: \"x # y\" # quoted\n  list:\n  # first\n  - a\n  - b\n";

    #[test]
    fn comments_move_with_their_entries() {
        let comments = Comments::read(TEXT).moved(|path| {
            let mut moved = vec!["spec".to_owned(), "values".to_owned()];
            moved.extend(path.iter().cloned());
            Some(moved)
        });
        let text = "spec:\n  values:\n    pilot:\n      autoscaleMin: 2\n      env:\n        A: 'x # y'\n      \
                    list:\n        - a\n        - b\n";
        let expected = "# owned by the platform team\nspec:\n  values:\n    # two replicas\n    pilot: # the control plane\n      \
                        # see #12\n      autoscaleMin: 2 # at least\n      env:\n        A: 'x # y' # quoted\n      \
                        list:\n        # first\n        - a\n        - b\n";
        assert_eq!(comments.write(text), expected);
    }

    #[test]
    fn comments_of_absent_entries_are_omitted() {
        let comments = Comments::read("# gone\na: 1\nb: 2 # kept\n");
        assert_eq!(comments.write("b: 2\n"), "b: 2 # kept\n");
        assert!(Comments::read("a: 1\n").is_empty());
        assert!(Comments::read(": not yaml: [").is_empty());
    }
}
