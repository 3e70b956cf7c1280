//! YAML as the two generations of go-yaml write it: takes a tree pushed into a [`Sink`], gives text.

mod analysis;
mod detour;
mod output;
mod scalar;

use std::borrow::Cow;

use mainstay_gostd::float::{format_float, special};

use crate::resolve::Generation;
use crate::{Error, KeyOrder, Operation, Position, Problem, Sink, Value};
use analysis::{Analysis, Style};
use output::Output;

/// Writes one tree as YAML.
#[derive(Debug)]
pub struct YamlWriter {
    out: Output,
    generation: Generation,
    best_indent: usize,
    open: Vec<Open>,
    /// What the node that comes next is.
    place: Place,
    error: Option<Error>,
}

/// A list or map under construction.
#[derive(Clone, Copy, Debug)]
struct Open {
    list: bool,
    /// Written as `[]` or `{}`.
    empty: bool,
    /// The indentation to return to.
    indent: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    /// After a key on the same line, or after `? key`.
    Value {
        simple: bool,
    },
}

/// Deeper trees are what go-yaml v2 refuses to read back.
const DEEPEST: usize = 10_000;

/// Lines of v2 break at the first space behind this column; v3 never breaks them.
const V2_WIDTH: usize = 80;

impl YamlWriter {
    /// What `sigs.k8s.io/yaml` prints: Helm's `toYaml`.
    #[must_use]
    pub fn v2() -> Self {
        Self::new(Generation::V2, V2_WIDTH, 2)
    }

    /// What go-yaml v3 prints with this indent, 2 for Helm's `toYamlPretty`.
    #[must_use]
    pub fn v3(indent: usize) -> Self {
        let indent = if (2..=9).contains(&indent) { indent } else { 2 };
        Self::new(Generation::V3, usize::MAX >> 1, indent)
    }

    fn new(generation: Generation, width: usize, best_indent: usize) -> Self {
        Self {
            out: Output::new(width),
            generation,
            best_indent,
            open: Vec::new(),
            place: Place::Root,
            error: None,
        }
    }

    /// The text with the newline at its end, or the first thing that could not be written.
    pub fn finish(mut self) -> Result<String, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.indent_line();
        Ok(self.out.text)
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// What stands before a node: `- ` or `:`.
    fn begin_node(&mut self) -> Place {
        let place = self.place;
        match place {
            Place::Root => {}
            Place::Item => {
                self.out.indent_line();
                self.out.indicator("-", true, true);
            }
            Place::Value { simple: true } => self.out.indicator(":", false, false),
            Place::Value { simple: false } => {
                self.out.indent_line();
                self.out.indicator(":", true, true);
            }
        }
        place
    }

    /// The indentation of what a node holds.
    fn deeper(&self, scalar: bool, in_list: bool) -> i64 {
        let (indent, best) = (self.out.indent, self.best_indent as i64);
        match (indent < 0, self.generation) {
            (true, _) if scalar => best,
            (true, _) => 0,
            (false, Generation::V2) => indent + best,
            (false, Generation::V3) if in_list => indent + 2,
            (false, Generation::V3) => best * ((indent + best) / best),
        }
    }

    /// A scalar where only numbers, booleans and null can be: it needs no look.
    fn word(&mut self, text: &str) {
        self.begin_node();
        self.out.blank();
        self.out.put_all(text);
        self.out.ends_word();
        self.end_node();
    }

    fn end_node(&mut self) {
        if let Some(open) = self.open.last() {
            self.place = if open.list { Place::Item } else { self.place };
        }
    }

    fn begin(&mut self, list: bool, len: usize) {
        let place = self.begin_node();
        let open = Open {
            list,
            empty: len == 0,
            indent: self.out.indent,
        };
        if self.open.len() >= DEEPEST {
            let problem = "exceeded max depth of 10000".into();
            self.fail(Problem::Syntax { problem, line: 0 }.at(Position::default()));
        }
        if open.empty {
            self.out.indicator(if list { "[" } else { "{" }, true, false);
        } else {
            let beside_key = list && matches!(place, Place::Value { .. }) && !self.out.indention;
            let same = self.generation == Generation::V2 && beside_key;
            if !same {
                self.out.indent = self.deeper(false, place == Place::Item);
            }
        }
        self.open.push(open);
        self.place = if list {
            Place::Item
        } else {
            Place::Value { simple: true }
        };
    }

