//! Finds replaced lines that were kept as comments.

use mainstay_yaml::NodeKind;
use memchr::memmem;

use crate::lines;
use crate::mark::REPLACED_LINE_MARK;
use crate::splice::Splice;
use crate::tree::View;

/// A replaced line that was kept as a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplacedLine {
    /// Start of the comment's line.
    pub(super) line: usize,
    /// Start of the mark.
    mark: usize,
    /// Start of the replaced line, without the indentation before the mark.
    content_start: usize,
    /// End of the comment's line, after the line break.
    pub(super) end: usize,
}

impl ReplacedLine {
    /// Returns the replaced line without the indentation before the mark.
    fn content<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.content_start..self.end).unwrap_or_default()
    }

    /// Returns the column of the dash if the replaced line is the first line of an item.
    pub(super) fn dash_column(&self, text: &[u8]) -> Option<usize> {
        let content = self.content(text);
        let spaces = content.iter().take_while(|byte| **byte == b' ').count();
        let dash = content.get(spaces) == Some(&b'-');
        dash.then_some(self.mark - self.line + spaces)
    }

    /// Whether the replaced line contains `key` in `column`.
    pub(super) fn is_key(&self, text: &[u8], key: &str, column: usize) -> bool {
        let content = self.content(text);
        let spaces = content.iter().take_while(|byte| **byte == b' ').count();
        let rest = content.trim_ascii_start();
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        self.mark - self.line + spaces == column && rest.starts_with(key.as_bytes())
    }

    /// Returns the splice that restores the replaced line.
    pub(super) fn restore(&self) -> Splice {
        Splice::remove(self.mark, self.content_start)
    }
}

/// Returns all replaced lines outside of `frozen`. Similar text in a scalar belongs to the user.
pub(super) fn find_replaced_lines(view: &View<'_>, frozen: &[(usize, usize)]) -> Vec<ReplacedLine> {
    let text = view.text;
    let mut marks = memmem::find_iter(text, REPLACED_LINE_MARK).peekable();
    if marks.peek().is_none() {
        return Vec::new();
    }
    let scalars = multi_line_scalars(view);
    let is_within = |ranges: &[(usize, usize)], at: usize| {
        let index = ranges.partition_point(|(start, _)| *start <= at);
        index
            .checked_sub(1)
            .and_then(|index| ranges.get(index))
            .is_some_and(|(_, end)| at < *end)
    };
    marks
        .filter(|mark| !is_within(&scalars, *mark) && !is_within(frozen, *mark))
        .filter_map(|mark| parse_replaced_line(text, mark))
        .collect()
}

fn parse_replaced_line(text: &[u8], mark: usize) -> Option<ReplacedLine> {
    lines::indent(text, mark)?;
    let mark_end = mark + REPLACED_LINE_MARK.len();
    let content_start = match text.get(mark_end) {
        Some(b' ') => mark_end + 1,
        Some(b'\n' | b'\r') | None => mark_end,
        Some(_) => return None,
    };
    Some(ReplacedLine {
        line: lines::start(text, mark),
        mark,
        content_start,
        end: lines::end(text, mark),
    })
}

/// Returns the ranges of scalars with several lines, in their order; they do not overlap.
fn multi_line_scalars(view: &View<'_>) -> Vec<(usize, usize)> {
    let scalars = view
        .document
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Scalar { .. }));
    scalars
        .filter(|node| node.span.start.line != node.span.end.line)
        .map(|node| (node.span.start.offset, node.span.end.offset))
        .collect()
}
