//! Lines of progress bars that fit the terminal: label, bar, counts and a note, in aligned columns.

use console::{measure_text_width, truncate_str};

use super::BarRow;
use crate::ui::table::one_line;

/// Maximum width of a bar between its brackets.
const MAX_BAR: usize = 30;
/// Minimum width of a bar between its brackets.
const MIN_BAR: usize = 8;

/// Formats rows for a terminal with `columns` columns. No line reaches the last column: some terminals wrap
/// there, and the next update would start one line too low.
pub(super) fn lines(rows: &[BarRow], columns: usize) -> Vec<String> {
    let width = columns.saturating_sub(1);
    let labels = widest(rows.iter().map(|row| measure_text_width(row.label.trim_end())));
    let counts = widest(rows.iter().map(|row| counts(row).len()));
    let layout = Layout {
        label: labels.min(width / 3),
        bar: (width / 4).clamp(MIN_BAR, MAX_BAR),
        counts,
        width,
    };
    rows.iter().map(|row| layout.line(row)).collect()
}

fn widest(widths: impl Iterator<Item = usize>) -> usize {
    widths.max().unwrap_or_default()
}

fn counts(row: &BarRow) -> String {
    format!("{}/{}", row.done, row.total)
}

/// Widths of columns.
struct Layout {
    label: usize,
    bar: usize,
    counts: usize,
    width: usize,
}

impl Layout {
    fn line(&self, row: &BarRow) -> String {
        // Labels are indented by spaces, which `one_line` would remove.
        let label = truncate_middle(row.label.trim_end(), self.label);
        let padding = " ".repeat(self.label.saturating_sub(measure_text_width(&label)));
        let line = format!(
            "{label}{padding} [{}] {:>width$} {}",
            self.bar(row),
            counts(row),
            one_line(&row.note),
            width = self.counts
        );
        truncate_str(line.trim_end(), self.width, "…").into_owned()
    }

    fn bar(&self, row: &BarRow) -> String {
        let filled = match row.total {
            0 => 0,
            total => (row.done.min(total) * self.bar) / total,
        };
        let head = if filled < self.bar && row.done > 0 {
            ">"
        } else {
            ""
        };
        format!(
            "{:<width$}",
            format!("{}{head}", "=".repeat(filled)),
            width = self.bar
        )
    }
}

/// Shortens a label in its middle: names often differ at their end.
fn truncate_middle(label: &str, width: usize) -> String {
    if measure_text_width(label) <= width {
        return label.to_owned();
    }
    let characters: Vec<char> = label.chars().collect();
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let start = characters.iter().take(head);
    let end = characters.iter().skip(characters.len().saturating_sub(tail));
    start.chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, done: usize, total: usize, note: &str) -> BarRow {
        BarRow {
            label: label.to_owned(),
            done,
            total,
            note: note.to_owned(),
        }
    }

    fn rows() -> Vec<BarRow> {
        vec![
            row("  batch 1", 4, 4, ""),
            row("  batch 2", 1, 4, "2 moving, 1 failed"),
            row(
                "default",
                5,
                12,
                "InProgress, batch 2/3, 2 moving, 1 failed, 0 skipped; waiting: MigrationPaused: spec.updateStrategy.workloadMigration.paused is true",
            ),
        ]
    }

    fn check(columns: usize, expected: &[&str]) {
        let lines = lines(&rows(), columns);
        assert!(
            lines.iter().all(|line| measure_text_width(line) < columns),
            "{lines:#?}"
        );
        assert_eq!(lines, expected, "{columns} columns");
    }

    #[test]
    fn lines_fit_60_columns() {
        check(
            60,
            &[
                "  batch 1 [==============]  4/4",
                "  batch 2 [===>          ]  1/4 2 moving, 1 failed",
                "default   [=====>        ] 5/12 InProgress, batch 2/3, 2 m…",
            ],
        );
    }

    #[test]
    fn lines_fit_80_columns() {
        check(
            80,
            &[
                "  batch 1 [===================]  4/4",
                "  batch 2 [====>              ]  1/4 2 moving, 1 failed",
                "default   [=======>           ] 5/12 InProgress, batch 2/3, 2 moving, 1 failed…",
            ],
        );
    }

    #[test]
    fn lines_fit_140_columns() {
        check(
            140,
            &[
                "  batch 1 [==============================]  4/4",
                "  batch 2 [=======>                      ]  1/4 2 moving, 1 failed",
                "default   [============>                 ] 5/12 InProgress, batch 2/3, 2 moving, 1 failed, 0 skipped; waiting: MigrationPaused: spec.updat…",
            ],
        );
    }

    #[test]
    fn long_labels_keep_their_end() {
        let rows = [row(
            "a-very-long-deployment-name-in-production-eu-west-1",
            0,
            0,
            "x",
        )];
        let line = lines(&rows, 60).remove(0);
        assert_eq!(line, "a-very-lo…eu-west-1 [              ] 0/0 x");
        assert!(lines(&rows, 12).iter().all(|line| measure_text_width(line) < 12));
    }
}
