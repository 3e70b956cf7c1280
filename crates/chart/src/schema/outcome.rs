//! Violations found by a validation, and their layout.

use std::fmt::Write;

use mainstay_gostd::quote::quote as go_quote;

/// A violation with its causes.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Path of the value in the values.
    pub(super) at: Vec<String>,
    pub(super) kind: Kind,
    pub(super) causes: Vec<Failure>,
}

/// Kind of a violation.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Several violations of one value.
    Group,
    /// Violations of the target of a `$ref`. Not printed if there is only one cause.
    Reference,
    /// A message.
    Text(String),
}

impl Failure {
    /// Formats the violation and its causes. Each is written on a separate line, after a line break.
    pub(super) fn report(&self, indent: usize) -> String {
        let mut out = String::new();
        match self.kind {
            // A group at the top level is not printed, only its causes are.
            Kind::Group if indent == 1 => self
                .causes
                .iter()
                .for_each(|cause| cause.display(indent, &mut out)),
            _ => self.display(indent, &mut out),
        }
        out
    }

    /// Returns the number of bytes of the message and of the messages of the direct causes.
    pub(super) fn message_bytes(&self) -> usize {
        let own = |failure: &Self| match &failure.kind {
            Kind::Text(text) => text.len(),
            Kind::Group | Kind::Reference => 0,
        };
        self.causes.iter().map(own).sum::<usize>() + own(self)
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

/// Quotes a text as Go does, but with single quotes.
pub(super) fn quote(text: &str) -> String {
    let quoted = go_quote(text).replace("\\\"", "\"").replace('\'', "\\'");
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    format!("'{inner}'")
}

/// Quotes several texts and separates them by commas.
pub(super) fn quote_all(texts: &[String]) -> String {
    texts
        .iter()
        .map(|text| quote(text))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats `tokens` as a JSON pointer.
pub(super) fn pointer(tokens: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    for token in tokens {
        out.push('/');
        out.push_str(&token.as_ref().replace('~', "~0").replace('/', "~1"));
    }
    out
}
