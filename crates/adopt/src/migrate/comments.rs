//! Reads the comments of a YAML file with the paths of the entries that they describe, and writes them
//! into another document.

use std::collections::BTreeMap;

use mainstay_yaml::{Budget, Document, NodeId, NodeKind, ScalarStyle, parse_spanned};

/// Path of an entry. Items of a list are written as `[0]`.
pub(crate) type KeyPath = Vec<String>;

/// Comments of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Comment {
    /// Comment lines above the entry.
    above: Vec<String>,
    /// Comment at the end of the line; empty if there is none.
    trailing: String,
}

/// Comments of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comments {
    /// Comment lines at the top that belong to no entry.
    head: Vec<String>,
    entries: BTreeMap<KeyPath, Comment>,
}

impl Comments {
    /// Reads the comments of the first document. Text that cannot be parsed has none.
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
            let above = if is_first_on_line(line, entry.column) {
                comments_above(&lines, entry.line.saturating_sub(1))
            } else {
                Vec::new()
            };
            let trailing = text.get(entry.end..).map(trailing_comment).unwrap_or_default();
            if !above.is_empty() || !trailing.is_empty() {
                comments.entries.insert(path, Comment { above, trailing });
            }
        }
        comments.head = head_comments(lines.get(..first).unwrap_or_default());
        comments
    }

    /// Whether there are no comments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.entries.is_empty()
    }

    /// Returns the comments at new paths. `new_path` returns the new path of an entry, or `None` to drop
    /// its comments.
    pub(crate) fn map_paths(&self, new_path: impl Fn(&[String]) -> Option<KeyPath>) -> Self {
        let entries = self.entries.iter();
        Self {
            head: self.head.clone(),
            entries: entries
                .filter_map(|(path, comment)| Some((new_path(path)?, comment.clone())))
                .collect(),
        }
    }

    /// Returns the comments for which `new_path` returns a path, at these paths, and all other comments.
    pub(crate) fn split(&self, new_path: impl Fn(&[String]) -> Option<KeyPath>) -> (Self, Self) {
        let taken = self.map_paths(&new_path);
        let entries = self.entries.iter();
        let left = entries.filter(|(path, _)| new_path(path).is_none());
        let rest = Self {
            head: Vec::new(),
            entries: left
                .map(|(path, comment)| (path.clone(), comment.clone()))
                .collect(),
        };
        (taken, rest)
    }

    /// Returns the comments of the entries below a top-level key.
    pub(crate) fn below(&self, key: &str) -> Self {
        let below = self.map_paths(|path| match path {
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

    /// Returns a block-style document with the comments inserted. Comments of absent entries are omitted.
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
            if !comment.trailing.is_empty() {
                line.push(' ');
                line.push_str(&comment.trailing);
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

/// Position of an entry in the text.
struct Entry {
    line: usize,
    column: usize,
    /// Byte offset after the scalar, or after the key of a collection.
    end: usize,
}

/// Returns all entries of maps and items of lists of the first document.
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

/// Returns name, key and value of each child of a node.
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
    let end = match &node.kind {
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
                end: usize::MAX,
            });
        }
        _ => at.end.offset,
    };
    Some(Entry {
        line: at.start.line,
        column: at.start.column,
        end,
    })
}

/// Whether only spaces and list markers precede a column.
fn is_first_on_line(line: &str, column: usize) -> bool {
    line.chars()
        .take(column.saturating_sub(1))
        .all(|c| matches!(c, ' ' | '-'))
}

/// Returns the comment lines directly above a line.
fn comments_above(lines: &[&str], line: usize) -> Vec<String> {
    let before = lines.get(..line).unwrap_or_default().iter().rev();
    let comments = before
        .map(|line| line.trim())
        .take_while(|line| line.starts_with('#'));
    let mut above: Vec<String> = comments.map(ToOwned::to_owned).collect();
    above.reverse();
    above
}

/// Returns the comment in the rest of a line; empty if there is none.
fn trailing_comment(rest: &str) -> String {
    let line = rest.lines().next().unwrap_or_default().trim();
    let line = line.strip_prefix(':').unwrap_or(line).trim();
    if line.starts_with('#') {
        line.to_owned()
    } else {
        String::new()
    }
}

/// Returns the comments at the top that a blank line separates from the first entry.
fn head_comments(lines: &[&str]) -> Vec<String> {
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
        let comments = Comments::read(TEXT).map_paths(|path| {
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
