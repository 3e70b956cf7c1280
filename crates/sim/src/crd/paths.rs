//! Resolves paths in a schema, such as `.spec.list['a b']`; errors have the server's messages.

use super::schema::{Additional, Node};
use crate::field::Path;

/// A resolved path and its schema.
#[derive(Debug)]
pub(crate) struct Found<'n> {
    pub path: Path,
    /// The first segment.
    pub root: String,
    pub node: Option<&'n Node>,
}

/// Resolves a path.
pub(crate) fn find<'n>(text: &str, node: &'n Node, brackets: bool) -> Result<Found<'n>, String> {
    let mut found = Found {
        path: Path::default(),
        root: String::new(),
        node: Some(node),
    };
    let tokens = tokens(text);
    let mut rest = tokens.iter().map(String::as_str);
    while let Some(token) = rest.next() {
        match token {
            "[" => {
                if !brackets {
                    return Err("array notation is not allowed".into());
                }
                let quoted = rest.next().ok_or("unexpected end of JSON path")?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                found.step(&inner.replace("\\'", "'").replace("\\\\", "\\"))?;
                match rest.next() {
                    None => return Err("unexpected end of JSON path".into()),
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => {
                let name = rest.next().ok_or("unexpected end of JSON path")?;
                found.step(name)?;
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

/// Returns a path in its normal form, or an empty string if it does not resolve.
pub(crate) fn normal(text: &str, node: &Node) -> String {
    if text.is_empty() {
        return String::new();
    }
    find(text, node, true).map_or(String::new(), |found| found.path.to_string())
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let invalid = || "does not refer to a valid field".to_owned();
        let node = self.node.ok_or_else(invalid)?;
        if node.properties.is_empty() {
            match &node.additional {
                None => return Err(invalid()),
                Some(Additional::Any(_)) => self.node = None,
                Some(Additional::Like(below)) => self.node = Some(below),
            }
            self.path = self.path.key(name);
        } else {
            self.node = Some(node.properties.get(name).ok_or_else(invalid)?);
            self.path = self.path.child(name);
        }
        if self.root.is_empty() {
            name.clone_into(&mut self.root);
        }
        Ok(())
    }
}

/// Splits a path into dots, brackets, and what is between them.
fn tokens(text: &str) -> Vec<String> {
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
