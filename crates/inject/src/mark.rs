//! Comments that mark injected text in block style, and keep the lines it replaced.
//!
//! [`ITEM_MARK`] behind the name of an item says that the item was injected; an item without it is the
//! user's, whatever its name. Replaced lines stay as comments ([`FORMER_LINE`]). A key was injected if all
//! its items were. Flow collections and JSON have an undo record instead: [`crate::record`].

/// Behind the name of an injected item.
pub(crate) const ITEM_MARK: &str = "# mainstay:injected";

/// Before a replaced line, behind its indentation; the line itself follows after one space.
pub(crate) const FORMER_LINE: &str = "# mainstay:was";
