//! YAML output as in go-yaml v2 and v3.

mod analysis;
mod output;
mod round_trip;
mod scalar;

use std::borrow::Cow;

use mainstay_gostd::float::{format_float, format_special};

use crate::resolve::GoYamlVersion;
use crate::{Error, KeyOrder, Operation, Position, Problem, Sink, Value};
use analysis::{Analysis, Style};
use output::Output;

/// Writes one tree as YAML.
#[derive(Debug)]
pub struct YamlWriter {
    out: Output,
    version: GoYamlVersion,
    best_indent: usize,
    open: Vec<OpenCollection>,
    /// Role of the next node.
    position: NodeRole,
    error: Option<Error>,
}

/// A list or map under construction.
#[derive(Clone, Copy, Debug)]
struct OpenCollection {
    list: bool,
    /// Whether it is written as `[]` or `{}`.
    empty: bool,
    /// Indentation to restore at the end.
    indent: i64,
}

/// Role of a node in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeRole {
    Root,
    Item,
    /// A value after a key on the same line (`simple`), or after `? key`.
    Value {
        simple: bool,
    },
}

/// Maximum depth that go-yaml v2 can parse in the round trip.
const MAX_DEPTH: usize = 10_000;

/// Column at which v2 breaks lines: at the first space after it. v3 never breaks lines.
const V2_WIDTH: usize = 80;

impl YamlWriter {
    /// Creates a writer with the output of `sigs.k8s.io/yaml`, which Helm's `toYaml` uses.
    #[must_use]
    pub fn v2() -> Self {
        Self::new(GoYamlVersion::V2, V2_WIDTH, 2)
    }

    /// Creates a writer with the output of go-yaml v3 and this indentation. Helm's `toYamlPretty` uses 2.
    #[must_use]
    pub fn v3(indent: usize) -> Self {
        let indent = if (2..=9).contains(&indent) { indent } else { 2 };
        Self::new(GoYamlVersion::V3, usize::MAX >> 1, indent)
    }

    fn new(version: GoYamlVersion, width: usize, best_indent: usize) -> Self {
        Self {
            out: Output::new(width),
            version,
            best_indent,
            open: Vec::new(),
            position: NodeRole::Root,
            error: None,
        }
    }

    /// Returns the text with a trailing newline, or the first error.
    pub fn finish(mut self) -> Result<String, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.indent_line();
        Ok(self.out.text)
    }

    fn record_error(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Writes the prefix of a node, `- ` or `:`, and returns the node's role.
    fn begin_node(&mut self) -> NodeRole {
        let position = self.position;
        match position {
            NodeRole::Root => {}
            NodeRole::Item => {
                self.out.indent_line();
                self.out.indicator("-", true, true);
            }
            NodeRole::Value { simple: true } => self.out.indicator(":", false, false),
            NodeRole::Value { simple: false } => {
                self.out.indent_line();
                self.out.indicator(":", true, true);
            }
        }
        position
    }

    /// Returns the indentation of a node's content.
    fn content_indent(&self, scalar: bool, in_list: bool) -> i64 {
        let (indent, best) = (self.out.indent, self.best_indent as i64);
        match (indent < 0, self.version) {
            (true, _) if scalar => best,
            (true, _) => 0,
            (false, GoYamlVersion::V2) => indent + best,
            (false, GoYamlVersion::V3) if in_list => indent + 2,
            (false, GoYamlVersion::V3) => best * ((indent + best) / best),
        }
    }

    /// Writes a number, a boolean or null, which need no analysis.
    fn write_word(&mut self, text: &str) {
        self.begin_node();
        self.out.blank();
        self.out.put_str(text);
        self.out.end_word();
        self.end_node();
    }

    fn end_node(&mut self) {
        if let Some(open) = self.open.last() {
            self.position = if open.list { NodeRole::Item } else { self.position };
        }
    }

    fn begin_collection(&mut self, list: bool, len: usize) {
        let position = self.begin_node();
        let open = OpenCollection {
            list,
            empty: len == 0,
            indent: self.out.indent,
        };
        if self.open.len() >= MAX_DEPTH {
            let problem = "exceeded max depth of 10000".into();
            self.record_error(Problem::Syntax { problem, line: 0 }.at(Position::default()));
        }
        if open.empty {
            self.out.indicator(if list { "[" } else { "{" }, true, false);
        } else {
            let beside_key = list && matches!(position, NodeRole::Value { .. }) && !self.out.indention;
            let same = self.version == GoYamlVersion::V2 && beside_key;
            if !same {
                self.out.indent = self.content_indent(false, position == NodeRole::Item);
            }
        }
        self.open.push(open);
        self.position = if list {
            NodeRole::Item
        } else {
            NodeRole::Value { simple: true }
        };
    }

    fn end_collection(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if open.empty {
            self.out
                .indicator(if open.list { "]" } else { "}" }, false, false);
        }
        self.out.indent = open.indent;
        self.end_node();
    }

    fn write_scalar(&mut self, text: &str, tag: &str, style: Style, simple_key: bool) {
        if !tag.is_empty() {
            self.out.blank();
            self.out.put_str(tag);
            self.out.end_word();
        }
        let deeper = self.content_indent(true, self.position == NodeRole::Item);
        let indent = std::mem::replace(&mut self.out.indent, deeper);
        scalar::write(&mut self.out, text, style, !simple_key, self.best_indent);
        self.out.indent = indent;
    }

    /// Returns the text that represents `bytes`, with its tag and style.
    fn prepare_scalar<'a>(&mut self, bytes: &'a [u8], key: bool) -> (Cow<'a, str>, &'static str, Style) {
        if self.version == GoYamlVersion::V2 {
            let text = round_trip::read_back(bytes, key).unwrap_or_else(|error| {
                self.record_error(error);
                Cow::Borrowed("")
            });
            let style = analysis::requested_style(&text, self.version);
            return (text, "", style);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            return (
                Cow::Borrowed(text),
                "",
                analysis::requested_style(text, self.version),
            );
        }
        let text = round_trip::base64_lines(bytes);
        let style = if text.contains('\n') {
            Style::Literal
        } else {
            Style::Plain
        };
        (Cow::Owned(text), "!!binary", style)
    }
}

