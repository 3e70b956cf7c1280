//! Formatting of strings and bytes: truncated to the precision, quoted, or in hexadecimal.

use super::Printer;
use mainstay_gostd::quote::{can_backquote, quote, quote_to_ascii};
use mainstay_gostd::utf8;

impl Printer<'_> {
    /// Writes `text`. Returns `false` if the verb does not apply to strings.
    pub(super) fn string(&mut self, text: &[u8], verb: u32) -> bool {
        match u8::try_from(verb).unwrap_or(0) {
            b'v' if self.flags.sharp_v => self.quoted(text),
            b'v' | b's' => {
                let text = self.truncate(text);
                self.pad(text);
            }
            b'x' => self.hexadecimal_bytes(text, false),
            b'X' => self.hexadecimal_bytes(text, true),
            b'q' => self.quoted(text),
            _ => return false,
        }
        true
    }

    fn truncate<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.flags
            .precision
            .map_or(text, |precision| utf8::prefix(text, precision))
    }

    pub(super) fn quoted(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        if self.flags.sharp && can_backquote(text) {
            let raw = [b"`", text, b"`"].concat();
            return self.pad(&raw);
        }
        let quoted = if self.flags.plus {
            quote_to_ascii(text)
        } else {
            quote(text)
        };
        self.pad(quoted.as_bytes());
    }

    pub(super) fn hexadecimal_bytes(&mut self, text: &[u8], upper: bool) {
        let shown = self
            .flags
            .precision
            .map_or(text.len(), |precision| precision.min(text.len()));
        let text = text.get(..shown).unwrap_or(text);
        if text.is_empty() {
            return self.push_padding(self.flags.width.unwrap_or(0));
        }
        let prefix: &[u8] = if upper { b"0X" } else { b"0x" };
        let mut out = Vec::with_capacity(2 * text.len() + 2);
        for (index, byte) in text.iter().enumerate() {
            if self.flags.space && index > 0 {
                out.push(b' ');
            }
            if self.flags.sharp && (self.flags.space || index == 0) {
                out.extend_from_slice(prefix);
            }
            let code = if upper {
                format!("{byte:02X}")
            } else {
                format!("{byte:02x}")
            };
            out.extend_from_slice(code.as_bytes());
        }
        // Go does not count the prefix in the width of a spaced dump, so the padding does not, either.
        let counted = match (self.flags.space, self.flags.sharp) {
            (true, true) => 4 * text.len() + text.len() - 1,
            _ => out.len(),
        };
        let missing = self.flags.width.unwrap_or(0).saturating_sub(counted);
        if !self.flags.minus {
            self.push_padding(missing);
        }
        self.push(&out);
        if self.flags.minus {
            self.push_padding(missing);
        }
    }
}
