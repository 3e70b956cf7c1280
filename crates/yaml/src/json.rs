//! Decoding of JSON text into a tree as in Go's `encoding/json`, with its errors.

use mainstay_gostd::quote::quote_rune;
use mainstay_gostd::utf8::to_string_lossy;

use crate::decode::{into_list, into_map};
use crate::{Budget, Error, Map, Numbers, Position, Problem, Value};

/// Parses `text` as `json.Unmarshal` into an `interface{}` does.
pub fn parse_json(text: impl AsRef<[u8]>, numbers: Numbers, budget: &Budget) -> Result<Value, Error> {
    let (value, overflow) = read(text.as_ref(), numbers, budget)?;
    overflow.map_or(Ok(value), Err)
}

/// Parses JSON that must be a map, as `json.Unmarshal` into a `map[string]interface{}` does. `null` returns
/// an empty map (a nil map in Go).
pub fn parse_json_map(text: impl AsRef<[u8]>, numbers: Numbers, budget: &Budget) -> Result<Map, Error> {
    let (map, error) = parse_json_map_partial(text, numbers, budget);
    error.map_or(Ok(map), Err)
}

/// Parses a map. With an error, also returns the map that Go produces in that case: all entries except
/// numbers that a float cannot represent.
pub fn parse_json_map_partial(
    text: impl AsRef<[u8]>,
    numbers: Numbers,
    budget: &Budget,
) -> (Map, Option<Error>) {
    let found = read(text.as_ref(), numbers, budget);
    match found.and_then(|(value, overflow)| Ok((into_map(value)?, overflow))) {
        Ok(found) => found,
        Err(error) => (Map::new(), Some(error)),
    }
}

/// Parses JSON that must be a list, as `json.Unmarshal` into a `[]interface{}` does. `null` returns an
/// empty list (a nil slice in Go).
pub fn parse_json_list(
    text: impl AsRef<[u8]>,
    numbers: Numbers,
    budget: &Budget,
) -> Result<Vec<Value>, Error> {
    let (value, overflow) = read(text.as_ref(), numbers, budget)?;
    let items = into_list(value)?;
    overflow.map_or(Ok(items), Err)
}

/// Returns the value, and the error for the first number that a float cannot represent. Go continues after
/// such a number and reports it at the end.
fn read(text: &[u8], numbers: Numbers, budget: &Budget) -> Result<(Value, Option<Error>), Error> {
    let mut reader = Reader {
        text,
        at: 0,
        numbers,
        budget,
        depth: 0,
        nodes: 0,
        overflow: None,
    };
    if text.len() > budget.bytes {
        return Err(reader.budget_error("bytes of text", budget.bytes));
    }
    let mut value = reader.parse_value()?;
    reader.skip_blanks();
    if reader.at < text.len() {
        return Err(reader.unexpected("after top-level value"));
    }
    if reader.overflow.is_some() && value.is_null() {
        // The number out of range is the root. The value must be a number, because callers check its kind.
        value = Value::Float(0.0);
    }
    Ok((value, reader.overflow))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    numbers: Numbers,
    budget: &'a Budget,
    depth: usize,
    nodes: usize,
    overflow: Option<Error>,
}

type Read<T> = Result<T, Error>;

