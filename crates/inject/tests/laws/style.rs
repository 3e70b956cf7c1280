//! Random formatting: writes trees as YAML in block, flow, JSON and mixed styles.

use crate::rng::Rng;
use crate::shape::{Shape, object};

/// Returns a stream of documents in different styles, with document markers and comments, and with LF or
/// CRLF.
pub(crate) fn stream(rng: &mut Rng) -> Vec<u8> {
    let mut text = String::new();
    if rng.percent(15) {
        text.push_str(rng.pick(&[
            "# a comment before all\n",
            "---\n",
            "%YAML 1.1\n---\n",
            "# contrast-cc\n\n---\n",
        ]));
    }
    let count = 1 + rng.below(3);
    for index in 0..count {
        if index > 0 {
            text.push_str(rng.pick(&[
                "---\n",
                "---\n",
                "--- # next\n",
                "...\n---\n",
                "---\n# nothing here\n---\n",
            ]));
        }
        text.push_str(&document(rng));
    }
    if rng.percent(15) {
        text.push_str(rng.pick(&["---\n", "...\n", "# the end\n", "\n\n"]));
    }
    finish(rng, text)
}

fn finish(rng: &mut Rng, mut text: String) -> Vec<u8> {
    if rng.percent(20) {
        while text.ends_with('\n') {
            text.pop();
        }
    }
    if rng.percent(20) {
        text = text.replace('\n', "\r\n");
    }
    if rng.percent(8) {
        text.insert(0, '\u{feff}');
    }
    text.into_bytes()
}

fn document(rng: &mut Rng) -> String {
    let shape = object(rng, true);
    let style = match rng.below(10) {
        0 => Style::flow(rng, true, false),
        1 => Style::flow(rng, true, true),
        2 => Style::flow(rng, false, false),
        3 => Style::flow(rng, false, true),
        _ => Style::block(rng),
    };
    let mut writer = Writer {
        rng,
        style,
        out: String::new(),
    };
    if style.flow > 0 {
        writer.flow(&shape, 0);
        writer.out.push('\n');
    } else if let Shape::Map(entries) = &shape {
        writer.entries(entries, 0, false);
    }
    writer.out
}

/// Style of a document.
#[derive(Clone, Copy, Debug)]
struct Style {
    step: usize,
    dash: usize,
    gap: usize,
    /// Percentage of positions with a comment.
    comments: usize,
    /// Percentage of collections in flow style; 100 for a document in flow style.
    flow: usize,
    /// Whether to write JSON: strings and keys in double quotes, no comments.
    json: bool,
    /// Whether flow collections span several lines.
    wide: bool,
    /// Whether flow collections have a trailing comma.
    trailing: bool,
}

impl Style {
    fn block(rng: &mut Rng) -> Self {
        let step = rng.pick(&[2, 2, 2, 1, 3, 4]);
        Self {
            step,
            dash: rng.pick(&[0, step]),
            gap: rng.pick(&[2, 2, 2, 3, 4]),
            comments: rng.pick(&[0, 0, 10, 30]),
            flow: 0,
            json: false,
            wide: false,
            trailing: false,
        }
    }

    fn flow(rng: &mut Rng, json: bool, wide: bool) -> Self {
        Self {
            flow: 100,
            json,
            wide,
            comments: if json || !wide { 0 } else { 10 },
            trailing: !json && rng.percent(30),
            ..Self::block(rng)
        }
    }
}

struct Writer<'d> {
    rng: &'d mut Rng,
    style: Style,
    out: String,
}

