//! Parsing of TOML in one pass. Common errors have the texts and positions of the Go library. Dates and
//! times remain text.

mod scalar;
mod tree;

use mainstay_gostd::quote::{quote, quote_rune};
use mainstay_template::Value;

use tree::{Node, Table};

/// Error of parsing TOML, with the message of the Go library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("toml: line {line}{}: {}", last_key_text(.last_key), .problem.0)]
pub(in crate::functions) struct TomlError {
    line: usize,
    last_key: String,
    problem: Problem,
}

fn last_key_text(key: &str) -> String {
    if key.is_empty() {
        return String::new();
    }
    format!(" (last key {})", quote(key))
}

/// An error message without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem(String);

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

fn problem<T>(text: String) -> Result<T, Problem> {
    Err(Problem(text))
}

/// Parses a document into a map.
pub(in crate::functions) fn read(text: &str) -> Result<Value, TomlError> {
    let mut reader = Reader {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        depth: 0,
        last_key: String::new(),
    };
    let mut root = Table::default();
    match reader.parse_document(&mut root) {
        Ok(()) => Ok(root.into_value()),
        Err(problem) => Err(TomlError {
            line: reader.line,
            last_key: reader.last_key,
            problem,
        }),
    }
}

/// Maximum nesting of arrays, tables and key parts.
const MAX_DEPTH: usize = 200;

