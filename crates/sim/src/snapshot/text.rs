//! Parses objects from YAML documents, JSON or lists of either. A list as printed by `kubectl get -o yaml` is
//! split into its items first, so that memory use is bounded by one item per processor.
//!
//! *Invariant:* splitting has the same result as parsing the whole document. A document that is not in the
//! format of `kubectl` is parsed as a whole.

use std::ops::Range;

use mainstay_yaml::{Budget, Numbers, Options, Position};
use serde_json::{Map, Number, Value};

use super::{Place, SnapshotError};
use crate::tree;

/// Maximum nesting of an object, equal to the limit of `serde_json`.
const MAX_DEPTH: usize = 127;
/// Maximum total size of the text that aliases repeat, in bytes.
const MAX_ALIASED_SIZE: usize = 64 << 20;
/// Minimum number of items per thread.
const MIN_ITEMS_PER_THREAD: usize = 500;
/// Maximum number of threads. With more threads, parsing is limited by memory bandwidth.
const MAX_THREADS: usize = 8;

/// Converts an object to what its reader keeps.
pub type Convert<'a, T> = dyn Fn(Value) -> T + Sync + 'a;

/// Maximum length of a line that an error quotes, in bytes.
const MAX_QUOTED_LINE: usize = 64 << 10;

/// Parses the objects of a text: YAML documents or JSON, with lists expanded.
pub fn parse(text: &str) -> Result<Vec<Value>, SnapshotError> {
    parse_each(text, &|object| object)
}

/// Parses objects like [`parse`] and converts each object as soon as it is parsed, so that not all objects
/// are in memory at the same time.
pub fn parse_each<T: Send>(text: &str, convert: &Convert<'_, T>) -> Result<Vec<T>, SnapshotError> {
    let mut objects = Vec::new();
    for (at, range) in split_documents(text).into_iter().enumerate() {
        let number = at + 1;
        let document = text.get(range.clone()).unwrap_or_default();
        if let Some(mut items) = split_list(document, convert) {
            objects.append(&mut items);
            continue;
        }
        let value = parse_whole(document).map_err(|source| SnapshotError::Document {
            number,
            place: locate(text, range.start, source.at),
            source: source.into(),
        })?;
        match value {
            Value::Null => {}
            Value::Object(_) => {
                let mut unwrapped = Vec::new();
                unwrap_list(value, &mut unwrapped);
                objects.extend(unwrapped.into_iter().map(convert));
            }
            _ => {
                let blank_lines = document.lines().take_while(|line| line.trim().is_empty());
                let at = Position {
                    line: blank_lines.count() + 1,
                    ..Position::start()
                };
                let place = locate(text, range.start, at);
                return Err(SnapshotError::NoObject { number, place });
            }
        }
    }
    Ok(objects)
}

/// Returns the place of a position in the document that starts at the byte `start`.
fn locate(text: &str, start: usize, at: Position) -> Place {
    let before = text.get(..start).unwrap_or_default();
    let line = before.matches('\n').count() + at.line.max(1);
    let source = text.lines().nth(line - 1).unwrap_or_default();
    Place {
        line,
        column: at.column.max(1),
        source: (source.len() <= MAX_QUOTED_LINE).then(|| source.to_owned()),
    }
}

/// Returns the byte ranges of the documents that are not empty.
fn split_documents(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if is_separator(line) {
            all.push(start..at);
            start = at + line.len();
        }
        at += line.len();
    }
    all.push(start..at);
    let is_empty = |range: &Range<usize>| text.get(range.clone()).is_none_or(|it| it.trim().is_empty());
    all.retain(|range| !is_empty(range));
    all
}

/// Whether a line separates two documents.
pub(super) fn is_separator(line: &str) -> bool {
    let bare = line.trim_end_matches(['\n', '\r']);
    bare == "---" || bare.starts_with("--- ")
}

fn parse_whole(document: &str) -> Result<Value, mainstay_yaml::Error> {
    if document.trim_start().starts_with('{')
        && let Ok(mut value) = serde_json::from_str::<Value>(document)
    {
        convert_floats(&mut value);
        return Ok(value);
    }
    parse_document(document)
}

