//! Finds the replaced lines that were kept as comments.

use mainstay_yaml::NodeKind;
use memchr::memmem;

use crate::lines;
use crate::mark::FORMER_LINE;
use crate::splice::Splice;
use crate::tree::View;

/// One replaced line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Former {
    /// Where its line starts.
    pub(super) line: usize,
    /// Where the sign stands.
    sign: usize,
    /// Where what it holds starts, behind the indentation.
    rest: usize,
    /// Just behind its line.
    pub(super) end: usize,
}

impl Former {
    /// The line as it was, from the sign's column on.
    fn content<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.rest..self.end).unwrap_or_default()
    }

    /// The column of its dash, if it was the first line of an item.
    pub(super) fn dash_column(&self, text: &[u8]) -> Option<usize> {
        let content = self.content(text);
        let spaces = content.iter().take_while(|byte| **byte == b' ').count();
        let dash = content.get(spaces) == Some(&b'-');
        dash.then_some(self.sign - self.line + spaces)
    }

    /// Whether it was a line with `key` in this column.
    pub(super) fn is_key(&self, text: &[u8], key: &str, column: usize) -> bool {
        let content = self.content(text);
        let spaces = content.iter().take_while(|byte| **byte == b' ').count();
        let rest = content.trim_ascii_start();
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        self.sign - self.line + spaces == column && rest.starts_with(key.as_bytes())
    }

    /// The line as it was.
    pub(super) fn restore(&self) -> Splice {
        Splice::remove(self.sign, self.rest)
    }
}

/// Every replaced line outside `frozen`. What looks like one inside a scalar is the user's text.
pub(super) fn formers(view: &View<'_>, frozen: &[(usize, usize)]) -> Vec<Former> {
    let text = view.text;
    let mut signs = memmem::find_iter(text, FORMER_LINE).peekable();
    if signs.peek().is_none() {
        return Vec::new();
    }
    let scalars = long_scalars(view);
    let within = |ranges: &[(usize, usize)], at: usize| {
        let index = ranges.partition_point(|(start, _)| *start <= at);
        index
            .checked_sub(1)
            .and_then(|index| ranges.get(index))
            .is_some_and(|(_, end)| at < *end)
    };
    signs
        .filter(|sign| !within(&scalars, *sign) && !within(frozen, *sign))
        .filter_map(|sign| former(text, sign))
        .collect()
}

fn former(text: &[u8], sign: usize) -> Option<Former> {
    lines::indent(text, sign)?;
    let behind = sign + FORMER_LINE.len();
    let rest = match text.get(behind) {
        Some(b' ') => behind + 1,
        Some(b'\n' | b'\r') | None => behind,
        Some(_) => return None,
    };
    Some(Former {
        line: lines::start(text, sign),
        sign,
        rest,
        end: lines::end(text, sign),
    })
}

/// Scalars of more than one line, in their order; they do not overlap.
fn long_scalars(view: &View<'_>) -> Vec<(usize, usize)> {
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