    fn end(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if open.empty {
            self.out
                .indicator(if open.list { "]" } else { "}" }, false, false);
        }
        self.out.indent = open.indent;
        self.end_node();
    }

    fn scalar(&mut self, text: &str, tag: &str, style: Style, simple_key: bool) {
        if !tag.is_empty() {
            self.out.blank();
            self.out.put_all(tag);
            self.out.ends_word();
        }
        let deeper = self.deeper(true, self.place == Place::Item);
        let indent = std::mem::replace(&mut self.out.indent, deeper);
        scalar::write(&mut self.out, text, style, !simple_key, self.best_indent);
        self.out.indent = indent;
    }

    /// The text that is written for `bytes`, its tag and its style.
    fn prepare<'a>(&mut self, bytes: &'a [u8], key: bool) -> (Cow<'a, str>, &'static str, Style) {
        if self.generation == Generation::V2 {
            let text = detour::read_back(bytes, key).unwrap_or_else(|error| {
                self.fail(error);
                Cow::Borrowed("")
            });
            let style = analysis::wanted_style(&text, self.generation);
            return (text, "", style);
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            return (
                Cow::Borrowed(text),
                "",
                analysis::wanted_style(text, self.generation),
            );
        }
        let text = detour::base64_lines(bytes);
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
        match self.generation {
            Generation::V2 => KeyOrder::Natural,
            Generation::V3 => KeyOrder::NaturalDigits,
        }
    }

    fn null(&mut self) {
        self.word("null");
    }

    fn bool(&mut self, value: bool) {
        self.word(if value { "true" } else { "false" });
    }

    fn int(&mut self, value: i64) {
        self.word(&value.to_string());
    }

    fn uint(&mut self, value: u64) {
        self.word(&value.to_string());
    }

    fn float(&mut self, value: f64) {
        match (self.generation, special(value)) {
            (Generation::V2, Some(value)) => {
                let error = Problem::UnsupportedNumber { value }.at(Position::default());
                self.fail(error.during(Operation::ValueToJson));
            }
            (Generation::V2, None) => self.word(&detour::float_read_back(value)),
            (Generation::V3, Some("NaN")) => self.word(".nan"),
            (Generation::V3, Some("+Inf")) => self.word(".inf"),
            (Generation::V3, Some(_)) => self.word("-.inf"),
            (Generation::V3, None) => self.word(&format_float(value, 'g', None)),
        }
    }

    fn string(&mut self, value: &[u8]) {
        let (text, tag, style) = self.prepare(value, false);
        self.begin_node();
        let style = Analysis::of(&text, self.generation).settle(style, false);
        self.scalar(&text, tag, style, false);
        self.end_node();
    }

    fn begin_list(&mut self, len: usize) {
        self.begin(true, len);
    }

    fn end_list(&mut self) {
        self.end();
    }

    fn begin_map(&mut self, len: usize) {
        self.begin(false, len);
    }

    fn key(&mut self, key: &[u8]) {
        let (text, tag, style) = self.prepare(key, true);
        self.out.indent_line();
        let analysis = Analysis::of(&text, self.generation);
        let simple = !analysis.multiline && text.len() + tag.len() <= 128;
        if !simple {
            self.out.indicator("?", true, true);
        }
        self.place = Place::Value { simple };
        self.scalar(&text, tag, analysis.settle(style, simple), simple);
    }

    fn end_map(&mut self) {
        self.end();
    }
}

/// `yaml.Marshal` of `sigs.k8s.io/yaml`.
pub fn to_yaml_v2(value: &Value) -> Result<String, Error> {
    write(value, YamlWriter::v2())
}

/// go-yaml v3 with an indent of 2.
pub fn to_yaml_v3(value: &Value) -> Result<String, Error> {
    write(value, YamlWriter::v3(2))
}

fn write(value: &Value, mut writer: YamlWriter) -> Result<String, Error> {
    value.emit(&mut writer);
    writer.finish()
}
