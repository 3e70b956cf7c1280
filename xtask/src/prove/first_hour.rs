//! `cargo xtask prove first-hour`: what a new user meets.

mod docs;

use super::Row;

/// Returns the rows.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    docs::rows(quick)
}
