//! Formats rows of text as aligned columns.

/// Formats `rows` below `header` with two spaces between columns.
pub(crate) fn layout(header: &[&str], rows: &[Vec<String>]) -> String {
    let all: Vec<Vec<String>> = std::iter::once(header.iter().map(ToString::to_string).collect())
        .chain(rows.iter().cloned())
        .collect();
    let width = |column: usize| {
        all.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..header.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    all.iter()
        .map(|row| line(row, &widths))
        .collect::<Vec<_>>()
        .join("\n")
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:<width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = vec![
            vec!["long cell".to_owned(), "x".to_owned()],
            vec!["é".to_owned(), "y".to_owned()],
        ];
        assert_eq!(
            layout(&["a", "b"], &rows),
            "a          b\nlong cell  x\né          y"
        );
    }
}
