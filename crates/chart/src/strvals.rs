//! Parsing of arguments of the `--set` family, such as `a.b[0]=1,c={x,y}`, into a tree of values, with
//! Helm's grammar, types and messages. A callback returns the contents of files.

mod cursor;
mod json;

use mainstay_gostd::quote::quote;
use mainstay_yaml::{Map, Value};

use crate::dialect::Dialect;
use crate::error::CallbackError;
use cursor::{Cursor, Stop};

/// Maximum list index.
const MAX_INDEX: i64 = 65536;
/// Maximum number of dots in a name.
const MAX_NESTED_NAMES: usize = 30;
/// Maximum number of items that indexes may add to lists. Helm only limits each index.
const MAX_ADDED_ITEMS: usize = 500_000;
/// Maximum nesting of `[0][0]…`. Helm has no such limit and uses recursion.
const MAX_NESTED_LISTS: usize = 100;

/// Interpretation of the text after `=`.
pub enum Mode<'a> {
    /// `--set`: booleans, integers and `null` have their types.
    Typed,
    /// `--set-string`: all values are strings.
    Text,
    /// `--set-json`: each value is JSON.
    Json,
    /// `--set-literal`: the text after the first `=` is a single string without escapes.
    Literal,
    /// `--set-file`: each value is the name of a file to read with the callback.
    File(ReadFile<'a>),
}

/// Callback that returns the contents of the named file, or an error with a text that is shown to users.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<String, CallbackError>;

/// Error of parsing an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SetError {
    /// Helm's message.
    pub text: String,
    /// Number of bytes before the error.
    pub offset: usize,
}

/// Applies the assignments of `argument` to `values`. After an error, some assignments may have been applied.
pub fn set_values(
    argument: &str,
    values: &mut Map,
    mode: Mode<'_>,
    dialect: Dialect,
) -> Result<(), SetError> {
    let mut added_items = 0;
    let target = Target {
        values,
        added_items: &mut added_items,
    };
    set_target(argument, target, mode, dialect)
}

/// Values that several arguments modify.
pub(crate) struct Target<'v> {
    pub(crate) values: &'v mut Map,
    /// Number of items that indexes have added so far.
    pub(crate) added_items: &'v mut usize,
}

/// Applies the assignments of `argument`, which is one of several arguments, to `target`.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the target is borrowed for this call only"
)]
pub(crate) fn set_target(
    argument: &str,
    target: Target<'_>,
    mode: Mode<'_>,
    dialect: Dialect,
) -> Result<(), SetError> {
    let mut parser = Parser {
        cursor: Cursor::new(argument, !matches!(mode, Mode::Literal)),
        mode,
        added_items: target.added_items,
    };
    loop {
        match parser.parse_key(target.values, 0) {
            Ok(()) => {}
            Err(Fault::End) => return Ok(()),
            Err(Fault::EndInIndex) if dialect.ignores_unclosed_index() => return Ok(()),
            Err(fault) => {
                return Err(SetError {
                    text: fault.text(),
                    offset: parser.cursor.offset(),
                });
            }
        }
    }
}

/// Reason why the parser stopped.
enum Fault {
    /// The argument ends at the start of a key, which is not an error.
    End,
    /// The argument ends after `[`; see [`Dialect::ignores_unclosed_index`].
    EndInIndex,
    /// An error.
    Message(String),
}

impl Fault {
    fn text(self) -> String {
        match self {
            Self::End => "EOF".into(),
            Self::EndInIndex => "error parsing index: EOF".into(),
            Self::Message(text) => text,
        }
    }
}

fn fail<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Message(text.into()))
}

struct Parser<'t, 'm, 'v> {
    cursor: Cursor<'t>,
    mode: Mode<'m>,
    added_items: &'v mut usize,
}

/// Result of parsing the text after a key or an index.
enum AssignedValue {
    /// A value, which may be followed by more assignments.
    Value(Value),
    /// The end of the argument. The value is the empty string.
    End,
}

