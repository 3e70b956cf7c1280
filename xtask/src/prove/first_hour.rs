//! Proof of the first hour with Mainstay: what a new user downloads, installs and reads.

mod dist;
mod docs;

use super::row::Row;

/// Returns all rows; the quick share packages a development build.
pub(super) fn rows(quick: bool) -> Vec<Row> {
    let mut rows = dist::rows(quick);
    rows.extend(docs::rows(quick));
    rows
}
