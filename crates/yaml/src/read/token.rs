//! Tokens of YAML and their positions.

use std::borrow::Cow;

use crate::Position;

/// Position of the scanner. All numbers start at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanPosition {
    /// Byte offset in the scanned text.
    pub(crate) at: u32,
    /// Character offset in the scanned text.
    pub(crate) index: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl ScanPosition {
    /// Converts to a [`Position`], counted from 1. `skipped` bytes precede the scanned text.
    pub(crate) fn position(self, skipped: usize) -> Position {
        Position {
            offset: self.at as usize + skipped,
            line: self.line as usize + 1,
            column: self.column as usize + 1,
        }
    }
}

/// The style of a scalar or collection.
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
    /// Handle and prefix of a tag directive.
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

/// A tag as written. Boxed in tokens, because tags are rare and tokens are frequent.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) handle: String,
    pub(super) suffix: String,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: ScanPosition,
    pub(super) end: ScanPosition,
}