impl Parser<'_, '_, '_> {
    /// Parses one assignment into `data`.
    fn parse_key(&mut self, data: &mut Map, level: usize) -> Result<(), Fault> {
        let stops: &[char] = if matches!(self.mode, Mode::Literal) {
            &['=', '[', '.']
        } else {
            &['=', '[', ',', '.']
        };
        let (name, stop) = self.cursor.until(stops);
        match stop {
            Stop::End if name.is_empty() => Err(Fault::End),
            Stop::End => fail(format!("key {} has no value", quote(&name))),
            Stop::At('[') => self.parse_indexed(data, name, level),
            Stop::At('=') => self.parse_assignment(data, name),
            Stop::At('.') => self.parse_nested(data, &name, level + 1),
            Stop::At(_) => fail(format!("key {} has no value (cannot end with ,)", quote(&name))),
        }
    }

    /// Parses the rest of `name=…`.
    fn parse_assignment(&mut self, data: &mut Map, name: String) -> Result<(), Fault> {
        match self.parse_value()? {
            AssignedValue::Value(value) => set_key(data, name, value),
            AssignedValue::End => {
                set_key(data, name, Value::from(""));
                return Err(Fault::End);
            }
        }
        Ok(())
    }

    /// Parses the rest of `name.…`.
    fn parse_nested(&mut self, data: &mut Map, name: &str, level: usize) -> Result<(), Fault> {
        if level > MAX_NESTED_NAMES {
            return fail(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NESTED_NAMES}"
            ));
        }
        let old = data.remove(name);
        let known = old.is_some();
        let mut inner = match old {
            None => Map::new(),
            Some(Value::Map(map)) => map,
            Some(other) => return conversion_error(&other, "map[string]interface {}"),
        };
        let result = self.parse_key(&mut inner, level);
        let empty = inner.is_empty();
        if known || !(empty || name.is_empty()) {
            data.insert(name.to_owned(), Value::Map(inner));
        }
        match result {
            Ok(()) if empty => fail(format!("key map {} has no value", quote(name))),
            other => other,
        }
    }

    /// Parses the rest of `name[…`.
    fn parse_indexed(&mut self, data: &mut Map, name: String, level: usize) -> Result<(), Fault> {
        let index = self.parse_index()?;
        let (list, known) = match data.remove(&name) {
            None => (Vec::new(), None),
            Some(Value::List(items)) => {
                let length = items.len();
                (items, Some(length))
            }
            Some(other) => return conversion_error(&other, "[]interface {}"),
        };
        let (mut list, result) = self.parse_item(list, index, Nesting { level, lists: 1 });
        match known {
            _ if !name.is_empty() => {}
            // Helm does not set an empty key, but has already changed the items of an existing list at this
            // point.
            Some(length) => list.truncate(length),
            None => return result,
        }
        data.insert(name, Value::List(list));
        result
    }

    /// Parses the text after `]`. Returns the list, which may be unchanged.
    fn parse_item(
        &mut self,
        mut list: Vec<Value>,
        index: i64,
        at: Nesting,
    ) -> (Vec<Value>, Result<(), Fault>) {
        let result = self.parse_item_into(&mut list, index, at);
        (list, result)
    }

    fn parse_item_into(&mut self, list: &mut Vec<Value>, index: i64, at: Nesting) -> Result<(), Fault> {
        let Ok(position) = usize::try_from(index) else {
            return fail(format!("negative {index} index not allowed"));
        };
        let (junk, stop) = self.cursor.until(&['[', '.', '=']);
        if !junk.is_empty() {
            return fail(format!(
                "unexpected data at end of array index: {}",
                quote_runes(&junk)
            ));
        }
        match stop {
            Stop::End => Err(Fault::End),
            Stop::At('=') => {
                let value = match self.parse_value()? {
                    AssignedValue::Value(value) => value,
                    AssignedValue::End => Value::from(""),
                };
                self.set_index(list, index, value)
            }
            Stop::At('[') => self.parse_item_list(list, position, at),
            Stop::At(_) => self.parse_item_map(list, position, at),
        }
    }

    /// Parses the rest of `…][…`.
    fn parse_item_list(&mut self, list: &mut Vec<Value>, position: usize, at: Nesting) -> Result<(), Fault> {
        let next = self.parse_index()?;
        if at.lists >= MAX_NESTED_LISTS {
            return fail(format!(
                "lists are nested more deeply than {MAX_NESTED_LISTS} levels"
            ));
        }
        let (inner, known) = match list.get_mut(position).map(std::mem::take) {
            None | Some(Value::Null) => (Vec::new(), false),
            Some(Value::List(items)) => (items, true),
            Some(other) => return conversion_error(&other, "[]interface {}"),
        };
        let (inner, result) = self.parse_item(
            inner,
            next,
            Nesting {
                lists: at.lists + 1,
                ..at
            },
        );
        if known || result.is_ok() {
            self.set_index(list, position as i64, Value::List(inner))?;
        }
        result
    }

    /// Parses the rest of `…].…`.
    fn parse_item_map(&mut self, list: &mut Vec<Value>, position: usize, at: Nesting) -> Result<(), Fault> {
        let mut inner = match list.get_mut(position).map(std::mem::take) {
            Some(Value::Map(map)) => map,
            _ => Map::new(),
        };
        let result = self.parse_key(&mut inner, at.level);
        if let (Err(_), Some(slot)) = (&result, list.get_mut(position)) {
            *slot = Value::Map(inner);
            return result;
        }
        result?;
        self.set_index(list, position as i64, Value::Map(inner))
    }

    fn set_index(&mut self, list: &mut Vec<Value>, index: i64, value: Value) -> Result<(), Fault> {
        if index > MAX_INDEX {
            return fail(format!(
                "index of {index} is greater than maximum supported index of {MAX_INDEX}"
            ));
        }
        let position = usize::try_from(index).unwrap_or_default();
        if list.len() <= position {
            *self.added_items += position + 1 - list.len();
            if *self.added_items > MAX_ADDED_ITEMS {
                return fail(format!("indexes add more than {MAX_ADDED_ITEMS} items to lists"));
            }
            list.resize(position + 1, Value::Null);
        }
        if let Some(slot) = list.get_mut(position) {
            *slot = value;
        }
        Ok(())
    }

    /// Parses the number before `]`.
    fn parse_index(&mut self) -> Result<i64, Fault> {
        let (digits, stop) = self.cursor.until(&[']']);
        if stop == Stop::End {
            return Err(Fault::EndInIndex);
        }
        digits.parse().or_else(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let reason = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            fail(format!(
                "error parsing index: strconv.Atoi: parsing {}: {reason}",
                quote(&digits)
            ))
        })
    }

    /// Parses the text after `=`.
    fn parse_value(&mut self) -> Result<AssignedValue, Fault> {
        match &self.mode {
            Mode::Literal => return Ok(AssignedValue::Value(Value::from(self.cursor.take_rest()))),
            Mode::Json => return self.parse_json().map(AssignedValue::Value),
            Mode::Typed | Mode::Text | Mode::File(_) => {}
        }
        match self.cursor.peek() {
            None => Ok(AssignedValue::End),
            Some('{') => self.parse_list().map(AssignedValue::Value),
            Some(_) => {
                let (text, _) = self.cursor.until(&[',']);
                self.convert(text).map(AssignedValue::Value)
            }
        }
    }

    fn parse_json(&mut self) -> Result<Value, Fault> {
        if self.cursor.skip_blanks_and_comma() {
            return Ok(Value::Null);
        }
        let (value, length) =
            json::first_value(self.cursor.remaining()).map_err(|error| Fault::Message(error.to_string()))?;
        self.cursor.advance(length);
        self.cursor.skip_blanks_and_comma();
        Ok(value)
    }

    /// Parses `{a,b}`.
    fn parse_list(&mut self) -> Result<Value, Fault> {
        self.cursor.advance(1);
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.cursor.until(&[',', '}']);
            if stop == Stop::End {
                return fail("list must terminate with '}'");
            }
            if stop == Stop::At('}') && self.cursor.peek() == Some(',') {
                self.cursor.advance(1);
            }
            items.push(self.convert(text)?);
            if stop == Stop::At('}') {
                return Ok(Value::List(items));
            }
        }
    }

    fn convert(&mut self, text: String) -> Result<Value, Fault> {
        match &mut self.mode {
            Mode::Typed => Ok(parse_typed(text)),
            Mode::File(read) => read(&text)
                .map(Value::String)
                .map_err(|CallbackError(text)| Fault::Message(text)),
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::String(text)),
        }
    }
}