/// State of the parser.
struct Reader {
    chars: Vec<char>,
    at: usize,
    line: usize,
    depth: usize,
    last_key: String,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn accept(&mut self, wanted: &str) -> bool {
        let found = wanted
            .chars()
            .enumerate()
            .all(|(index, c)| self.chars.get(self.at + index) == Some(&c));
        if found {
            for _ in wanted.chars() {
                self.next();
            }
        }
        found
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Skips white space, line breaks and comments.
    fn skip_gap(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r' | '\n') => {
                    self.next();
                }
                Some('#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn parse_document(&mut self, root: &mut Table) -> Result<(), Problem> {
        let mut table: Vec<String> = Vec::new();
        loop {
            self.skip_gap();
            match self.peek() {
                None => return Ok(()),
                Some('[') => table = self.parse_header(root)?,
                Some(_) => self.parse_pair(root, &table)?,
            }
            self.end_of_line()?;
        }
    }

    fn end_of_line(&mut self) -> Result<(), Problem> {
        self.skip_blanks();
        match self.peek() {
            Some('#') => self.skip_comment(),
            None | Some('\n') => {}
            Some('\r') if self.chars.get(self.at + 1) == Some(&'\n') => {}
            Some(c) => {
                let c = quote_rune(c);
                return problem(format!(
                    "expected a top-level item to end with a newline, comment, or EOF, but got {c} instead"
                ));
            }
        }
        Ok(())
    }

    fn parse_header(&mut self, root: &mut Table) -> Result<Vec<String>, Problem> {
        self.at += 1;
        let is_list = self.accept("[");
        let path = self.parse_header_path()?;
        if is_list && !self.accept("]") {
            let found = self.peek().map_or("EOF".into(), quote_rune);
            return problem(format!(
                "expected end of table array name delimiter ']', but got {found} instead"
            ));
        }
        if is_list {
            root.open_table_list(&path)?;
        } else {
            root.open_table(&path)?;
        }
        Ok(path)
    }

    fn parse_header_path(&mut self) -> Result<Vec<String>, Problem> {
        let mut path = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(']') => return Err("unexpected end of table name (table names cannot be empty)".into()),
                Some('.') => return Err("unexpected table separator (table names cannot be empty)".into()),
                _ => path.push(self.parse_key_part()?),
            }
            self.skip_blanks();
            match self.next() {
                Some('.') if path.len() < MAX_DEPTH => {}
                Some(']') => return Ok(path),
                Some('.') => return Err("keys are nested too deeply".into()),
                Some(c) => {
                    return problem(format!(
                        "expected '.' or ']' to end table name, but got {} instead",
                        quote_rune(c)
                    ));
                }
                None => return Err("expected '.' or ']' to end table name, but got '\\x00' instead".into()),
            }
        }
    }

    /// Parses `key = value` in the table at `path`.
    fn parse_pair(&mut self, root: &mut Table, path: &[String]) -> Result<(), Problem> {
        let key = self.parse_key()?;
        let whole: Vec<&str> = path.iter().chain(&key).map(String::as_str).collect();
        self.last_key = whole.join(".");
        let value = self.parse_value()?;
        root.at(path)?.insert(&key, value, &self.last_key)?;
        self.last_key.clear();
        Ok(())
    }

    fn parse_key(&mut self) -> Result<Vec<String>, Problem> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('=') if parts.is_empty() => return Err("unexpected '=': key name appears blank".into()),
                Some('.') if parts.is_empty() => {
                    return Err("unexpected '.': keys cannot start with a '.'".into());
                }
                Some('=') => return Err("unexpected '='".into()),
                Some('.') => return Err("unexpected '.'".into()),
                _ => parts.push(self.parse_key_part()?),
            }
            self.skip_blanks();
            match self.next() {
                Some('=') => return Ok(parts),
                Some('.') if parts.len() < MAX_DEPTH => {}
                Some('.') => return Err("keys are nested too deeply".into()),
                None => return Err("unexpected EOF; expected key separator '='".into()),
                Some(c) => {
                    self.line -= usize::from(c == '\n');
                    return problem(format!("expected '.' or '=', but got {} instead", quote_rune(c)));
                }
            }
        }
    }

    fn parse_key_part(&mut self) -> Result<String, Problem> {
        match self.peek() {
            Some('"') => self.basic_string(),
            Some('\'') => self.literal_string(),
            _ => {
                let start = self.at;
                while self
                    .peek()
                    .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                {
                    self.at += 1;
                }
                let part: String = self
                    .chars
                    .get(start..self.at)
                    .unwrap_or_default()
                    .iter()
                    .collect();
                match (part.is_empty(), self.peek()) {
                    (false, _) => Ok(part),
                    (true, None) => Err("unexpected EOF; expected key separator '='".into()),
                    (true, Some(c)) => {
                        problem(format!("expected '.' or '=', but got {} instead", quote_rune(c)))
                    }
                }
            }
        }
    }

    fn parse_value(&mut self) -> Result<Node, Problem> {
        self.skip_blanks();
        match self.peek() {
            None => Err("unexpected EOF; expected value".into()),
            Some('[') => self.parse_nested(Self::parse_array),
            Some('{') => self.parse_nested(Self::parse_inline_table),
            Some('"') if self.accept("\"\"\"") => self.long_basic_string().map(string_node),
            Some('"') => self.basic_string().map(string_node),
            Some('\'') if self.accept("'''") => self.long_literal_string().map(string_node),
            Some('\'') => self.literal_string().map(string_node),
            Some('.') => Err("floats must start with a digit, not '.'".into()),
            Some(c @ ('\n' | '\r' | ',' | ']' | '}' | '=' | '#')) => {
                problem(format!("expected value but found {} instead", quote_rune(c)))
            }
            Some(_) => scalar::parse_scalar(&self.read_word()).map(Node::Leaf),
        }
    }

    fn parse_nested(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<Node, Problem>,
    ) -> Result<Node, Problem> {
        if self.depth >= MAX_DEPTH {
            return Err("values are nested too deeply".into());
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Reads an unquoted value. A date may be followed by one blank and a time.
    fn read_word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            let time_follows = c == ' '
                && scalar::is_date(&word)
                && self.chars.get(self.at + 1).is_some_and(char::is_ascii_digit);
            if !time_follows && (c.is_whitespace() || matches!(c, ',' | ']' | '}' | '#')) {
                break;
            }
            word.push(c);
            self.at += 1;
        }
        word
    }

    fn parse_array(&mut self) -> Result<Node, Problem> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_gap();
            match self.peek() {
                Some(']') => break,
                Some(',') => return Err("unexpected comma".into()),
                _ => items.push(self.parse_value()?),
            }
            self.skip_gap();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => break,
                other => {
                    let found = other.map_or("end of file".into(), quote_rune);
                    return problem(format!(
                        "expected a comma (',') or array terminator (']'), but got {found}"
                    ));
                }
            }
        }
        self.at += 1;
        Ok(Node::Array(items))
    }

    fn parse_inline_table(&mut self) -> Result<Node, Problem> {
        self.at += 1;
        let outer = self.last_key.clone();
        let mut table = Table::default();
        loop {
            self.skip_gap();
            match self.peek() {
                Some('}') => break,
                Some(',') => return Err("unexpected comma".into()),
                _ => {
                    let key = self.parse_key()?;
                    let value = self.parse_value()?;
                    self.last_key = format!("{outer}.{}", key.join("."));
                    table.insert(&key, value, &self.last_key.clone())?;
                }
            }
            self.skip_gap();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => break,
                other => {
                    let found = other.map_or("end of file".into(), quote_rune);
                    return problem(format!(
                        "expected a comma or an inline table terminator '}}', but got {found} instead"
                    ));
                }
            }
        }
        self.at += 1;
        self.last_key = outer;
        table.close();
        Ok(Node::Table(table))
    }
}

fn string_node(text: String) -> Node {
    Node::Leaf(Value::string(text))
}
