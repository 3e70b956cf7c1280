//! A terminal in memory, for tests of progress bars.

use std::io;
use std::sync::{Arc, Mutex};

use indicatif::TermLike;

/// A terminal with a fixed number of columns. Lines wrap when a character follows a full line.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    columns: usize,
    grid: Arc<Mutex<Grid>>,
}

#[derive(Debug, Default)]
struct Grid {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            columns,
            grid: Arc::default(),
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the lines of the screen without trailing spaces and empty lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let grid = self.grid.lock().unwrap();
        let lines = grid.rows.iter().map(|row| row.iter().collect::<String>());
        let mut lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
        lines.truncate(
            lines
                .iter()
                .rposition(|line| !line.is_empty())
                .map_or(0, |last| last + 1),
        );
        lines
    }

    #[allow(clippy::unnecessary_wraps, reason = "the result of the terminal's methods")]
    fn change(&self, change: impl FnOnce(&mut Grid)) -> io::Result<()> {
        change(&mut self.grid.lock().unwrap());
        Ok(())
    }
}

impl Grid {
    fn write(&mut self, text: &str, columns: usize) {
        for character in text.chars() {
            match character {
                '\r' => self.column = 0,
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                character => self.put(character, columns),
            }
        }
    }

    fn put(&mut self, character: char, columns: usize) {
        if self.column == columns {
            (self.row, self.column) = (self.row + 1, 0);
        }
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = character;
        self.column += 1;
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        u16::try_from(self.columns).unwrap()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.row = grid.row.saturating_sub(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.row += n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.column += n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.change(|grid| grid.column = grid.column.saturating_sub(n))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.change(|grid| grid.write(text, self.columns))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.change(|grid| {
            if let Some(row) = grid.rows.get_mut(grid.row) {
                row.clear();
            }
            grid.column = 0;
        })
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
