//! Reading of YAML text into a tree of nodes as in go-yaml v2: bytes → characters → tokens → events →
//! nodes.

mod check;
mod event;
mod outline;
mod scan;
mod simple;
mod source;
mod token;
mod tree;

pub use check::check_syntax;
pub use outline::{Outline, OutlineItem, outline, root_scalar};
pub use simple::{Elision, ElisionRules, elidable_values, is_simple};
pub(crate) use source::Source;
pub(crate) use token::Style;
pub(crate) use tree::{Kind, NONE, Tree, TreeNode, compose, compose_text};