impl Writer<'_> {
    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    fn comment_lines(&mut self, column: usize) {
        if self.rng.percent(self.style.comments) {
            let column = self.rng.pick(&[column, column, column + 1, 0]);
            self.indent(column);
            let comment = self
                .rng
                .pick(&["# why", "# - name: old", "#", "# contrast-initializer: no", ""]);
            self.out.push_str(comment);
            self.out.push('\n');
        }
    }

    fn end_line(&mut self) {
        if self.rng.percent(self.style.comments) {
            self.out
                .push_str(self.rng.pick(&[" # here", "  # there: x", " ", "\t"]));
        }
        self.out.push('\n');
    }

    fn entries(&mut self, entries: &[(String, Shape)], column: usize, begun: bool) {
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 || !begun {
                self.comment_lines(column);
                self.indent(column);
            }
            if self.rng.percent(5) {
                self.out.push_str(&format!("\"{key}\":"));
            } else {
                self.out.push_str(&format!("{key}:"));
            }
            self.value(value, column);
        }
    }

    /// Writes the value of a map entry after its colon.
    fn value(&mut self, value: &Shape, column: usize) {
        let bracket = self.rng.percent(6);
        match value {
            Shape::Map(entries) if !entries.is_empty() && !bracket => {
                self.end_line();
                self.entries(entries, column + self.style.step, false);
            }
            Shape::List(items) if !items.is_empty() && !bracket => {
                self.end_line();
                for item in items {
                    self.item(item, column + self.style.dash);
                }
            }
            Shape::Nothing => self.end_line(),
            other => {
                self.out.push(' ');
                self.inline(other, column);
            }
        }
    }

    fn item(&mut self, item: &Shape, column: usize) {
        self.comment_lines(column);
        self.indent(column);
        self.out.push('-');
        match item {
            Shape::Map(entries) if !entries.is_empty() && !self.rng.percent(6) => {
                if self.rng.percent(3) {
                    self.out
                        .push_str(self.rng.pick(&["\n", " # dash\n", "\n\n", "\n# far left\n"]));
                    self.indent(column + self.style.gap);
                } else {
                    self.indent(self.style.gap - 1);
                }
                self.entries(entries, column + self.style.gap, true);
            }
            other => {
                self.out.push(' ');
                self.inline(other, column);
            }
        }
    }

    /// Writes a scalar or a flow collection and ends the line.
    fn inline(&mut self, shape: &Shape, column: usize) {
        match shape {
            Shape::Lines(lines) if self.rng.percent(70) => return self.block_scalar(lines, column),
            Shape::Map(_) | Shape::List(_) => {
                let (flow, wide, trailing) = (self.style.flow, self.style.wide, self.style.trailing);
                self.style.flow = 100;
                self.style.wide = self.rng.percent(30);
                self.style.trailing = self.rng.percent(20);
                self.flow(shape, column + 2);
                (self.style.flow, self.style.wide, self.style.trailing) = (flow, wide, trailing);
            }
            other => self.flow(other, column),
        }
        self.end_line();
    }

    fn block_scalar(&mut self, lines: &str, column: usize) {
        let plain_start = !lines.starts_with([' ', '\n']);
        let sign = self.rng.pick(&["|", "|", ">", "|-", "|+", ">+"]);
        let width = self.style.step.max(1);
        let hint = if plain_start {
            String::new()
        } else {
            width.to_string()
        };
        let (sign, chomp) = sign.split_at(1);
        self.out.push_str(&format!("{sign}{hint}{chomp}\n"));
        for line in lines.lines() {
            if !line.is_empty() {
                self.indent(column + width);
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }

    fn flow(&mut self, shape: &Shape, column: usize) {
        match shape {
            Shape::Text(text) => self.scalar(text),
            Shape::Lines(text) => self.quoted(text),
            Shape::Raw("~" | "Null" | "NULL") if self.style.json => self.out.push_str("null"),
            Shape::Raw(raw) => self.out.push_str(raw),
            Shape::Nothing if self.style.json || self.rng.percent(50) => self.out.push_str("null"),
            Shape::Nothing => {}
            Shape::List(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.gap(index, column);
                    match item {
                        Shape::Nothing => self.out.push_str("null"),
                        item => self.flow(item, column + self.style.step),
                    }
                    self.comma(index + 1 == items.len());
                }
                self.close(items.is_empty(), column, ']');
            }
            Shape::Map(entries) => {
                self.out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    self.gap(index, column);
                    if self.style.json || self.rng.percent(10) {
                        self.out.push_str(&format!("\"{key}\":"));
                    } else {
                        self.out.push_str(&format!("{key}:"));
                    }
                    self.out.push_str(self.rng.pick(&[" ", " ", "  "]));
                    self.flow(value, column + self.style.step);
                    self.comma(index + 1 == entries.len());
                }
                self.close(entries.is_empty(), column, '}');
            }
        }
    }

    fn gap(&mut self, index: usize, column: usize) {
        if self.style.wide {
            self.out.push_str(if self.rng.percent(self.style.comments) {
                " # in\n"
            } else {
                "\n"
            });
            self.indent(column + self.style.step);
        } else if index > 0 {
            self.out.push_str(self.rng.pick(&[" ", " ", ""]));
        }
    }

    fn comma(&mut self, last: bool) {
        if !last || self.style.trailing {
            self.out.push(',');
            if !self.style.json && !self.style.wide {
                self.out.push(' ');
            }
        }
    }

    fn close(&mut self, empty: bool, column: usize, sign: char) {
        if self.style.wide && !empty {
            self.out.push('\n');
            self.indent(column);
        } else if self.rng.percent(10) {
            self.out.push(' ');
        }
        self.out.push(sign);
    }

    fn scalar(&mut self, text: &str) {
        let simple = |c: char| c.is_alphanumeric() || "-/.@".contains(c);
        let word = text.starts_with(char::is_alphabetic)
            && text.chars().all(simple)
            && text != "true"
            && text != "false";
        match self.rng.below(4) {
            _ if self.style.json => self.quoted(text),
            0 | 1 if word => self.out.push_str(text),
            2 if !text.contains(['\'', '\n']) => self.out.push_str(&format!("'{text}'")),
            _ => self.quoted(text),
        }
    }

    fn quoted(&mut self, text: &str) {
        let escaped = text
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        self.out.push_str(&format!("\"{escaped}\""));
    }
}
