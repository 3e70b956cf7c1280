//! One pod template of a document, as input of the annotation checks.

use mainstay_yaml::{Document, NodeId, Span};

use crate::Place;

/// One pod template in a document. Places in findings about it are relative to the document's text; `run`
/// converts them to places in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload<'a> {
    /// The document's text.
    pub(crate) text: &'a [u8],
    /// The parsed text.
    pub(crate) document: &'a Document<'a>,
    /// Node of the object, which has `kind` and `metadata`.
    pub(crate) object: NodeId,
    /// Node of the pod template, which has `metadata` and `spec`; the object itself for a Pod.
    pub(crate) template: NodeId,
    /// Node of the pod spec.
    pub(crate) spec: NodeId,
}

/// Converts `span` to a place in the same text.
pub(crate) fn place_from_span(span: Span) -> Place {
    Place {
        line: span.start.line,
        column: span.start.column,
        offset: span.start.offset,
        len: span.end.offset.saturating_sub(span.start.offset),
    }
}
