//! Parses `-f` files and profiles into layers that record the position of every node.

use mainstay_yaml::{
    Document, Error, Map, NodeId, NodeKind, Operation, Position, SpannedValue, Value, parse_spanned_values,
};

use crate::diagnostic::{Diagnostic, Location};
use crate::limits::input_budget;
use crate::path::{Path, Segment, Selector, describe_kind, scalar_text};

/// A file with an `IstioOperator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Name in messages.
    pub name: String,
    /// Content.
    pub text: Vec<u8>,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    name: String,
    lines: Lines,
    document: Document<'static>,
    /// Parsed content. All numbers are floats, as in istioctl.
    pub(crate) value: Map,
}

impl Layer {
    /// Parses a file that contains at most one `IstioOperator`. An empty file is an empty layer.
    pub(crate) fn parse(file: &InputFile) -> Result<Self, Box<Diagnostic>> {
        let failed = |error: &Error| Box::new(syntax_error(file, error));
        let documents = parse_spanned_values(&file.text, &input_budget()).map_err(|error| failed(&error))?;
        let mut objects = documents.into_iter().filter(|one| is_object(&one.document));
        let first = objects.next();
        if let Some(second) = objects.next() {
            return Err(Box::new(several_objects(file, second.document.span.start)));
        }
        let Some(SpannedValue { document, value }) = first else {
            return Ok(Self::empty(file));
        };
        let value = match value.map_err(|error| failed(&error))? {
            Value::Map(map) => map,
            other => return Err(Box::new(not_a_map(file, &other))),
        };
        Ok(Self {
            document: document.into_owned(),
            value: with_floats(value),
            ..Self::empty(file)
        })
    }

    fn empty(file: &InputFile) -> Self {
        Self {
            name: file.name.clone(),
            lines: Lines::new(&file.text),
            document: Document {
                span: mainstay_yaml::Span::default(),
                nodes: Vec::new(),
            },
            value: Map::new(),
        }
    }

    /// Returns the location of a path and the number of its segments that the file contains.
    pub(crate) fn locate(&self, path: &Path) -> (Option<Location>, usize) {
        let Some(mut id) = self.document.root() else {
            return (None, 0);
        };
        let mut key = None;
        for (depth, segment) in path.0.iter().enumerate() {
            match self.find_child(id, segment) {
                Some((at, value)) => (key, id) = (Some(at), value),
                None => return (self.location(key), depth),
            }
        }
        (self.location(key), path.0.len())
    }

    fn location(&self, id: Option<NodeId>) -> Option<Location> {
        let start = self.document.node(id?)?.span.start;
        Some(location(&self.name, self.lines.get(start.line), start))
    }

    /// Returns the node that represents the location of a child, and the child.
    fn find_child(&self, id: NodeId, segment: &Segment) -> Option<(NodeId, NodeId)> {
        let node = self.document.node(self.resolve_alias(id)?)?;
        match (&node.kind, segment) {
            (NodeKind::Map { entries, .. }, Segment::Key(key)) => {
                let named = |id: &NodeId| self.text(*id) == Some(key);
                let entry = entries.iter().rev().find(|(key, _)| named(key));
                entry.map(|(key, value)| (*key, *value))
            }
            (NodeKind::List { items, .. }, Segment::Item(selector)) => {
                let item = self.find_item(items, selector)?;
                Some((item, item))
            }
            _ => None,
        }
    }

    fn find_item(&self, items: &[NodeId], selector: &Selector) -> Option<NodeId> {
        if let Some(pair) = &selector.pair {
            let has = |id: &&NodeId| {
                let value = self.document.get(**id, &pair.key);
                value.and_then(|value| self.text(value)) == Some(&pair.value)
            };
            return items.iter().find(has).copied();
        }
        let index = usize::try_from(selector.index?).ok()?;
        items.get(index).copied()
    }

    fn resolve_alias(&self, id: NodeId) -> Option<NodeId> {
        match &self.document.node(id)?.kind {
            NodeKind::Alias { target, .. } => Some(*target),
            _ => Some(id),
        }
    }

