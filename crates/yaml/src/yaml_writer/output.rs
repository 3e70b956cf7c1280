//! The text under construction: takes pieces, keeps column and indentation as libyaml does.

/// Text and the place in it.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: String,
    /// Characters since the last line break.
    pub(super) column: usize,
    /// Indentation of the innermost block; -1 outside of any.
    pub(super) indent: i64,
    /// Whether the last thing written was a blank or a line break.
    pub(super) whitespace: bool,
    /// Whether only indentation stands on this line.
    pub(super) indention: bool,
    /// Where lines are folded.
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

    /// One character, no line break.
    pub(super) fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    /// Characters without a line break.
    pub(super) fn put_all(&mut self, text: &str) {
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

    /// A line break of the value itself, kept as it is.
    pub(super) fn own_break(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
        self.indention = true;
    }

    /// Goes to the indentation, on a new line unless this one is still free.
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

    /// An indicator, after a blank if `apart`; `keeps_indention` for those that a nested block may follow on the line.
    pub(super) fn indicator(&mut self, indicator: &str, apart: bool, keeps_indention: bool) {
        if apart {
            self.blank();
        }
        self.put_all(indicator);
        self.whitespace = false;
        self.indention &= keeps_indention;
    }

    pub(super) fn blank(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    pub(super) fn ends_word(&mut self) {
        self.whitespace = false;
        self.indention = false;
    }
}
