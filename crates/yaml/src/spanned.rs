//! YAML text to a tree that remembers where everything was: takes a whole stream, gives every document with spans.

use crate::{Budget, Error, Mark, Problem};

/// From where to where in the text; the end is just behind the last character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first character.
    pub start: Mark,
    /// Just behind the last one.
    pub end: Mark,
}

/// The number of a node in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A scalar as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// Behind `|`.
    Literal,
    /// Behind `>`.
    Folded,
}

/// One node of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it is.
    pub span: Span,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it is.
    pub span: Span,
}

/// Reads every document of `text`.
pub fn parse_spanned(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    let _ = (text.as_ref(), budget);
    Err(Problem::Unwritable { problem: "not yet" }.at(Mark::default()))
}
