//! Width of the terminal.

use console::Term;

/// Assumed width if a terminal does not report one.
const DEFAULT_COLUMNS: u16 = 80;

/// Returns `$COLUMNS`, or the width of the terminal on stdout; `None` if stdout is not a terminal.
pub(super) fn terminal_width() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|text| text.parse().ok());
    columns
        .filter(|columns| *columns > 0)
        .or_else(|| Term::stdout().size_checked().map(|(_, columns)| columns))
}

/// Returns the width of the terminal on stdout for lines that are drawn again. `$COLUMNS` may be outdated
/// after a resize, so it is only used if the terminal does not report its width.
pub(super) fn terminal_columns() -> usize {
    let size = Term::stdout().size_checked().map(|(_, columns)| columns);
    usize::from(size.or_else(terminal_width).unwrap_or(DEFAULT_COLUMNS))
}
