//! Findings about edits that are not possible, with a location and a hint.

use mainstay_yaml::NodeId;

use crate::tree::View;
use crate::workload::place_from_span;
use crate::{Code, Finding, Severity};

/// Returns an error with `code` about node `id`, with the hint `help`.
pub(crate) fn reject(view: &View<'_>, id: NodeId, code: Code, message: String, help: &str) -> Finding {
    Finding {
        severity: Severity::Error,
        code,
        message,
        place: view
            .node(id)
            .map(|node| place_from_span(node.span))
            .unwrap_or_default(),
        help: Some(help.to_owned()),
    }
}

/// Returns the error about a node that is also used through an alias or a merge key.
pub(crate) fn shared_node(view: &View<'_>, id: NodeId, what: &str) -> Finding {
    let message = format!(
        "{what} is shared through an anchor, an alias or a merge key: adding to it would change its other users"
    );
    let help = "write it out in this pod spec, without the anchor";
    reject(view, id, Code::SharedAnchor, message, help)
}

/// Returns the error about a node whose layout does not allow adding lines.
pub(crate) fn unsupported_layout(view: &View<'_>, id: NodeId, what: &str) -> Finding {
    let message = format!("{what} has a layout that does not allow inserting lines");
    let help = "put each key and each `-` on its own line";
    reject(view, id, Code::Layout, message, help)
}

/// Returns the error about a node that does not have the type that Kubernetes requires.
pub(crate) fn wrong_type(view: &View<'_>, id: NodeId, what: &str, wanted: &str) -> Finding {
    let message = format!("{what} is not {wanted}");
    reject(view, id, Code::WrongType, message, "kubectl rejects it as well")
}