impl Reader<'_> {
    fn parse_value(&mut self) -> Read<Value> {
        self.skip_blanks();
        self.nodes += 1;
        if self.nodes > self.budget.nodes {
            return Err(self.budget_error("nodes", self.budget.nodes));
        }
        match self.peek() {
            Some(b'{') => self.parse_nested(Self::parse_map_entries),
            Some(b'[') => self.parse_nested(Self::parse_list_items),
            Some(b'"') => Ok(Value::String(self.parse_string()?)),
            Some(b'-' | b'0'..=b'9') => self.parse_number(),
            Some(b't') => self.parse_literal("true", Value::Bool(true)),
            Some(b'f') => self.parse_literal("false", Value::Bool(false)),
            Some(b'n') => self.parse_literal("null", Value::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn parse_nested(&mut self, inner: fn(&mut Self) -> Read<Value>) -> Read<Value> {
        if self.depth >= self.budget.depth {
            return Err(self.budget_error("levels of nesting", self.budget.depth));
        }
        self.depth += 1;
        self.at += 1;
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn parse_map_entries(&mut self) -> Read<Value> {
        let mut map = Map::new();
        self.skip_blanks();
        if self.accept(b'}') {
            return Ok(Value::Map(map));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.parse_string()?;
            self.skip_blanks();
            if !self.accept(b':') {
                return Err(self.unexpected("after object key"));
            }
            let value = self.parse_value()?;
            map.insert(key, value);
            self.skip_blanks();
            if self.accept(b'}') {
                return Ok(Value::Map(map));
            }
            if !self.accept(b',') {
                return Err(self.unexpected("after object key:value pair"));
            }
        }
    }

    fn parse_list_items(&mut self) -> Read<Value> {
        let mut items = Vec::new();
        self.skip_blanks();
        if self.accept(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.parse_value()?);
            self.skip_blanks();
            if self.accept(b']') {
                return Ok(Value::List(items));
            }
            if !self.accept(b',') {
                return Err(self.unexpected("after array element"));
            }
        }
    }

    fn parse_literal(&mut self, word: &str, value: Value) -> Read<Value> {
        for expected in word.bytes() {
            if !self.accept(expected) {
                return Err(self.unexpected_in_token(&format!(
                    "in literal {word} (expecting '{}')",
                    char::from(expected)
                )));
            }
        }
        Ok(value)
    }

    fn parse_number(&mut self) -> Read<Value> {
        let start = self.at;
        self.accept(b'-');
        if !self.accept(b'0') {
            self.skip_digits("in numeric literal")?;
        }
        let mut whole = true;
        if self.accept(b'.') {
            whole = false;
            self.skip_digits("after decimal point in numeric literal")?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            whole = false;
            let _ = self.accept(b'+') || self.accept(b'-');
            self.skip_digits("in exponent of numeric literal")?;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let text = std::str::from_utf8(digits).unwrap_or_default();
        Ok(self.number_value(text, whole))
    }

    fn skip_digits(&mut self, context: &str) -> Read<()> {
        let before = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == before {
            return Err(self.unexpected_in_token(context));
        }
        Ok(())
    }

    fn number_value(&mut self, text: &str, whole: bool) -> Value {
        if whole && self.numbers == Numbers::Exact {
            if let Ok(value) = text.parse() {
                return Value::Int(value);
            }
            if let Ok(value) = text.parse() {
                return Value::Uint(value);
            }
        }
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if value.is_finite() {
            return Value::Float(value);
        }
        let problem = Problem::Kind {
            found: format!("number {text}").into(),
            wanted: "float64",
        };
        let error = problem.at(self.position());
        self.overflow.get_or_insert(error);
        Value::Null
    }

    fn parse_string(&mut self) -> Read<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            out.push_str(&to_string_lossy(
                self.text.get(start..self.at).unwrap_or_default(),
            ));
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.parse_escape(&mut out)?,
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn parse_escape(&mut self, out: &mut String) -> Read<()> {
        self.at += 1;
        let character = match self.peek() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => {
                self.at += 1;
                return self.parse_unicode_escape(out);
            }
            _ => return Err(self.unexpected_in_token("in string escape code")),
        };
        self.at += 1;
        out.push(character);
        Ok(())
    }

    /// Parses the four digits of a `\u` escape, and the second half of a surrogate pair if one follows.
    fn parse_unicode_escape(&mut self, out: &mut String) -> Read<()> {
        let first = self.parse_hex_digits()?;
        if let (0xD800..0xDC00, Some(second)) = (first, self.peek_low_surrogate()) {
            self.at += 6;
            let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            return Ok(());
        }
        out.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn peek_low_surrogate(&self) -> Option<u32> {
        let ahead = self.text.get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        let code = ahead
            .iter()
            .try_fold(0, |sum, byte| Some(sum * 16 + char::from(*byte).to_digit(16)?))?;
        (0xDC00..0xE000).contains(&code).then_some(code)
    }

    fn parse_hex_digits(&mut self) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected_in_token("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Creates the error for the current byte, or for the end of the text between two tokens.
    fn unexpected(&self, context: &str) -> Error {
        let problem = match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quote_rune(byte)),
        };
        Problem::Json { problem }.at(self.position())
    }

    /// Creates the error for the current byte inside a token, where Go treats the end of the text as a
    /// space.
    fn unexpected_in_token(&self, context: &str) -> Error {
        let problem = format!(
            "invalid character {} {context}",
            quote_rune(self.peek().unwrap_or(b' '))
        );
        Problem::Json { problem }.at(self.position())
    }

    fn budget_error(&self, quantity: &'static str, limit: usize) -> Error {
        Problem::Budget { quantity, limit }.at(self.position())
    }

    fn position(&self) -> Position {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line_start = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = before.get(line_start..).unwrap_or_default();
        Position {
            offset: self.at,
            line: before.split(|byte| *byte == b'\n').count(),
            column: String::from_utf8_lossy(line).chars().count() + 1,
        }
    }
}
