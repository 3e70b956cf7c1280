//! Comments that mark injected items in block style, and comments that contain replaced lines.
//!
//! [`ITEM_MARK`] after the name of an item marks it as injected; an item without the mark belongs to the
//! user, whatever its name. Replaced lines are kept as comments ([`REPLACED_LINE_MARK`]). A key was
//! injected if all its items were. Flow collections and JSON have an undo record instead:
//! [`crate::record`].

/// Comment after the name of an injected item.
pub(crate) const ITEM_MARK: &str = "# mainstay:injected";

/// Start of a comment that contains a replaced line. It follows the line's indentation; the line itself
/// follows after one space.
pub(crate) const REPLACED_LINE_MARK: &str = "# mainstay:was";
