//! The `--set` family: parses an argument such as `a.b[0]=1,c={x,y}` into a tree of values, with Helm's
//! grammar, types and messages. File contents come through a callback.

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
/// Maximum number of items that indexes add to lists. Helm limits each index only.
const MAX_ADDED_ITEMS: usize = 500_000;
/// Maximum nesting of `[0][0]…`. Helm has no such limit and recurses.
const MAX_NESTED_LISTS: usize = 100;

/// Interpretation of the text after `=`.
pub enum Mode<'a> {
    /// `--set`: booleans, integers and `null` are typed.
    Typed,
    /// `--set-string`: everything is a string.
    Text,
    /// `--set-json`: each value is JSON.
    Json,
    /// `--set-literal`: everything after the first `=` is one string, without escapes.
    Literal,
    /// `--set-file`: each value is the name of a file, which the callback reads.
    File(ReadFile<'a>),
}

/// Returns the contents of a named file, or an error whose text is shown to the user.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> Result<String, CallbackError>;

/// An invalid argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SetError {
    /// Helm's message.
    pub text: String,
    /// Number of bytes that were read before the error.
    pub offset: usize,
}

/// Applies the assignments of `argument` to `values`. On failure some of them may have been applied.
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

/// The values that several arguments change.
pub(crate) struct Target<'v> {
    pub(crate) values: &'v mut Map,
    /// Number of items that indexes have added so far.
    pub(crate) added_items: &'v mut usize,
}

/// Applies the assignments of `argument`, one of several, to `target`.
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
        match parser.key(target.values, 0) {
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
    /// The argument ends where a key can start, which is not an error.
    End,
    /// The argument ends inside `[`; see [`Dialect::ignores_unclosed_index`].
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

fn fault<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Message(text.into()))
}

struct Parser<'t, 'm, 'v> {
    cursor: Cursor<'t>,
    mode: Mode<'m>,
    added_items: &'v mut usize,
}

/// The text after a key or an index.
enum Assigned {
    /// A value; more assignments may follow.
    Value(Value),
    /// The argument ends: the value is the empty string.
    Nothing,
}