/// Nesting of a list item.
#[derive(Clone, Copy)]
struct Nesting {
    level: usize,
    lists: usize,
}

/// Sets a key. An empty key is ignored, as in Helm.
fn set_key(data: &mut Map, name: String, value: Value) {
    if !name.is_empty() {
        data.insert(name, value);
    }
}

/// Returns the message of a failed Go type assertion, from which Helm recovers.
fn conversion_error<T>(found: &Value, wanted: &str) -> Result<T, Fault> {
    fail(format!(
        "unable to parse key: interface conversion: interface {{}} is {}, not {wanted}",
        crate::go::type_name(found)
    ))
}

fn parse_typed(text: String) -> Value {
    for (word, value) in [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
    ] {
        if equal_fold(&text, word) {
            return value;
        }
    }
    if text == "0" {
        return Value::Int(0);
    }
    match text.parse() {
        Ok(number) if !text.starts_with('0') => Value::Int(number),
        _ => Value::String(text),
    }
}

/// Compares with an ASCII word as Go's `strings.EqualFold` does: the long s is equal to s.
fn equal_fold(text: &str, word: &str) -> bool {
    text.len() <= word.len() * 2
        && text
            .chars()
            .map(|c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() })
            .eq(word.chars())
}

/// Formats the characters of `text` as `%q` does for a slice of runes.
fn quote_runes(text: &str) -> String {
    let quoted: Vec<_> = text.chars().map(mainstay_gostd::quote::quote_rune).collect();
    format!("[{}]", quoted.join(" "))
}
