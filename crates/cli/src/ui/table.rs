//! Tables without borders that fit the terminal.

use comfy_table::{ContentArrangement, Table, presets};

use super::width::terminal_width;

/// Spaces between two columns.
const GAP: u16 = 2;

/// Formats rows as lines with aligned columns. Cells are wrapped if the terminal is too narrow.
pub(crate) fn lines(indent: &str, rows: &[Vec<String>]) -> String {
    fitted(indent, rows, terminal_width())
}

fn fitted(indent: &str, rows: &[Vec<String>], width: Option<u16>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width {
        let indent = u16::try_from(indent.len()).unwrap_or(0);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // The last column's gap is trimmed.
        table.set_width(width.saturating_sub(indent).saturating_add(GAP));
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| one_line(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    let text = table.trim_fmt();
    let lines = text.lines().flat_map(|line| [indent, line.trim_end(), "\n"]);
    lines.collect()
}

/// Replaces all whitespace, including newlines, by single spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::fitted;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        let row = |cells: &&[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        rows.iter().map(row).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = rows(&[&["NAME", "READY"], &["gemütlich", "yes"], &["x"], &["a\n  b"]]);
        assert_eq!(
            fitted("  ", &rows, None),
            "  NAME       READY\n  gemütlich  yes\n  x\n  a b\n"
        );
        assert_eq!(fitted("", &[], Some(80)), "");
    }

    #[test]
    fn tables_fit_the_terminal() {
        let long = "one two three four five six seven eight nine ten";
        let rows = rows(&[&["NAME", "MESSAGE"], &["default", long]]);
        for width in [20, 30, 40] {
            let text = fitted("  ", &rows, Some(width));
            assert!(
                text.lines()
                    .all(|line| line.chars().count() <= usize::from(width)),
                "{width}:\n{text}"
            );
        }
        assert_eq!(fitted("  ", &rows, Some(80)).lines().count(), 2);
    }
}