/// Parses one YAML (or JSON) document.
pub(crate) fn parse_document(document: &str) -> Result<Value, mainstay_yaml::Error> {
    let budget = Budget::default();
    // No scalar is longer than the document, so this limits the text that aliases repeat.
    let alias_expansion = MAX_ALIASED_SIZE / document.len().max(1);
    let options = Options {
        numbers: Numbers::Exact,
        budget: Budget {
            alias_expansion: alias_expansion.min(budget.alias_expansion),
            ..budget
        },
        ..Options::default()
    };
    let parsed = mainstay_yaml::parse_with(document, &options)?;
    // A document that is nested too deeply is not an object; callers reject the boolean.
    Ok(to_json(parsed, 0).unwrap_or(Value::Bool(false)))
}

/// Converts a value to JSON. Returns `None` if it is nested too deeply.
fn to_json(value: mainstay_yaml::Value, depth: usize) -> Option<Value> {
    use mainstay_yaml::Value as Yaml;
    Some(match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Int(value) => Value::Number(value.into()),
        Yaml::Uint(value) => Value::Number(value.into()),
        Yaml::Float(value) => to_go_number(value),
        Yaml::String(text) => Value::String(text),
        Yaml::List(_) | Yaml::Map(_) if depth >= MAX_DEPTH => return None,
        Yaml::List(items) => {
            let items = items.into_iter().map(|item| to_json(item, depth + 1));
            Value::Array(items.collect::<Option<_>>()?)
        }
        Yaml::Map(map) => {
            let entries = map
                .into_iter()
                .map(|(key, value)| Some((key, to_json(value, depth + 1)?)));
            Value::Object(entries.collect::<Option<Map<_, _>>>()?)
        }
    })
}

/// Converts a float as Go does when it writes the float to JSON and parses it again: a whole number becomes
/// an integer.
fn to_go_number(value: f64) -> Value {
    let written = mainstay_yaml::float_to_json(value);
    Value::Number(written.parse().unwrap_or_else(|_| Number::from(0)))
}

/// Converts the floats of a JSON document to the numbers that parsing it as YAML returns.
fn convert_floats(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            *value = number.as_f64().map_or(Value::Null, to_go_number);
        }
        Value::Array(items) => items.iter_mut().for_each(convert_floats),
        Value::Object(map) => map.values_mut().for_each(convert_floats),
        _ => {}
    }
}

fn unwrap_list(mut value: Value, objects: &mut Vec<Value>) {
    let kind = tree::text(&value, &["kind"]).to_owned();
    let api_version = tree::text(&value, &["apiVersion"]).to_owned();
    let Some(item_kind) = kind.strip_suffix("List").filter(|_| value.get("items").is_some()) else {
        objects.push(value);
        return;
    };
    let items = value.get_mut("items").map(Value::take);
    let Some(Value::Array(items)) = items else {
        return;
    };
    for mut item in items {
        tree::set_default_text(&mut item, &["kind"], item_kind);
        tree::set_default_text(&mut item, &["apiVersion"], &api_version);
        objects.push(item);
    }
}

/// Parses the items of a list in the format of `kubectl`. Returns `None` for any other document.
fn split_list<T: Send>(document: &str, convert: &Convert<'_, T>) -> Option<Vec<T>> {
    let split = SplitList::parse(document)?;
    let list = parse_document(&split.remainder).ok()?;
    let kind = tree::text(&list, &["kind"]).strip_suffix("List")?;
    if list.get("items").is_some() {
        return None;
    }
    let api_version = tree::text(&list, &["apiVersion"]);
    parse_items(&split.items, &|range| {
        let mut object = parse_item(document.get(range.clone())?)?;
        tree::set_default_text(&mut object, &["kind"], kind);
        tree::set_default_text(&mut object, &["apiVersion"], api_version);
        Some(convert(object))
    })
}

/// Byte ranges of the items of a list, and the text without them.
struct SplitList {
    items: Vec<Range<usize>>,
    remainder: String,
}

