//! Columns: takes rows of cells, gives lines in which every column is as wide as its widest cell. Knows
//! nothing of what they say.

/// Lines, each with its end; the last cell of a row is never padded, and no cell has more than one line.
pub(crate) fn lines(indent: &str, rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::from(indent);
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        out.extend([line.trim_end(), "\n"]);
    }
    out
}

/// White space of any kind and length is one blank.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [
            row(&["NAME", "READY"]),
            row(&["gemütlich", "yes"]),
            row(&["x"]),
            row(&["a\n  b"]),
        ];
        assert_eq!(
            lines("  ", &rows),
            "  NAME       READY\n  gemütlich  yes\n  x\n  a b\n"
        );
        assert_eq!(lines("", &[]), "");
    }
}
