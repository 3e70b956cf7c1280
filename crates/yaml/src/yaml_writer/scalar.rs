//! Scalar output in each style, as in libyaml.

use std::fmt::Write as _;

use super::analysis::Style;
use super::output::Output;
use crate::chars;

/// Writes `text` in `style`. `fold` allows breaks in long lines.
pub(super) fn write(out: &mut Output, text: &str, style: Style, fold: bool, best_indent: usize) {
    match style {
        Style::Plain => write_plain(out, text, fold),
        Style::Single => write_single_quoted(out, text, fold),
        Style::Double => write_double_quoted(out, text, fold),
        Style::Literal => write_literal(out, text, best_indent),
    }
}

/// Whether `text` fits on its line regardless of its spaces.
fn fits(out: &Output, text: &str, fold: bool) -> bool {
    !fold || out.column + text.len() <= out.width
}

fn write_plain(out: &mut Output, text: &str, fold: bool) {
    out.blank();
    if fits(out, text, fold) {
        out.put_str(text);
    } else {
        write_folded(out, text, |_, _, next| next != Some(' '));
    }
    out.end_word();
}

/// Writes the words of a line and breaks it at single spaces beyond the width.
fn write_folded(out: &mut Output, text: &str, may_break: impl Fn(usize, usize, Option<char>) -> bool) {
    let mut spaces = false;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        if character == ' ' {
            if !spaces && out.column > out.width && may_break(at, text.len(), next) {
                out.indent_line();
            } else {
                out.put(' ');
            }
            spaces = true;
        } else {
            out.put(character);
            out.indention = false;
            spaces = false;
        }
    }
}

fn write_single_quoted(out: &mut Output, text: &str, fold: bool) {
    out.indicator("'", true, false);
    if fits(out, text, fold) && !text.contains(['\'', '\n', '\u{2028}', '\u{2029}']) {
        out.put_str(text);
    } else {
        write_single_quoted_lines(out, text, fold);
    }
    out.indicator("'", false, false);
    out.end_word();
}

fn write_single_quoted_lines(out: &mut Output, text: &str, fold: bool) {
    let (mut spaces, mut breaks) = (false, false);
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        match character {
            ' ' => {
                let inner = at > 0 && at + 1 < text.len() && rest.peek().is_none_or(|(_, next)| *next != ' ');
                if fold && !spaces && out.column > out.width && inner {
                    out.indent_line();
                } else {
                    out.put(' ');
                }
                spaces = true;
            }
            '\n' | '\u{2028}' | '\u{2029}' => {
                if !breaks && character == '\n' {
                    out.line_break();
                }
                out.put_break(character);
                breaks = true;
            }
            _ => {
                if breaks {
                    out.indent_line();
                }
                if character == '\'' {
                    out.put('\'');
                }
                out.put(character);
                out.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
    }
}

fn write_double_quoted(out: &mut Output, text: &str, fold: bool) {
    out.indicator("\"", true, false);
    // go-yaml checks for a byte order mark at the start of the text instead of at the current character.
    let escape_all = text.starts_with('\u{feff}');
    let mut spaces = false;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        if escape_all || must_escape(text.as_bytes(), at, character) {
            write_escape(out, character);
            spaces = false;
        } else if character == ' ' {
            if fold && !spaces && out.column > out.width && at > 0 && at + 1 < text.len() {
                out.indent_line();
                if rest.peek().is_some_and(|(_, next)| *next == ' ') {
                    out.put('\\');
                }
            } else {
                out.put(' ');
            }
            spaces = true;
        } else {
            out.put(character);
            spaces = false;
        }
    }
    out.indicator("\"", false, false);
    out.end_word();
}

fn must_escape(text: &[u8], at: usize, character: char) -> bool {
    matches!(character, '"' | '\\') || !chars::is_printable(text, at) || chars::is_break(text, at)
}

fn write_escape(out: &mut Output, character: char) {
    out.put('\\');
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => return write_hex_escape(out, character as u32),
    };
    out.put(short);
}

fn write_hex_escape(out: &mut Output, code: u32) {
    let before = out.text.len();
    // Writing to a string cannot fail.
    let _ = match code {
        0..=0xFF => write!(out.text, "x{code:02X}"),
        0x100..=0xFFFF => write!(out.text, "u{code:04X}"),
        _ => write!(out.text, "U{code:08X}"),
    };
    out.column += out.text.len() - before;
}

fn write_literal(out: &mut Output, text: &str, best_indent: usize) {
    out.indicator("|", true, false);
    write_header_hints(out, text, best_indent);
    out.line_break();
    out.whitespace = true;
    let mut breaks = true;
    for character in text.chars() {
        if matches!(character, '\n' | '\u{2028}' | '\u{2029}') {
            out.put_break(character);
            breaks = true;
        } else {
            if breaks {
                out.indent_line();
            }
            out.put(character);
            out.indention = false;
            breaks = false;
        }
    }
}

/// Writes the hints of a block header: the indentation if the first line hides it, and the handling of
/// trailing line breaks.
fn write_header_hints(out: &mut Output, text: &str, best_indent: usize) {
    if text.starts_with([' ', '\n', '\u{2028}', '\u{2029}']) {
        out.indicator(&best_indent.to_string(), false, false);
    }
    let is_break = |character: char| matches!(character, '\n' | '\u{2028}' | '\u{2029}');
    let mut last = text.chars().rev();
    match (last.next().is_some_and(is_break), last.next()) {
        (false, _) => out.indicator("-", false, false),
        (true, None) => out.indicator("+", false, false),
        (true, Some(character)) if is_break(character) => out.indicator("+", false, false),
        (true, Some(_)) => {}
    }
}