impl SplitList {
    /// Splits a list at every dash in the column of the first dash. If a line of a quoted string starts with
    /// a dash in this column, the item before it cannot be parsed, and the document is parsed as a whole.
    fn parse(document: &str) -> Option<Self> {
        let head = match document.find("\nitems:\n") {
            Some(before) => before + 1,
            None if document.starts_with("items:\n") => 0,
            None => return None,
        };
        let start = head + "items:\n".len();
        let body = document.get(start..)?;
        let column = body.len() - body.trim_start_matches(' ').len();
        let (mut items, mut at) = (Vec::<Range<usize>>::new(), start);
        for line in body.split_inclusive('\n') {
            let end = at + line.len();
            match ListLine::classify(line, column) {
                ListLine::Item => items.push(at..end),
                ListLine::Content => items.last_mut()?.end = end,
                ListLine::End => break,
            }
            at = end;
        }
        let remainder = [document.get(..head)?, document.get(at..)?].concat();
        (!items.is_empty()).then_some(Self { items, remainder })
    }
}

/// Role of a line after the start of the items of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListLine {
    /// First line of an item.
    Item,
    /// Another line of an item.
    Content,
    /// First line after the items.
    End,
}

impl ListLine {
    /// Classifies a line. `column` is the number of spaces before the dash of the first item.
    pub(super) fn classify(line: &str, column: usize) -> Self {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let bare = content.trim_end();
        if indent == column && (bare == "-" || content.starts_with("- ")) {
            Self::Item
        } else if indent > column || bare.is_empty() || bare.starts_with('#') {
            Self::Content
        } else {
            Self::End
        }
    }
}

/// Parses every item separately, with several threads.
pub(super) fn parse_items<T: Send>(
    items: &[Range<usize>],
    parse: &(impl Fn(&Range<usize>) -> Option<T> + Sync),
) -> Option<Vec<T>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads
        .min(items.len() / MIN_ITEMS_PER_THREAD)
        .clamp(1, MAX_THREADS);
    let chunk_len = items.len().div_ceil(threads);
    let parse_chunk = |chunk: &[Range<usize>]| chunk.iter().map(parse).collect::<Option<Vec<T>>>();
    let (first, others) = items.split_at(chunk_len.min(items.len()));
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(chunk_len)
            .map(|chunk| scope.spawn(move || parse_chunk(chunk)))
            .collect();
        let mut objects = parse_chunk(first)?;
        objects.reserve(items.len() - objects.len());
        for other in others {
            objects.append(&mut other.join().ok()??);
        }
        Some(objects)
    })
}