impl Sink for YamlWriter {
    fn key_order(&self) -> KeyOrder {
        match self.version {
            GoYamlVersion::V2 => KeyOrder::Natural,
            GoYamlVersion::V3 => KeyOrder::NaturalDigits,
        }
    }

    fn null(&mut self) {
        self.write_word("null");
    }

    fn bool(&mut self, value: bool) {
        self.write_word(if value { "true" } else { "false" });
    }

    fn int(&mut self, value: i64) {
        self.write_word(&value.to_string());
    }

    fn uint(&mut self, value: u64) {
        self.write_word(&value.to_string());
    }

    fn float(&mut self, value: f64) {
        match (self.version, format_special(value)) {
            (GoYamlVersion::V2, Some(value)) => {
                let error = Problem::UnsupportedNumber { value }.at(Position::default());
                self.record_error(error.during(Operation::ValueToJson));
            }
            (GoYamlVersion::V2, None) => self.write_word(&round_trip::float_read_back(value)),
            (GoYamlVersion::V3, Some("NaN")) => self.write_word(".nan"),
            (GoYamlVersion::V3, Some("+Inf")) => self.write_word(".inf"),
            (GoYamlVersion::V3, Some(_)) => self.write_word("-.inf"),
            (GoYamlVersion::V3, None) => self.write_word(&format_float(value, 'g', None)),
        }
    }

    fn string(&mut self, value: &[u8]) {
        let (text, tag, style) = self.prepare_scalar(value, false);
        self.begin_node();
        let style = Analysis::new(&text, self.version).choose_style(style, false);
        self.write_scalar(&text, tag, style, false);
        self.end_node();
    }

    fn begin_list(&mut self, len: usize) {
        self.begin_collection(true, len);
    }

    fn end_list(&mut self) {
        self.end_collection();
    }

    fn begin_map(&mut self, len: usize) {
        self.begin_collection(false, len);
    }

    fn key(&mut self, key: &[u8]) {
        let (text, tag, style) = self.prepare_scalar(key, true);
        self.out.indent_line();
        let analysis = Analysis::new(&text, self.version);
        let simple = !analysis.multiline && text.len() + tag.len() <= 128;
        if !simple {
            self.out.indicator("?", true, true);
        }
        self.position = NodeRole::Value { simple };
        self.write_scalar(&text, tag, analysis.choose_style(style, simple), simple);
    }

    fn end_map(&mut self) {
        self.end_collection();
    }
}

/// Formats `value` as `yaml.Marshal` of `sigs.k8s.io/yaml` does.
pub fn to_yaml_v2(value: &Value) -> Result<String, Error> {
    write(value, YamlWriter::v2())
}

/// Formats `value` as go-yaml v3 with an indentation of 2 does.
pub fn to_yaml_v3(value: &Value) -> Result<String, Error> {
    write(value, YamlWriter::v3(2))
}

fn write(value: &Value, mut writer: YamlWriter) -> Result<String, Error> {
    value.emit(&mut writer);
    writer.finish()
}
