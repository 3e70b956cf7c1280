//! Reads messages and enumerations from `.proto` files. Supports the syntax that the pinned files use;
//! anything else is an error with its line.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Definitions, Type};

/// A word, a punctuation mark, or a comment that makes the next field required.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Mark(char),
    Required,
}

/// Reads the messages of a file and adds `prefix` to their names. With a prefix, field names become camel
/// case.
pub(crate) fn read(path: &Path, prefix: &str, definitions: &mut Definitions) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut reader = Reader {
        tokens: tokens(&text),
        at: 0,
        prefix,
        found: Vec::new(),
        definitions,
    };
    reader.file().with_context(|| path.display().to_string())
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(comment) = rest.strip_prefix("//") {
            let line = comment.lines().next().unwrap_or_default();
            if is_required(line) {
                out.push(Token::Required);
            }
            line.len() + 2
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' || first == '\'' {
            let end = rest
                .get(1..)
                .and_then(|rest| rest.find(first))
                .map_or(rest.len(), |end| end + 2);
            out.push(Token::Word(rest.get(1..end - 1).unwrap_or_default().to_owned()));
            end
        } else if is_word(first) {
            let end = rest.find(|one| !is_word(one)).unwrap_or(rest.len());
            out.push(Token::Word(
                rest.get(..end)
                    .unwrap_or_default()
                    .trim_start_matches('.')
                    .to_owned(),
            ));
            end
        } else {
            out.push(Token::Mark(first));
            first.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    out
}

fn is_word(one: char) -> bool {
    one.is_alphanumeric() || one == '_' || one == '.'
}

/// Whether a comment marks a field as required without a condition. Upstream marks required fields in
/// comments.
fn is_required(comment: &str) -> bool {
    let words = comment
        .trim_start()
        .trim_start_matches("$hide_from_docs")
        .trim_start();
    words
        .strip_prefix("REQUIRED")
        .is_some_and(|rest| !rest.starts_with(" if") && !rest.starts_with(" only"))
}

struct Reader<'a> {
    tokens: Vec<Token>,
    at: usize,
    prefix: &'a str,
    /// Messages of this file, without the prefix.
    found: Vec<String>,
    definitions: &'a mut Definitions,
}

