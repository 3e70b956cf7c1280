//! Text that may stand anywhere in a page: takes any text, gives it with nothing in it that a browser would take for markup, and nothing that
//! would make it read in another order.

use std::fmt;

/// No text is longer than this; what follows is counted.
const LONGEST: usize = 2_000;

/// Text to be written with `{}`, between tags or inside a quoted attribute.
pub(super) fn text(from: &str) -> Text<'_> {
    Text { from, most: LONGEST }
}

/// The same, cut to so many characters.
pub(super) fn short(from: &str, most: usize) -> Text<'_> {
    Text { from, most }
}

/// Harmless text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    from: &'a str,
    most: usize,
}

impl Text<'_> {
    /// How many characters are shown.
    pub(super) fn width(&self) -> usize {
        self.from.chars().take(self.most).count()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.from.chars();
        let room = match self.from.chars().nth(self.most) {
            Some(_) => self.most.saturating_sub(1),
            None => self.most,
        };
        for letter in letters.by_ref().take(room) {
            write_letter(f, letter)?;
        }
        if letters.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

fn write_letter(f: &mut fmt::Formatter<'_>, letter: char) -> fmt::Result {
    match letter {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        '\n' => f.write_str("\n"),
        '\t' => f.write_str(" "),
        other if other.is_control() || is_turning(other) => f.write_str("\u{fffd}"),
        other => fmt::Write::write_char(f, other),
    }
}

/// Letters that are not seen and change how others are read: directions, joiners, marks of order; and what is no letter at all.
fn is_turning(letter: char) -> bool {
    matches!(letter,
        '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            text("<b a='\"'>&").to_string(),
            "&lt;b a=&#39;&quot;&#39;&gt;&amp;"
        );
        assert_eq!(
            text("a\u{202e}b\u{0}\u{1b}").to_string(),
            "a\u{fffd}b\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        assert_eq!(short("gemütlich", 9).to_string(), "gemütlich");
        assert_eq!(short("gemütlich", 5).to_string(), "gemü…");
        assert_eq!(short("gemütlich", 5).width(), 5);
        assert_eq!(short("", 0).to_string(), "");
        assert_eq!(short("ab", 0).to_string(), "…");
    }
}
