//! Paths in a schema, such as `.spec.list['a b']`.

use super::schema::{Additional, Node};
use crate::field::Path;

/// Error of a path that does not resolve, with the text of the real server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("array notation is not allowed")]
    ArrayNotation,
    #[error("unexpected end of JSON path")]
    UnexpectedEnd,
    #[error("expected {expected} but got{separator} {found}", separator = if *expected == "[ or ." { ":" } else { "" })]
    Unexpected { expected: &'static str, found: String },
    #[error("does not refer to a valid field")]
    NoSuchField,
}

/// A resolved path and its schema.
#[derive(Debug)]
pub(crate) struct ResolvedPath<'n> {
    pub path: Path,
    /// First segment of the path.
    pub root: String,
    pub node: Option<&'n Node>,
}

/// Resolves a path. With `brackets`, segments in brackets are allowed.
pub(crate) fn resolve<'n>(text: &str, node: &'n Node, brackets: bool) -> Result<ResolvedPath<'n>, PathError> {
    let mut resolved = ResolvedPath {
        path: Path::default(),
        root: String::new(),
        node: Some(node),
    };
    let tokens = tokenize(text);
    let mut rest = tokens.iter().map(String::as_str);
    while let Some(token) = rest.next() {
        match token {
            "[" => {
                if !brackets {
                    return Err(PathError::ArrayNotation);
                }
                let quoted = rest.next().ok_or(PathError::UnexpectedEnd)?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| unexpected("single quoted string", quoted))?;
                resolved.enter(&inner.replace("\\'", "'").replace("\\\\", "\\"))?;
                match rest.next() {
                    None => return Err(PathError::UnexpectedEnd),
                    Some("]") => {}
                    Some(other) => return Err(unexpected("]", other)),
                }
            }
            "." => {
                let name = rest.next().ok_or(PathError::UnexpectedEnd)?;
                resolved.enter(name)?;
            }
            other => return Err(unexpected("[ or .", other)),
        }
    }
    Ok(resolved)
}

fn unexpected(expected: &'static str, found: &str) -> PathError {
    PathError::Unexpected {
        expected,
        found: found.to_owned(),
    }
}

/// Returns a path in its normal form, or an empty string if it does not resolve.
pub(crate) fn normalize(text: &str, node: &Node) -> String {
    if text.is_empty() {
        return String::new();
    }
    resolve(text, node, true).map_or(String::new(), |resolved| resolved.path.to_string())
}

impl ResolvedPath<'_> {
    fn enter(&mut self, name: &str) -> Result<(), PathError> {
        let node = self.node.ok_or(PathError::NoSuchField)?;
        if node.properties.is_empty() {
            match &node.additional {
                None => return Err(PathError::NoSuchField),
                Some(Additional::Any(_)) => self.node = None,
                Some(Additional::Schema(values)) => self.node = Some(values),
            }
            self.path = self.path.key(name);
        } else {
            self.node = Some(node.properties.get(name).ok_or(PathError::NoSuchField)?);
            self.path = self.path.child(name);
        }
        if self.root.is_empty() {
            name.clone_into(&mut self.root);
        }
        Ok(())
    }
}

/// Splits a path into dots, brackets, and the texts between them.
fn tokenize(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted, mut last) = (Vec::new(), String::new(), false, ' ');
    for c in text.chars() {
        if quoted {
            word.push(c);
            if c == '\'' && last != '\\' {
                quoted = false;
                all.push(std::mem::take(&mut word));
            }
        } else if matches!(c, '.' | '[' | ']') {
            if !word.is_empty() {
                all.push(std::mem::take(&mut word));
            }
            all.push(c.to_string());
        } else {
            quoted = c == '\'' && word.is_empty();
            word.push(c);
        }
        last = c;
    }
    if !word.is_empty() {
        all.push(word);
    }
    all
}
