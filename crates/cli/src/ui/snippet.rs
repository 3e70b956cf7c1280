//! Source lines with carets.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Part of a source line that an error or finding points at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excerpt<'a> {
    /// Line number, starting at 1.
    pub(crate) line: usize,
    /// The source line.
    pub(crate) text: &'a str,
    /// Number of characters before the caret; no caret if `None`.
    pub(crate) indent: Option<usize>,
    /// Number of carets.
    pub(crate) width: usize,
}

/// Severity of the marked part; determines the color of the carets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Error,
    Warning,
    Note,
}

/// Draws a source line with carets, each line with its newline.
pub(crate) fn draw(excerpt: &Excerpt<'_>, mark: Mark) -> String {
    let level = match mark {
        Mark::Error => Level::ERROR,
        Mark::Warning => Level::WARNING,
        Mark::Note => Level::NOTE,
    };
    let clipped = clip(excerpt);
    let snippet = Snippet::source(&clipped.text).line_start(excerpt.line);
    let snippet = match clipped.indent {
        Some(indent) => {
            let text = &clipped.text;
            let span = bytes(text, indent)..bytes(text, indent + clipped.width);
            snippet.annotation(AnnotationKind::Primary.span(span))
        }
        None => snippet.annotation(AnnotationKind::Visible.span(0..0)),
    };
    let group = Group::with_level(level).element(snippet);
    let text = Renderer::styled().term_width(MAX_WIDTH).render(&[group]);
    let lines = text.lines().flat_map(|line| [line, "\n"]);
    lines.collect()
}

/// Maximum number of shown characters before and after the caret.
const SHOWN_BEFORE: usize = 120;
const SHOWN_AFTER: usize = 120;

/// Maximum width of the renderer, so that it does not shorten the shown part again.
const MAX_WIDTH: usize = 2 * (SHOWN_BEFORE + SHOWN_AFTER);

/// The shown part of a source line.
struct Clipped {
    text: String,
    indent: Option<usize>,
    width: usize,
}

/// Shortens a long line, with an ellipsis at each end that is cut off.
fn clip(excerpt: &Excerpt<'_>) -> Clipped {
    let indent = excerpt.indent.unwrap_or_default();
    let start = indent.saturating_sub(SHOWN_BEFORE);
    let mut shown = excerpt.text.chars().skip(start);
    let mut text = String::from(if start > 0 { "…" } else { "" });
    text.extend(shown.by_ref().take(indent - start + SHOWN_AFTER));
    if shown.next().is_some() {
        text.push('…');
    }
    Clipped {
        text,
        indent: excerpt
            .indent
            .map(|indent| indent - start + usize::from(start > 0)),
        width: excerpt.width.min(SHOWN_AFTER),
    }
}

/// Returns the byte offset of a character.
fn bytes(text: &str, characters: usize) -> usize {
    text.char_indices()
        .nth(characters)
        .map_or(text.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(excerpt: &Excerpt<'_>, expected: &str) {
        let text = draw(excerpt, Mark::Error);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
    }

    #[test]
    fn carets_point_at_characters() {
        let excerpt = Excerpt {
            line: 12,
            text: "ü: {{ .x }}",
            indent: Some(6),
            width: 2,
        };
        check(&excerpt, "   |\n12 | ü: {{ .x }}\n   |       ^^\n");
        let end = Excerpt {
            text: "a:",
            indent: Some(2),
            width: 1,
            ..excerpt
        };
        check(&end, "   |\n12 | a:\n   |   ^\n");
    }

    #[test]
    fn a_long_line_is_cut() {
        let text = format!("{}b{}", "a".repeat(1_000_000), "c".repeat(1_000_000));
        let excerpt = Excerpt {
            line: 1,
            text: &text,
            indent: Some(1_000_000),
            width: 1,
        };
        let (before, after) = ("a".repeat(120), "c".repeat(119));
        let blanks = " ".repeat(122);
        check(&excerpt, &format!("  |\n1 | …{before}b{after}…\n  |{blanks}^\n"));
    }

    #[test]
    fn a_line_without_a_column_has_no_caret() {
        let excerpt = Excerpt {
            line: 3,
            text: "a: b",
            indent: None,
            width: 0,
        };
        check(&excerpt, "  |\n3 | a: b\n  |\n");
    }
}
