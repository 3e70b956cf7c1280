//! Width of the terminal.

use std::sync::atomic::{AtomicU16, Ordering};

use console::Term;

/// Assumed width if a terminal does not report one.
const DEFAULT_COLUMNS: u16 = 80;

/// Columns at the start of each line that tables do not use.
static MARGIN: AtomicU16 = AtomicU16::new(0);

/// Reserves columns at the start of each line, by which a command indents the tables of another one.
#[cfg(feature = "simulator")]
pub(crate) fn reserve_margin(columns: u16) {
    MARGIN.store(columns, Ordering::Relaxed);
}

/// Returns the width without the margin: `$COLUMNS`, or the width of the terminal on stdout; `None` if
/// stdout is not a terminal.
pub(super) fn terminal_width() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|text| text.parse().ok());
    let columns = columns
        .filter(|columns| *columns > 0)
        .or_else(|| Term::stdout().size_checked().map(|(_, columns)| columns));
    columns.map(|columns| columns.saturating_sub(MARGIN.load(Ordering::Relaxed)))
}

/// Returns the width of the terminal on stdout for lines that are drawn again. `$COLUMNS` may be outdated
/// after a resize, so it is only used if the terminal does not report its width.
pub(super) fn terminal_columns() -> usize {
    let size = Term::stdout().size_checked().map(|(_, columns)| columns);
    usize::from(size.or_else(terminal_width).unwrap_or(DEFAULT_COLUMNS))
}
