//! Width of the terminal.

use console::Term;

/// Returns `$COLUMNS`, or the width of the terminal on stdout; `None` if stdout is not a terminal.
pub(super) fn terminal_width() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|text| text.parse().ok());
    columns
        .filter(|columns| *columns > 0)
        .or_else(|| Term::stdout().size_checked().map(|(_, columns)| columns))
}
