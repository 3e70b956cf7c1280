//! One workload as it stands in a document: what selection found, and what every check of it looks at.

use mainstay_yaml::{Document, NodeId, Span};

use crate::Place;

/// One pod template in a document. Places are relative to the document's text; the engine shifts them at the
/// end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload<'a> {
    /// The document's text.
    pub(crate) text: &'a [u8],
    /// The same, parsed.
    pub(crate) document: &'a Document<'a>,
    /// The object: has `kind` and `metadata`.
    pub(crate) object: NodeId,
    /// The pod template: has `metadata` and `spec`; the object itself for a Pod.
    pub(crate) template: NodeId,
    /// The pod spec.
    pub(crate) spec: NodeId,
}

/// `span` as a place in the same text.
pub(crate) fn place(span: Span) -> Place {
    Place {
        line: span.start.line,
        column: span.start.column,
        offset: span.start.offset,
        len: span.end.offset.saturating_sub(span.start.offset),
    }
}
