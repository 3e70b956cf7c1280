//! JSON output as in Go's `encoding/json`.

use std::borrow::Cow;

use mainstay_gostd::float::format_special;

use crate::error::{Error, Position, Problem};
use crate::{KeyOrder, Sink, Value, float};

/// Writes one tree as JSON.
#[derive(Debug)]
pub struct JsonWriter {
    out: String,
    escape_html: bool,
    indent: Option<&'static str>,
    /// For each open list or map, the number of entries written so far.
    open: Vec<usize>,
    after_key: bool,
    error: Option<Error>,
}

impl JsonWriter {
    /// Creates a writer of a single line that escapes `<`, `>` and `&`, as `json.Marshal` and Helm's
    /// `toJson` do.
    #[must_use]
    pub fn compact() -> Self {
        Self::new(true, None)
    }

    /// Creates a writer that indents by two spaces and escapes HTML, as `json.MarshalIndent(v, "", "  ")`
    /// and Sprig's `toPrettyJson` do.
    #[must_use]
    pub fn pretty() -> Self {
        Self::new(true, Some("  "))
    }

    /// Creates a writer of a single line that does not escape HTML, as Sprig's `toRawJson` does.
    #[must_use]
    pub fn raw() -> Self {
        Self::new(false, None)
    }

    fn new(escape_html: bool, indent: Option<&'static str>) -> Self {
        Self {
            out: String::new(),
            escape_html,
            indent,
            open: Vec::new(),
            after_key: false,
            error: None,
        }
    }

    /// Returns the text, or the error for the first value that JSON cannot represent.
    pub fn finish(self) -> Result<String, Error> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    /// Writes the separators before an item or a key: a comma and a line break, as required.
    fn before_entry(&mut self) {
        if std::mem::take(&mut self.after_key) {
            return;
        }
        let Some(entries) = self.open.last_mut() else {
            return;
        };
        if *entries > 0 {
            self.out.push(',');
        }
        *entries += 1;
        self.line();
    }

    fn line(&mut self) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            for _ in 0..self.open.len() {
                self.out.push_str(indent);
            }
        }
    }

    fn literal(&mut self, text: &str) {
        self.before_entry();
        self.out.push_str(text);
    }

    fn begin(&mut self, bracket: char) {
        self.before_entry();
        self.out.push(bracket);
        self.open.push(0);
    }

    fn end(&mut self, bracket: char) {
        if self.open.pop().is_some_and(|entries| entries > 0) {
            self.line();
        }
        self.out.push(bracket);
    }
}

impl Sink for JsonWriter {
    fn key_order(&self) -> KeyOrder {
        KeyOrder::Bytes
    }

    fn null(&mut self) {
        self.literal("null");
    }

    fn bool(&mut self, value: bool) {
        self.literal(if value { "true" } else { "false" });
    }

    fn int(&mut self, value: i64) {
        self.literal(&value.to_string());
    }

    fn uint(&mut self, value: u64) {
        self.literal(&value.to_string());
    }

    fn float(&mut self, value: f64) {
        self.before_entry();
        match format_special(value) {
            None => float::push_json(&mut self.out, value),
            Some(value) => {
                let error = Problem::UnsupportedNumber { value }.at(Position::default());
                self.error.get_or_insert(error);
            }
        }
    }

    fn string(&mut self, value: &[u8]) {
        self.before_entry();
        push_quoted(&mut self.out, value, self.escape_html);
    }

    fn begin_list(&mut self, _len: usize) {
        self.begin('[');
    }

    fn end_list(&mut self) {
        self.end(']');
    }

    fn begin_map(&mut self, _len: usize) {
        self.begin('{');
    }

    fn key(&mut self, key: &[u8]) {
        self.before_entry();
        push_quoted(&mut self.out, key, self.escape_html);
        self.out.push_str(if self.indent.is_some() { ": " } else { ":" });
        self.after_key = true;
    }

    fn end_map(&mut self) {
        self.end('}');
    }
}

/// Appends `text` as a JSON string. Each byte that is not part of valid UTF-8 becomes `\ufffd`.
pub(crate) fn push_quoted(out: &mut String, text: &[u8], escape_html: bool) {
    out.push('"');
    let mut rest = text;
    while !rest.is_empty() {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                push_escaped(out, valid, escape_html);
                break;
            }
            Err(error) => {
                let (valid, bad) = rest.split_at(error.valid_up_to());
                push_escaped(out, std::str::from_utf8(valid).unwrap_or_default(), escape_html);
                out.push_str("\\ufffd");
                rest = bad.get(1..).unwrap_or_default();
            }
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str, escape_html: bool) {
    let mut plain = 0;
    let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xE2);
    for (at, byte) in text.bytes().enumerate() {
        if !special(byte) {
            continue;
        }
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
            continue;
        };
        if let Some(escape) = escape(character, escape_html) {
            out.push_str(text.get(plain..at).unwrap_or_default());
            out.push_str(&escape);
            plain = at + character.len_utf8();
        }
    }
    out.push_str(text.get(plain..).unwrap_or_default());
}

fn escape(character: char, escape_html: bool) -> Option<Cow<'static, str>> {
    Some(match character {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        '\u{8}' => "\\b".into(),
        '\u{c}' => "\\f".into(),
        '<' | '>' | '&' if escape_html => format!("\\u{:04x}", character as u32).into(),
        '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", character as u32).into(),
        _ => return None,
    })
}

/// Formats `value` as `json.Marshal` does.
pub fn to_json(value: &Value) -> Result<String, Error> {
    write(value, JsonWriter::compact())
}

/// Formats `value` as `json.MarshalIndent` with two spaces does.
pub fn to_json_pretty(value: &Value) -> Result<String, Error> {
    write(value, JsonWriter::pretty())
}

/// Formats `value` as JSON without HTML escapes.
pub fn to_json_raw(value: &Value) -> Result<String, Error> {
    write(value, JsonWriter::raw())
}

fn write(value: &Value, mut writer: JsonWriter) -> Result<String, Error> {
    value.emit(&mut writer);
    writer.finish()
}
