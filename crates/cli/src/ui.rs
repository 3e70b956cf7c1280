//! Terminal output shared by all commands: styles, tables, source snippets, progress and error chains.

pub(crate) mod help;
pub(crate) mod progress;
pub(crate) mod snippet;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod verbose;
mod width;

pub(crate) use mainstay_gostd::error::chain;
pub(crate) use progress::{BarRow, Bars, Progress};
#[cfg(feature = "simulator")]
pub(crate) use width::reserve_margin;

/// Formats a count with its noun: `1 proxy`, `2 proxies`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
