//! Formats items as block lines or on one line in flow style.

use crate::item::Item;
use crate::mark::ITEM_MARK;

/// Layout of block lines; distances in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Distance from a key to the keys of its map.
    pub(crate) step: usize,
    /// Distance from a key to the dashes of its list.
    pub(crate) dash: usize,
    /// Distance from a dash to its item.
    pub(crate) gap: usize,
    /// Whether lines end in CRLF.
    pub(crate) crlf: bool,
}

impl Layout {
    /// Returns a line break.
    pub(crate) fn eol(&self) -> &'static str {
        if self.crlf { "\r\n" } else { "\n" }
    }
}

/// Formats `item` as a marked item of a list with dashes in `column` (starting at 0). Every line ends with
/// a line break.
pub(crate) fn block_item(item: &Item, column: usize, layout: &Layout) -> String {
    let mut writer = BlockWriter {
        layout,
        out: String::new(),
    };
    writer.item(item, column);
    let mut text = writer.out;
    // The mark follows the first line, which contains the item's name.
    let end = text.find(layout.eol()).unwrap_or(text.len());
    text.insert_str(end, &format!("  {ITEM_MARK}"));
    text
}

/// Formats a key in `column` with a list of marked `items`.
pub(crate) fn block_key(key: &str, items: &[&Item], column: usize, layout: &Layout) -> String {
    let mut text = format!("{:column$}{key}:{}", "", layout.eol());
    for item in items {
        text.push_str(&block_item(item, column + layout.dash, layout));
    }
    text
}

struct BlockWriter<'a> {
    layout: &'a Layout,
    out: String,
}

impl BlockWriter<'_> {
    fn pad(&mut self, spaces: usize) {
        self.out.extend(std::iter::repeat_n(' ', spaces));
    }

    fn item(&mut self, item: &Item, column: usize) {
        let gap = self.layout.gap.saturating_sub(1);
        self.pad(column);
        self.out.push('-');
        self.pad(gap);
        match item {
            Item::Map(entries) => self.entries(entries, column + self.layout.gap, true),
            other => {
                self.out.push_str(&scalar(other));
                self.out.push_str(self.layout.eol());
            }
        }
    }

    /// Writes the entries of a map. With `begun`, the first one continues the current line.
    fn entries(&mut self, entries: &[(&'static str, Item)], column: usize, begun: bool) {
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 || !begun {
                self.pad(column);
            }
            self.out.push_str(key);
            self.out.push(':');
            self.value(value, column);
        }
    }

    fn value(&mut self, value: &Item, column: usize) {
        match value {
            Item::Map(entries) if !entries.is_empty() => {
                self.out.push_str(self.layout.eol());
                self.entries(entries, column + self.layout.step, false);
            }
            Item::List(items) if !items.is_empty() => {
                self.out.push_str(self.layout.eol());
                for item in items {
                    self.item(item, column + self.layout.dash);
                }
            }
            other => {
                self.out.push(' ');
                self.out.push_str(&scalar(other));
                self.out.push_str(self.layout.eol());
            }
        }
    }
}

fn scalar(item: &Item) -> String {
    match item {
        Item::Text(text) if is_plain(text) => text.clone(),
        Item::Text(text) => quoted(text),
        Item::Int(number) => number.to_string(),
        Item::Bool(value) => value.to_string(),
        Item::List(_) => "[]".into(),
        Item::Map(_) => "{}".into(),
    }
}

/// Formats `item` on one line in flow style; with `json`, all keys and strings are quoted.
pub(crate) fn flow_item(item: &Item, json: bool) -> String {
    let mut out = String::new();
    write_flow(item, json, &mut out);
    out
}

fn write_flow(item: &Item, json: bool, out: &mut String) {
    match item {
        Item::Text(text) if json || !is_flow_plain(text) => out.push_str(&quoted(text)),
        Item::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_flow(item, json, out);
            }
            out.push(']');
        }
        Item::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&flow_key(key, json));
                out.push(' ');
                write_flow(value, json, out);
            }
            out.push('}');
        }
        other => out.push_str(&scalar(other)),
    }
}

/// Formats an annotation with a quoted value: in double quotes for `json`, otherwise in single quotes, in
/// which JSON is more readable. The value is ASCII without control characters.
pub(crate) fn annotation(key: &str, value: &str, json: bool) -> String {
    let value = if json {
        quoted(value)
    } else {
        format!("'{}'", value.replace('\'', "''"))
    };
    format!("{} {value}", flow_key(key, json))
}

/// Formats a key with its colon.
pub(crate) fn flow_key(key: &str, json: bool) -> String {
    if json {
        format!("\"{key}\":")
    } else {
        format!("{key}:")
    }
}

/// Whether every YAML parser reads `text` without quotes as a string. Returns false in case of doubt.
fn is_plain(text: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._/:@-".contains(&byte);
    let first = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'/');
    first && text.bytes().all(safe) && !text.ends_with(':') && !is_word(text) && !may_be_number(text)
}

fn is_flow_plain(text: &str) -> bool {
    is_plain(text) && !text.contains(':')
}

fn is_word(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether `text` may be a number in any base, a date or a time.
fn may_be_number(text: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_hexdigit() || b"xXoO_.:+-TtZz".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(part)
}

/// Formats `text` in double quotes, valid in YAML and JSON.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Line breaks for some parsers only, and invisible characters.
            '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => write_escape(character, &mut out),
            control if control.is_control() => write_escape(control, &mut out),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn write_escape(character: char, out: &mut String) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        out.extend(["\\u", &format!("{unit:04x}")]);
    }
}
