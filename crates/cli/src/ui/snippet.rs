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
    let snippet = Snippet::source(excerpt.text).line_start(excerpt.line);
    let snippet = match excerpt.indent {
        Some(indent) => {
            let span = bytes(excerpt.text, indent)..bytes(excerpt.text, indent + excerpt.width);
            snippet.annotation(AnnotationKind::Primary.span(span))
        }
        None => snippet.annotation(AnnotationKind::Visible.span(0..0)),
    };
    let group = Group::with_level(level).element(snippet);
    let text = Renderer::styled().render(&[group]);
    let lines = text.lines().flat_map(|line| [line, "\n"]);
    lines.collect()
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
