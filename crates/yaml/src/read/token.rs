//! The tokens of YAML, each with its place.

use std::borrow::Cow;

use crate::Position;

/// A place while scanning; counts from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes into the scanned text.
    pub(crate) at: u32,
    /// Characters into it.
    pub(crate) index: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    /// The place as users count, behind `skipped` bytes.
    pub(crate) fn mark(self, skipped: usize) -> Position {
        Position {
            offset: self.at as usize + skipped,
            line: self.line as usize + 1,
            column: self.column as usize + 1,
        }
    }
}

/// How a scalar or collection is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
    Block,
    Flow,
}

#[derive(Clone, Debug)]
pub(super) enum TokenKind<'a> {
    StreamStart,
    StreamEnd,
    Version {
        major: u8,
        minor: u8,
    },
    /// What it is called, and its prefix.
    TagDirective(Box<(String, String)>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Box<Tag>),
    Scalar {
        value: Cow<'a, str>,
        style: Style,
    },
}

/// A tag as written: tags are rare and tokens many, so it is kept apart.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) handle: String,
    pub(super) suffix: String,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: Place,
    pub(super) end: Place,
}
