//! Output text with the column and indentation that libyaml maintains.

/// Output text and the current position.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: String,
    /// Number of characters since the last line break.
    pub(super) column: usize,
    /// Indentation of the innermost block; -1 outside any block.
    pub(super) indent: i64,
    /// Whether the last character is a blank or a line break.
    pub(super) whitespace: bool,
    /// Whether the current line contains only indentation.
    pub(super) indention: bool,
    /// Column at which lines are folded.
    pub(super) width: usize,
}

impl Output {
    pub(super) fn new(width: usize) -> Self {
        Self {
            text: String::new(),
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
            width,
        }
    }

    /// Writes one character that is not a line break.
    pub(super) fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    /// Writes text without line breaks.
    pub(super) fn put_str(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += if text.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        };
    }

    pub(super) fn line_break(&mut self) {
        self.text.push('\n');
        self.column = 0;
        self.indention = true;
    }

    /// Writes a line break that belongs to the value.
    pub(super) fn put_break(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
        self.indention = true;
    }

    /// Moves to the indentation, on a new line unless the current line contains only indentation.
    pub(super) fn indent_line(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        if let Some(missing) = indent.checked_sub(self.column) {
            self.text.extend(std::iter::repeat_n(' ', missing));
            self.column = indent;
        }
        self.whitespace = true;
        self.indention = true;
    }

    /// Writes an indicator, after a blank if `apart` is set. `keeps_indention` must be set for indicators
    /// that a nested block may follow on the same line.
    pub(super) fn indicator(&mut self, indicator: &str, apart: bool, keeps_indention: bool) {
        if apart {
            self.blank();
        }
        self.put_str(indicator);
        self.whitespace = false;
        self.indention &= keeps_indention;
    }

    pub(super) fn blank(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    pub(super) fn end_word(&mut self) {
        self.whitespace = false;
        self.indention = false;
    }
}
