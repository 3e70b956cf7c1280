//! YAML text to a tree of nodes, as go-yaml v2 reads it: bytes → characters → tokens → events → nodes.

mod check;
mod event;
mod outline;
mod scan;
mod source;
mod token;
mod tree;

pub use check::check_syntax;
pub use outline::{Outline, OutlineItem, outline};
pub(crate) use source::Source;
pub(crate) use token::Style;
pub(crate) use tree::{Kind, NONE, Tree, TreeNode, compose, compose_text};