    fn text(&self, id: NodeId) -> Option<&str> {
        match &self.document.node(self.resolve_alias(id)?)?.kind {
            NodeKind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// A text with an index of its lines, which takes less memory than a string per line.
#[derive(Clone, Debug)]
struct Lines {
    text: String,
    starts: Vec<u32>,
}

impl Lines {
    fn new(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text).into_owned();
        let ends = || text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut starts = Vec::with_capacity(ends().count() + 1);
        starts.push(0);
        starts.extend(ends().filter_map(|(at, _)| u32::try_from(at + 1).ok()));
        Self { text, starts }
    }

    /// Returns a line by its number, which starts at 1.
    fn get(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        self.text.get(usize::try_from(start).ok()?..)?.lines().next()
    }
}

fn location(file: &str, line: Option<&str>, at: Position) -> Location {
    const WIDTH: usize = 400;
    Location {
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        source: line.map_or_else(String::new, |line| line.chars().take(WIDTH).collect()),
    }
}

/// Whether a document is not empty.
fn is_object(document: &Document<'_>) -> bool {
    let root = document.root().and_then(|root| document.node(root));
    root.is_some_and(|root| match &root.kind {
        NodeKind::Scalar { text, .. } => !matches!(text.as_ref(), "" | "null" | "~"),
        _ => true,
    })
}

fn with_location(file: &InputFile, diagnostic: Diagnostic, at: Position) -> Diagnostic {
    let Some(before) = at.line.checked_sub(1) else {
        return diagnostic.at(None);
    };
    let text = String::from_utf8_lossy(&file.text);
    diagnostic.at(Some(location(&file.name, text.lines().nth(before), at)))
}

fn syntax_error(file: &InputFile, error: &Error) -> Diagnostic {
    let mut error = error.clone();
    error.operation = Operation::Plain;
    let at = error.at;
    with_location(
        file,
        Diagnostic::fatal(
            Path::default(),
            format!("{} is not valid YAML: {error}", file.name),
        ),
        at,
    )
}

fn several_objects(file: &InputFile, at: Position) -> Diagnostic {
    let message = format!("{} contains more than one object", file.name);
    let hint = "write each IstioOperator into a separate file and repeat -f";
    with_location(file, Diagnostic::fatal(Path::default(), message).hint(hint), at)
}

fn not_a_map(file: &InputFile, found: &Value) -> Diagnostic {
    let message = format!("{} is {}, not an IstioOperator", file.name, describe_kind(found));
    with_location(
        file,
        Diagnostic::fatal(Path::default(), message).value(&scalar_text(found).unwrap_or_default()),
        Position::start(),
    )
}

/// Converts all numbers in a map to floats, like Go's JSON decoder.
pub(crate) fn with_floats(map: Map) -> Map {
    map.into_iter()
        .map(|(key, value)| (key, float_numbers(value)))
        .collect()
}

/// Converts all numbers in a tree to floats.
pub(crate) fn float_numbers(value: Value) -> Value {
    match value {
        Value::Int(number) => Value::Float(number as f64),
        Value::Uint(number) => Value::Float(number as f64),
        Value::List(items) => Value::List(items.into_iter().map(float_numbers).collect()),
        Value::Map(map) => Value::Map(with_floats(map)),
        other => other,
    }
}

/// Converts whole floats to integers, like Kubernetes' JSON decoder.
pub(crate) fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Float(number) => match Value::Float(number).as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number),
        },
        Value::List(items) => Value::List(items.into_iter().map(whole_numbers).collect()),
        Value::Map(map) => Value::Map(
            map.into_iter()
                .map(|(key, value)| (key, whole_numbers(value)))
                .collect(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_number() {
        let check = |text: &str| {
            let lines = Lines::new(text.as_bytes());
            for (index, line) in text.lines().enumerate() {
                assert_eq!(lines.get(index + 1), Some(line), "{text:?}");
            }
            assert_eq!(lines.get(0), None, "{text:?}");
            assert_eq!(lines.get(text.lines().count() + 2), None, "{text:?}");
        };
        check("");
        check("a\n\nb\r\nc");
        check("a: \u{fc}\n");
    }
}