impl Parser<'_, '_, '_> {
    /// Parses one assignment into `data`.
    fn key(&mut self, data: &mut Map, level: usize) -> Result<(), Fault> {
        let stops: &[char] = if matches!(self.mode, Mode::Literal) {
            &['=', '[', '.']
        } else {
            &['=', '[', ',', '.']
        };
        let (name, stop) = self.cursor.until(stops);
        match stop {
            Stop::End if name.is_empty() => Err(Fault::End),
            Stop::End => fault(format!("key {} has no value", quote(&name))),
            Stop::At('[') => self.indexed(data, name, level),
            Stop::At('=') => self.assigned(data, name),
            Stop::At('.') => self.nested(data, &name, level + 1),
            Stop::At(_) => fault(format!("key {} has no value (cannot end with ,)", quote(&name))),
        }
    }

    /// Parses `name=…`.
    fn assigned(&mut self, data: &mut Map, name: String) -> Result<(), Fault> {
        match self.value()? {
            Assigned::Value(value) => set(data, name, value),
            Assigned::Nothing => {
                set(data, name, Value::from(""));
                return Err(Fault::End);
            }
        }
        Ok(())
    }

    /// Parses `name.…`.
    fn nested(&mut self, data: &mut Map, name: &str, level: usize) -> Result<(), Fault> {
        if level > MAX_NESTED_NAMES {
            return fault(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NESTED_NAMES}"
            ));
        }
        let old = data.remove(name);
        let known = old.is_some();
        let mut inner = match old {
            None => Map::new(),
            Some(Value::Map(map)) => map,
            Some(other) => return not_convertible(&other, "map[string]interface {}"),
        };
        let result = self.key(&mut inner, level);
        let empty = inner.is_empty();
        if known || !(empty || name.is_empty()) {
            data.insert(name.to_owned(), Value::Map(inner));
        }
        match result {
            Ok(()) if empty => fault(format!("key map {} has no value", quote(name))),
            other => other,
        }
    }

    /// Parses `name[…`.
    fn indexed(&mut self, data: &mut Map, name: String, level: usize) -> Result<(), Fault> {
        let index = self.index()?;
        let (list, known) = match data.remove(&name) {
            None => (Vec::new(), None),
            Some(Value::List(items)) => {
                let length = items.len();
                (items, Some(length))
            }
            Some(other) => return not_convertible(&other, "[]interface {}"),
        };
        let (mut list, result) = self.item(list, index, At { level, lists: 1 });
        match known {
            _ if !name.is_empty() => {}
            // Helm does not set an empty key, but has already changed the items of an existing list.
            Some(length) => list.truncate(length),
            None => return result,
        }
        data.insert(name, Value::List(list));
        result
    }

    /// Parses the text after `]` and returns the list, changed or not.
    fn item(&mut self, mut list: Vec<Value>, index: i64, at: At) -> (Vec<Value>, Result<(), Fault>) {
        let result = self.item_into(&mut list, index, at);
        (list, result)
    }

    fn item_into(&mut self, list: &mut Vec<Value>, index: i64, at: At) -> Result<(), Fault> {
        let Ok(position) = usize::try_from(index) else {
            return fault(format!("negative {index} index not allowed"));
        };
        let (junk, stop) = self.cursor.until(&['[', '.', '=']);
        if !junk.is_empty() {
            return fault(format!(
                "unexpected data at end of array index: {}",
                quote_runes(&junk)
            ));
        }
        match stop {
            Stop::End => Err(Fault::End),
            Stop::At('=') => {
                let value = match self.value()? {
                    Assigned::Value(value) => value,
                    Assigned::Nothing => Value::from(""),
                };
                self.set_index(list, index, value)
            }
            Stop::At('[') => self.item_list(list, position, at),
            Stop::At(_) => self.item_map(list, position, at),
        }
    }

    /// Parses `…][…`.
    fn item_list(&mut self, list: &mut Vec<Value>, position: usize, at: At) -> Result<(), Fault> {
        let next = self.index()?;
        if at.lists >= MAX_NESTED_LISTS {
            return fault(format!(
                "lists are nested more deeply than {MAX_NESTED_LISTS} levels"
            ));
        }
        let (inner, known) = match list.get_mut(position).map(std::mem::take) {
            None | Some(Value::Null) => (Vec::new(), false),
            Some(Value::List(items)) => (items, true),
            Some(other) => return not_convertible(&other, "[]interface {}"),
        };
        let (inner, result) = self.item(
            inner,
            next,
            At {
                lists: at.lists + 1,
                ..at
            },
        );
        if known || result.is_ok() {
            self.set_index(list, position as i64, Value::List(inner))?;
        }
        result
    }

    /// Parses `…].…`.
    fn item_map(&mut self, list: &mut Vec<Value>, position: usize, at: At) -> Result<(), Fault> {
        let mut inner = match list.get_mut(position).map(std::mem::take) {
            Some(Value::Map(map)) => map,
            _ => Map::new(),
        };
        let result = self.key(&mut inner, at.level);
        if let (Err(_), Some(slot)) = (&result, list.get_mut(position)) {
            *slot = Value::Map(inner);
            return result;
        }
        result?;
        self.set_index(list, position as i64, Value::Map(inner))
    }

    fn set_index(&mut self, list: &mut Vec<Value>, index: i64, value: Value) -> Result<(), Fault> {
        if index > MAX_INDEX {
            return fault(format!(
                "index of {index} is greater than maximum supported index of {MAX_INDEX}"
            ));
        }
        let position = usize::try_from(index).unwrap_or_default();
        if list.len() <= position {
            *self.added_items += position + 1 - list.len();
            if *self.added_items > MAX_ADDED_ITEMS {
                return fault(format!("indexes add more than {MAX_ADDED_ITEMS} items to lists"));
            }
            list.resize(position + 1, Value::Null);
        }
        if let Some(slot) = list.get_mut(position) {
            *slot = value;
        }
        Ok(())
    }

    /// Parses the number before `]`.
    fn index(&mut self) -> Result<i64, Fault> {
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
            fault(format!(
                "error parsing index: strconv.Atoi: parsing {}: {reason}",
                quote(&digits)
            ))
        })
    }

    /// Parses the text after `=`.
    fn value(&mut self) -> Result<Assigned, Fault> {
        match &self.mode {
            Mode::Literal => return Ok(Assigned::Value(Value::from(self.cursor.rest()))),
            Mode::Json => return self.json().map(Assigned::Value),
            Mode::Typed | Mode::Text | Mode::File(_) => {}
        }
        match self.cursor.peek() {
            None => Ok(Assigned::Nothing),
            Some('{') => self.list().map(Assigned::Value),
            Some(_) => {
                let (text, _) = self.cursor.until(&[',']);
                self.convert(text).map(Assigned::Value)
            }
        }
    }

    fn json(&mut self) -> Result<Value, Fault> {
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
    fn list(&mut self) -> Result<Value, Fault> {
        self.cursor.advance(1);
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.cursor.until(&[',', '}']);
            if stop == Stop::End {
                return fault("list must terminate with '}'");
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
            Mode::Typed => Ok(typed(text)),
            Mode::File(read) => read(&text)
                .map(Value::String)
                .map_err(|CallbackError(text)| Fault::Message(text)),
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::String(text)),
        }
    }
}

/// Nesting of an item.
#[derive(Clone, Copy)]
struct At {
    level: usize,
    lists: usize,
}

/// Sets a key; an empty key is ignored, as in Helm.
fn set(data: &mut Map, name: String, value: Value) {
    if !name.is_empty() {
        data.insert(name, value);
    }
}

/// Returns the message of a failed Go type assertion, which Helm recovers from.
fn not_convertible<T>(found: &Value, wanted: &str) -> Result<T, Fault> {
    fault(format!(
        "unable to parse key: interface conversion: interface {{}} is {}, not {wanted}",
        crate::go::type_name(found)
    ))
}

fn typed(text: String) -> Value {
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

/// Go's `strings.EqualFold` with an ASCII word: the long s folds to s.
fn equal_fold(text: &str, word: &str) -> bool {
    text.len() <= word.len() * 2
        && text
            .chars()
            .map(|c| if c == 'ſ' { 's' } else { c.to_ascii_lowercase() })
            .eq(word.chars())
}

/// `%q` of a slice of runes.
fn quote_runes(text: &str) -> String {
    let quoted: Vec<_> = text.chars().map(mainstay_gostd::quote::quote_rune).collect();
    format!("[{}]", quoted.join(" "))
}
