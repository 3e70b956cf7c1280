//! Text between tokens: blanks, comments and line breaks.

use super::{Scan, Scanner};

impl Scanner<'_> {
    /// Moves to the next token.
    pub(super) fn skip_to_token(&mut self) -> Scan<()> {
        loop {
            self.require(1)?;
            if self.here.column == 0 && self.starts_with_mark() {
                self.skip();
                self.require(1)?;
            }
            self.skip_blanks(self.flow_level > 0 || !self.key_allowed)?;
            self.skip_comment()?;
            if self.break_len_at(0) == 0 {
                return Ok(());
            }
            self.require(2)?;
            self.skip_break();
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    /// Whether the text starts with a second byte order mark. go-yaml looks for one only at the start of
    /// its buffer, and then drops the first character of each line until the buffer moves.
    fn starts_with_mark(&self) -> bool {
        self.here.at < 512 && self.text.starts_with('\u{feff}')
    }

    /// Skips spaces, and tabs if they cannot be indentation.
    pub(super) fn skip_blanks(&mut self, tabs: bool) -> Scan<()> {
        self.skip_spaces(usize::MAX);
        while tabs && self.byte(0) == b'\t' {
            self.skip();
            self.skip_spaces(usize::MAX);
        }
        self.require(1)
    }

    pub(super) fn skip_comment(&mut self) -> Scan<()> {
        if self.byte(0) == b'#' {
            let end = self.line_end();
            self.advance_to(end);
            self.require(1)?;
        }
        Ok(())
    }

    /// Returns the end of the current line.
    pub(super) fn line_end(&self) -> usize {
        let mut at = self.here.at as usize;
        let rest = self.source.get(at..).unwrap_or_default();
        at += rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r' | 0xC2 | 0xE2))
            .unwrap_or(rest.len());
        while let Some(byte) = self.source.get(at) {
            match byte {
                b'\n' | b'\r' => break,
                0xC2 | 0xE2 if crate::chars::break_len(self.source, at) > 0 => break,
                _ => at += 1,
            }
        }
        at
    }
}
