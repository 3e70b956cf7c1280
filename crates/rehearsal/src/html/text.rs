//! Escapes text for HTML: escapes markup and replaces characters that change the reading order.

use std::fmt;

/// Maximum number of characters of a text.
const MAX_CHARS: usize = 2_000;

/// Escapes text for use between tags or inside a quoted attribute.
pub(super) fn text(from: &str) -> Text<'_> {
    Text {
        from,
        max_chars: MAX_CHARS,
    }
}

/// Escapes text and truncates it to `max_chars` characters.
pub(super) fn short(from: &str, max_chars: usize) -> Text<'_> {
    Text { from, max_chars }
}

/// Escaped text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    from: &'a str,
    max_chars: usize,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.from.chars();
        let visible = match self.from.chars().nth(self.max_chars) {
            Some(_) => self.max_chars.saturating_sub(1),
            None => self.max_chars,
        };
        for character in characters.by_ref().take(visible) {
            write_character(f, character)?;
        }
        if characters.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

fn write_character(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    match character {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        '\n' => f.write_str("\n"),
        '\t' => f.write_str(" "),
        other if other.is_control() || is_invisible(other) => f.write_str("\u{fffd}"),
        other => fmt::Write::write_char(f, other),
    }
}

/// Whether a character is invisible and changes how other characters are read (direction marks, joiners),
/// or is a noncharacter.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
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
    fn long_text_is_truncated_with_an_ellipsis() {
        assert_eq!(short("gemütlich", 9).to_string(), "gemütlich");
        assert_eq!(short("gemütlich", 5).to_string(), "gemü…");
        assert_eq!(short("", 0).to_string(), "");
        assert_eq!(short("ab", 0).to_string(), "…");
    }
}
