//! What a check found: a tree of complaints and how it is laid out. Knows nothing of schemas.

use std::fmt::Write;

use mainstay_gostd::quote::quote as go_quote;

/// One complaint, perhaps with those that led to it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Where in the values.
    pub(super) at: Vec<String>,
    pub(super) kind: Kind,
    pub(super) causes: Vec<Failure>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Several complaints about one value.
    Group,
    /// What a `$ref` led to; left out when there is only one.
    Reference,
    /// One complaint, in words.
    Text(String),
}

impl Failure {
    /// The complaint and its causes, each on a line of its own that starts with a line break.
    pub(super) fn report(&self, indent: usize) -> String {
        let mut out = String::new();
        match self.kind {
            // At the top a group only holds what is listed.
            Kind::Group if indent == 1 => self
                .causes
                .iter()
                .for_each(|cause| cause.display(indent, &mut out)),
            _ => self.display(indent, &mut out),
        }
        out
    }

    fn display(&self, mut indent: usize, out: &mut String) {
        let skipped = matches!(self.kind, Kind::Reference) && self.causes.len() == 1;
        if !skipped {
            out.push('\n');
            out.push_str(&"  ".repeat(indent - 1));
            let text = match &self.kind {
                Kind::Group | Kind::Reference => "validation failed",
                Kind::Text(text) => text,
            };
            // Writing to a string cannot fail.
            let _ = write!(out, "- at {}: {text}", quote(&pointer(&self.at)));
            indent += 1;
        }
        for cause in &self.causes {
            cause.display(indent, out);
        }
    }
}

/// Single quotes around what Go would write between double ones.
pub(super) fn quote(text: &str) -> String {
    let quoted = go_quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    format!("'{inner}'")
}

/// Several of them.
pub(super) fn quote_all(texts: &[String]) -> String {
    texts
        .iter()
        .map(|text| quote(text))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A JSON pointer.
pub(super) fn pointer(tokens: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    for token in tokens {
        out.push('/');
        out.push_str(&token.as_ref().replace('~', "~0").replace('/', "~1"));
    }
    out
}