impl Reader<'_> {
    fn file(&mut self) -> Result<()> {
        while self.at < self.tokens.len() {
            match self.word().as_deref() {
                Some("message") => self.message("")?,
                Some("enum") => self.enumeration("")?,
                _ => self.skip_statement(),
            }
        }
        self.resolve_all();
        Ok(())
    }

    /// Resolves all type names. This is done at the end, because types may be used before they are defined.
    fn resolve_all(&mut self) {
        for name in std::mem::take(&mut self.found) {
            let full = format!("{}{name}", self.prefix);
            let Some(mut kind) = self.definitions.types.remove(&full) else {
                continue;
            };
            for (_, text, _) in &mut kind.fields {
                *text = self.resolve(text, &name);
            }
            self.definitions.types.insert(full, kind);
        }
    }

    /// Consumes the next token and returns it if it is a word.
    fn word(&mut self) -> Option<String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn skip_statement(&mut self) {
        while self.peek().is_some_and(|token| *token != Token::Mark(';')) {
            self.at += 1;
        }
        self.at += 1;
    }

    fn open(&mut self) -> Result<()> {
        if self.peek() == Some(&Token::Mark('{')) {
            self.at += 1;
            return Ok(());
        }
        bail!("expected {{ but found {:?}", self.peek())
    }

    /// Parses a message after its keyword. Nested messages are named `Outer.Inner`.
    fn message(&mut self, outer: &str) -> Result<()> {
        let name = format!("{outer}{}", self.word().context("a message without a name")?);
        self.open()?;
        let mut kind = Type::default();
        self.body(&name, &mut kind)?;
        self.definitions
            .types
            .insert(format!("{}{name}", self.prefix), kind);
        self.found.push(name);
        Ok(())
    }

    fn body(&mut self, name: &str, kind: &mut Type) -> Result<()> {
        let mut required = false;
        loop {
            match self.peek().cloned().context("the file ends inside a message")? {
                Token::Mark('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Token::Mark(_) => self.at += 1,
                Token::Required => {
                    required = true;
                    self.at += 1;
                }
                Token::Word(word) => {
                    self.statement(&word, name, kind, required)?;
                    required = false;
                }
            }
        }
    }

    fn statement(&mut self, word: &str, name: &str, kind: &mut Type, required: bool) -> Result<()> {
        match word {
            "message" => {
                self.at += 1;
                self.message(&format!("{name}."))
            }
            "enum" => {
                self.at += 1;
                self.enumeration(&format!("{name}."))
            }
            "oneof" => {
                self.at += 2;
                self.open()?;
                let before = kind.fields.len();
                self.body(name, kind)?;
                kind.one_of.push(
                    kind.fields
                        .iter()
                        .skip(before)
                        .map(|(field, ..)| field.clone())
                        .collect(),
                );
                Ok(())
            }
            "reserved" | "option" => {
                self.skip_statement();
                Ok(())
            }
            _ => {
                kind.fields.push(self.field(required)?);
                Ok(())
            }
        }
    }

    /// `[repeated] Type name = 1 [json_name="x"];`
    fn field(&mut self, required: bool) -> Result<(String, String, String)> {
        let mut text = self.word().context("a field without a type")?;
        let is_list = text == "repeated";
        if is_list || text == "optional" {
            text = self.word().context("a field without a type")?;
        }
        if text == "map" {
            // `<string, Type>`
            self.at += 3;
            text = format!("{{{}}}", self.word().context("a map without a type")?);
            self.at += 1;
        }
        let mut name = self.word().context("a field without a name")?;
        if !self.prefix.is_empty() {
            name = camel(&name);
        }
        while let Some(token) = self.peek().cloned().filter(|token| *token != Token::Mark(';')) {
            self.at += 1;
            if token == Token::Word("json_name".into()) {
                self.at += 1;
                name = self.word().context("an empty json_name")?;
            }
        }
        self.at += 1;
        let text = if is_list { format!("[{text}]") } else { text };
        Ok((
            name,
            text,
            if required {
                "required".into()
            } else {
                String::new()
            },
        ))
    }

    fn enumeration(&mut self, outer: &str) -> Result<()> {
        let name = self.word().context("an enum without a name")?;
        let name = format!("{}{outer}{name}", self.prefix);
        self.open()?;
        let mut values = Vec::new();
        loop {
            match self.peek().cloned().context("the file ends inside an enum")? {
                Token::Mark('}') => break,
                Token::Word(word) => {
                    if word != "option" && word != "reserved" {
                        values.push(word);
                    }
                    self.skip_statement();
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.definitions.enumerations.insert(name, values);
        Ok(())
    }

    /// Resolves a type name; the definition nearest to `scope` wins.
    fn resolve(&self, text: &str, scope: &str) -> String {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return format!("[{}]", self.resolve(inner, scope));
        }
        if let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            return format!("{{{}}}", self.resolve(inner, scope));
        }
        if let Some(scalar) = scalar(text) {
            return scalar.to_owned();
        }
        for (package, prefix) in [
            ("istio.networking.v1alpha3.", "net."),
            ("istio.networking.v1beta1.", "net."),
            ("istio.mesh.v1alpha1.", "mesh."),
        ] {
            if let Some(name) = text.strip_prefix(package) {
                return format!("{prefix}{name}");
            }
        }
        let mut scope = scope;
        loop {
            let candidate = format!("{}{scope}.{text}", self.prefix);
            if self.definitions.types.contains_key(&candidate)
                || self.definitions.enumerations.contains_key(&candidate)
            {
                return candidate;
            }
            match scope.rsplit_once('.') {
                Some((outer, _)) => scope = outer,
                None => return format!("{}{text}", self.prefix),
            }
        }
    }
}

fn scalar(text: &str) -> Option<&'static str> {
    Some(match text {
        "string" | "google.protobuf.StringValue" | "google.protobuf.Duration" | "google.protobuf.Value" => {
            "string"
        }
        "bool" | "google.protobuf.BoolValue" => "bool",
        "double" | "float" | "google.protobuf.DoubleValue" => "number",
        "int32" | "uint32" | "google.protobuf.Int32Value" | "google.protobuf.UInt32Value" => "int32",
        "int64" | "uint64" | "google.protobuf.Int64Value" | "google.protobuf.UInt64Value" => "int64",
        "google.protobuf.Struct" => "{string}",
        _ => return None,
    })
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Definitions {
        let mut definitions = Definitions::default();
        let mut reader = Reader {
            tokens: tokens(text),
            at: 0,
            prefix: "m.",
            found: Vec::new(),
            definitions: &mut definitions,
        };
        reader.file().unwrap();
        definitions
    }

    #[test]
    fn messages_have_fields_groups_and_enumerations() {
        let found = parse(
            "syntax = 'proto3'; message A { // REQUIRED. x\n string some_name = 1; enum E { X = 0; Y = 1; } repeated E es = 2;\n\
             // REQUIRED if y\n oneof o { bool p = 3; B q = 4 [json_name=\"qq\"]; } map<string, A.B> m = 5; message B { double z = 1; } }",
        );
        let a = &found.types["m.A"];
        assert_eq!(
            a.fields[0],
            ("someName".into(), "string".into(), "required".into())
        );
        assert_eq!(a.fields[1], ("es".into(), "[m.A.E]".into(), String::new()));
        assert_eq!(a.fields[3], ("qq".into(), "m.A.B".into(), String::new()));
        assert_eq!(a.one_of, [["p", "qq"]]);
        assert_eq!(found.enumerations["m.A.E"], ["X", "Y"]);
        assert_eq!(found.types["m.A.B"].fields[0].1, "number");
    }

    #[test]
    fn an_unfinished_message_is_an_error() {
        let mut definitions = Definitions::default();
        let mut reader = Reader {
            tokens: tokens("message A {"),
            at: 0,
            prefix: "",
            found: Vec::new(),
            definitions: &mut definitions,
        };
        assert_eq!(
            reader.file().unwrap_err().to_string(),
            "the file ends inside a message"
        );
    }
}
