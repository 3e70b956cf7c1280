//! Terminal output shared by all commands: styles, tables, source snippets, progress and error chains.

pub(crate) mod chain;
pub(crate) mod progress;
pub(crate) mod snippet;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod verbose;
mod width;

pub(crate) use chain::chain;
pub(crate) use progress::{BarRow, Bars, Progress};
