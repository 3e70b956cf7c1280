//! Strings, numbers, booleans and dates of TOML.

use mainstay_gostd::quote::quote;
use mainstay_template::Value;

use super::{Problem, Reader, problem};

/// Parses an unquoted value.
pub(super) fn parse_scalar(word: &str) -> Result<Value, Problem> {
    match word {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "inf" | "+inf" => return Ok(Value::Float(f64::INFINITY)),
        "-inf" => return Ok(Value::Float(f64::NEG_INFINITY)),
        "nan" | "+nan" | "-nan" => return Ok(Value::Float(f64::NAN)),
        _ => {}
    }
    if is_date(word.get(..10).unwrap_or_default()) || is_time(word) {
        return Ok(Value::string(format_date(word)));
    }
    if !word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')) {
        return problem(format!("expected value but found {} instead", quote(word)));
    }
    if let Some((radix, digits)) = split_radix(word) {
        let clean = remove_underscores(word, digits, "integer")?;
        return i64::from_str_radix(&clean, radix)
            .map(Value::int64)
            .map_err(|_| out_of_range(word, "int64"));
    }
    if word.contains(['.', 'e', 'E']) {
        parse_float_value(word)
    } else {
        parse_integer(word)
    }
}

fn split_radix(word: &str) -> Option<(u32, &str)> {
    [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .find_map(|(mark, radix)| Some((*radix, word.strip_prefix(mark)?)))
}

fn parse_integer(word: &str) -> Result<Value, Problem> {
    let clean = remove_underscores(word, word, "integer")?;
    let digits = clean.trim_start_matches(['+', '-']);
    if digits.len() > 1 && digits.starts_with('0') {
        return problem(format!(
            "Invalid integer {}: cannot have leading zeroes",
            quote(word)
        ));
    }
    let value = clean.strip_prefix('+').unwrap_or(&clean).parse();
    value.map(Value::int64).map_err(|_| {
        if digits.chars().all(|c| c.is_ascii_digit()) && !digits.is_empty() {
            out_of_range(word, "int64")
        } else {
            Problem(format!("expected value but found {} instead", quote(word)))
        }
    })
}

fn parse_float_value(word: &str) -> Result<Value, Problem> {
    let clean = remove_underscores(word, word, "float")?;
    let digits = clean.trim_start_matches(['+', '-']);
    let zeroes =
        digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.") && !digits.starts_with("0e");
    if zeroes {
        return problem(format!(
            "Invalid float {}: cannot have leading zeroes",
            quote(word)
        ));
    }
    let bare_dot = digits.ends_with('.') || digits.contains(".e") || digits.contains(".E");
    if bare_dot {
        return problem(format!(
            "Invalid float {}: '.' must be followed by one or more digits",
            quote(word)
        ));
    }
    match clean.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Float(value)),
        Ok(_) => Err(out_of_range(word, "float64")),
        Err(_) => problem(format!("Invalid float value: {}", quote(word))),
    }
}

/// Removes underscores. Each must be between two digits.
fn remove_underscores(word: &str, digits: &str, kind: &str) -> Result<String, Problem> {
    let chars: Vec<char> = digits.chars().collect();
    let misplaced = |index: usize| {
        let around = [index.checked_sub(1), Some(index + 1)];
        !around.iter().all(|at| {
            at.and_then(|at| chars.get(at))
                .is_some_and(char::is_ascii_hexdigit)
        })
    };
    if chars
        .iter()
        .enumerate()
        .any(|(index, c)| *c == '_' && misplaced(index))
    {
        return problem(format!(
            "Invalid {kind} {}: underscores must be surrounded by digits",
            quote(word)
        ));
    }
    Ok(digits.replace('_', ""))
}

fn out_of_range(word: &str, size: &str) -> Problem {
    Problem(format!("{word} is out of range for {size}"))
}

/// Whether `word` has the form `2006-01-02`.
pub(super) fn is_date(word: &str) -> bool {
    has_shape(word, "dddd-dd-dd")
}

fn is_time(word: &str) -> bool {
    has_shape(word.get(..5).unwrap_or_default(), "dd:dd")
}

fn has_shape(word: &str, shape: &str) -> bool {
    let matches = |(c, want): (char, char)| {
        if want == 'd' {
            c.is_ascii_digit()
        } else {
            c == want
        }
    };
    word.len() == shape.len() && word.chars().zip(shape.chars()).all(matches)
}

