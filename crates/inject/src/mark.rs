//! How inserted text says that it is ours, and keeps what it took the place of: a table of marks.
//!
//! In block style a comment behind an item's name ([`ITEM_MARK`]) says that the item was injected; without it an item is the
//! user's, whatever its name. Lines that were replaced stay as comments ([`FORMER_LINE`]). A key is ours when all its items
//! are. In flow style, where a comment would swallow the rest of the line and JSON knows none, white space that nobody
//! writes does the same: [`FLOW_MARK`] before the name, tabs behind `[` for what stood there ([`FORMER_VALUES`]), a
//! [`crate::keepsake`] before `]` for items that were replaced.

/// Behind the name of an injected item.
pub(crate) const ITEM_MARK: &str = "# mainstay:injected";

/// Before a line that was replaced, behind its indentation; the line itself follows after one space.
pub(crate) const FORMER_LINE: &str = "# mainstay:was";

/// Between `name:` and the name of an injected item in flow style.
pub(crate) const FLOW_MARK: &str = " \t ";

/// What stood where now a flow list of injected items stands: as many tabs follow its `[` as the place in this table says,
/// from 1. The first is an empty list, which was not replaced but filled. A list without tabs came with its key.
pub(crate) const FORMER_VALUES: [&str; 6] = ["[]", "null", "~", "", "Null", "NULL"];