/// Parses an item and its dash as a list with one item. Returns `None` for items with aliases, or if the text
/// is not a list with one object.
pub(super) fn parse_item(text: &str) -> Option<Value> {
    let options = Options {
        numbers: Numbers::Exact,
        budget: Budget {
            alias_expansion: 0,
            ..Budget::default()
        },
        ..Options::default()
    };
    let parsed = mainstay_yaml::parse_with(text, &options).ok()?;
    let mainstay_yaml::Value::List(items) = parsed else {
        return None;
    };
    let mut items = items.into_iter();
    // The depth of an item in the whole document is 2.
    let object = to_json(items.next()?, 2)?;
    (items.next().is_none() && object.is_object()).then_some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Parses the text without splitting lists.
    fn parse_unsplit(text: &str) -> Vec<Value> {
        let mut objects = Vec::new();
        for range in split_documents(text) {
            unwrap_list(parse_document(&text[range]).unwrap(), &mut objects);
        }
        objects
    }

    fn check(text: &str, is_split: bool) {
        let found = split_list(text, &|object| object);
        assert_eq!(found.is_some(), is_split, "{text}");
        assert_eq!(parse(text).unwrap(), parse_unsplit(text), "{text}");
    }

    const ITEM: &str = "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n";

    #[test]
    fn splitting_lists_does_not_change_the_result() {
        let list = |items: &str| {
            format!("apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n")
        };
        check(&list(ITEM), true);
        check(&list(&ITEM.repeat(3)), true);
        check(&list(&format!("{ITEM}# a note\n\n{ITEM}")), true);
        check(
            &list(&format!(
                "{ITEM}  data:\n    x: |\n      - not an item\n      kind: List\n{ITEM}"
            )),
            true,
        );
        check(&list(&format!("{ITEM}  data:\n    x: \"a\n- b\"\n{ITEM}")), false);
        check(&list(&format!("{ITEM}  data: {{x: 'a\n- b', y: 1}}\n")), false);
        check(&list("-\n  kind: Pod\n- kind: Service\n"), true);
        check(&list("- &a\n  kind: Pod\n- *a\n"), false);
        check(&list("- plain\n"), false);
        check(&list("  []\n"), false);
        check(
            &list("  - kind: Pod\n    metadata: {name: a}\n  - kind: Pod\n"),
            true,
        );
        check(&list(&ITEM.replace('\n', "\r\n")), true);
        check(
            "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n",
            true,
        );
        check("items:\n- metadata: {name: a}\nkind: PodList\nitems: []\n", false);
        check("kind: Menu\nitems:\n- soup\n", false);
        check("kind: Menu\nitems:\n- name: soup\n", false);
    }

    #[test]
    fn many_items_keep_their_order() {
        let item = |number: usize| format!("- {{kind: Pod, metadata: {{name: p-{number}}}}}\n");
        let items = (0..2_500).map(item).collect::<Vec<_>>().concat();
        let text = format!("kind: List\napiVersion: v1\nitems:\n{items}");
        assert!(split_list(&text, &|object| object).is_some());
        assert_eq!(parse(&text).unwrap(), parse_unsplit(&text));
    }

    #[test]
    fn every_object_is_converted() {
        let name = |object: Value| tree::text(&object, &["metadata", "name"]).to_owned();
        let list = "kind: PodList\napiVersion: v1\nitems:\n- status: {a: b}\n  metadata: {name: p}\n";
        for text in [
            list,
            &list.replace("- status", "- &anchor\n  status"),
            r#"{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "status": 1}"#,
        ] {
            assert_eq!(parse_each(text, &name).unwrap(), ["p"], "{text}");
        }
    }

    #[test]
    fn json_and_yaml_parse_to_the_same_values() {
        for text in [
            r#"{"kind": "Pod", "a": 1.0, "b": 1.5, "c": 12345678901234567890, "d": [1e3, {"x": 2.0}], "e": "\u003c", "f": null}"#,
            r#"{"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Pod", "spec": {"x": 3.0}}]}"#,
            r#"{"kind": "Pod", "kind": "Service"}"#,
        ] {
            assert_eq!(parse(text).unwrap(), parse_unsplit(text), "{text}");
        }
        assert_eq!(parse(r#"{"a": 2.0}"#).unwrap(), [json!({"a": 2})]);
    }

    #[test]
    fn too_deeply_nested_documents_are_rejected() {
        let deep = |levels: usize| format!("a: {}{}\n", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(parse(&deep(126)).unwrap().len(), 1);
        for text in [deep(127), format!("kind: List\nitems:\n- {}", deep(125))] {
            let error = parse(&text).unwrap_err().to_string();
            assert_eq!(error, "document 1 is not a Kubernetes object");
        }
        let list = format!("kind: List\nitems:\n- {}", deep(124));
        assert_eq!(parse(&list).unwrap().len(), 1);
    }

    #[test]
    fn errors_have_the_place_in_the_whole_text() {
        let place = |text: &str| match parse(text).unwrap_err() {
            SnapshotError::Document { place, .. } | SnapshotError::NoObject { place, .. } => place,
            other => panic!("{other}"),
        };
        let check = |text: &str, line: usize, column: usize, source: &str| {
            let expected = Place {
                line,
                column,
                source: Some(source.to_owned()),
            };
            assert_eq!(place(text), expected, "{text}");
        };
        check("a: b\n---\nkind: Pod\n  x: y\n", 4, 4, "  x: y");
        check("---\n\n- a\n", 3, 1, "- a");
        check("kind: Pod\na: [b\n", 3, 1, "");
        let long = format!("kind: Pod\nx: {}: y\n", "z".repeat(MAX_QUOTED_LINE));
        assert_eq!(place(&long).source, None);
    }

    #[test]
    fn aliases_are_bounded_by_the_text_they_repeat() {
        let document = |anchor: usize, aliases: usize| {
            let aliases = "- *a\n".repeat(aliases);
            format!("a: &a {}\nb:\n{aliases}", "x".repeat(anchor))
        };
        assert!(parse_document(&document(10, 500)).is_ok());
        assert!(parse_document(&document(1 << 20, 10)).is_ok());
        assert!(parse_document(&document(1 << 20, 1000)).is_err());
    }
}