/// Formats a date, a time or both as RFC 3339. Missing parts are zero, and local times are treated as UTC.
fn format_date(word: &str) -> String {
    let text = word.replacen(' ', "T", 1).replacen('t', "T", 1).replace('z', "Z");
    match text.split_once('T') {
        None if is_date(&text) => format!("{text}T00:00:00Z"),
        None => format!("0000-01-01T{text}Z"),
        Some((_, time)) if time.contains(['Z', '+', '-']) => text,
        Some(_) => text + "Z",
    }
}

impl Reader {
    pub(super) fn basic_string(&mut self) -> Result<String, Problem> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err("unexpected EOF; expected '\"'".into()),
                Some('\n') => {
                    self.line -= 1;
                    return Err("strings cannot contain newlines".into());
                }
                Some('"') => return Ok(out),
                Some('\\') => out.push(self.escape()?),
                Some(c) => out.push(c),
            }
        }
    }

    pub(super) fn literal_string(&mut self) -> Result<String, Problem> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err("unexpected EOF; expected \"'\"".into()),
                Some('\n') => {
                    self.line -= 1;
                    return Err("strings cannot contain newlines".into());
                }
                Some('\'') => return Ok(out),
                Some(c) => out.push(c),
            }
        }
    }

    /// Reads a multi-line string. A leading line break is ignored, and a backslash at the end of a line
    /// skips the white space after it.
    pub(super) fn long_basic_string(&mut self) -> Result<String, Problem> {
        self.first_line_break();
        let mut out = String::new();
        loop {
            if self.accept("\"\"\"") {
                self.extra_quotes('"', &mut out);
                return Ok(out);
            }
            match self.next() {
                None => return Err("unexpected EOF; expected '\"\"\"'".into()),
                Some('\\') if self.at_line_end() => {
                    while self.peek().is_some_and(char::is_whitespace) {
                        self.next();
                    }
                }
                Some('\\') => out.push(self.escape()?),
                Some('\r') if self.peek() == Some('\n') => {}
                Some(c) => out.push(c),
            }
        }
    }

    pub(super) fn long_literal_string(&mut self) -> Result<String, Problem> {
        self.first_line_break();
        let mut out = String::new();
        loop {
            if self.accept("'''") {
                self.extra_quotes('\'', &mut out);
                return Ok(out);
            }
            match self.next() {
                None => return Err("unexpected EOF; expected \"'''\"".into()),
                Some('\r') if self.peek() == Some('\n') => {}
                Some(c) => out.push(c),
            }
        }
    }

    fn first_line_break(&mut self) {
        if !self.accept("\r\n") {
            self.accept("\n");
        }
    }

    /// Reads up to two quotes that precede the closing three quotes.
    fn extra_quotes(&mut self, quote: char, out: &mut String) {
        for _ in 0..2 {
            if self.peek() == Some(quote) {
                self.at += 1;
                out.push(quote);
            }
        }
    }

    fn at_line_end(&self) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        rest.iter().find(|c| !matches!(c, ' ' | '\t' | '\r')) == Some(&'\n')
    }

    fn escape(&mut self) -> Result<char, Problem> {
        match self.next() {
            Some('b') => Ok('\x08'),
            Some('t') => Ok('\t'),
            Some('n') => Ok('\n'),
            Some('f') => Ok('\x0c'),
            Some('r') => Ok('\r'),
            Some('e') => Ok('\x1b'),
            Some('"') => Ok('"'),
            Some('\\') => Ok('\\'),
            Some('u') => self.code_point(4, "four", 'u'),
            Some('U') => self.code_point(8, "eight", 'U'),
            Some(c) => problem(format!("invalid escape in string '\\{c}'")),
            None => Err("unexpected EOF; expected '\"'".into()),
        }
    }

    fn code_point(&mut self, digits: usize, words: &str, letter: char) -> Result<char, Problem> {
        let text: String = self
            .chars
            .get(self.at..)
            .unwrap_or_default()
            .iter()
            .take(digits)
            .collect();
        if text.len() < digits || !text.chars().all(|c| c.is_ascii_hexdigit()) {
            return problem(format!(
                "expected {words} hexadecimal digits after '\\{letter}', but got {} instead",
                quote(&text)
            ));
        }
        self.at += digits;
        let code = u32::from_str_radix(&text, 16).ok().and_then(char::from_u32);
        code.ok_or_else(|| Problem(format!("Escaped character '\\u{text}' is not valid UTF-8.")))
    }
}
