//! Unified diffs that `patch` accepts.

use std::io::Write;
use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

/// Number of context lines.
const CONTEXT: usize = 3;

/// Returns the unified diff of two versions of a file.
pub(super) fn unified(name: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = write!(out, "--- a/{name}\n+++ b/{name}\n");
    for hunk in group_diff_ops(operations(&old, &new), CONTEXT) {
        write_hunk(&hunk, &old, &new, &mut out);
    }
    out
}

/// Splits text into lines including their newline.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Compares the texts document by document. Edits never move document markers, so the cost is linear in the
/// length of the text.
fn operations(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffOp> {
    let (olds, news) = (documents(old), documents(new));
    if olds.len() != news.len() {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mut operations = Vec::new();
    for (old_range, new_range) in olds.into_iter().zip(news) {
        let (before, after) = (part(old, &old_range), part(new, &new_range));
        let found = capture_diff_slices(Algorithm::Myers, before, after);
        operations.extend(
            found
                .into_iter()
                .map(|it| shift_operation(it, old_range.start, new_range.start)),
        );
    }
    merge_equal_ranges(operations)
}

fn part<'a, 'b>(lines: &'b [&'a [u8]], range: &Range<usize>) -> &'b [&'a [u8]] {
    lines.get(range.clone()).unwrap_or_default()
}

/// Returns the line range of each document.
fn documents(lines: &[&[u8]]) -> Vec<Range<usize>> {
    let marks = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with(b"---"))
        .map(|(number, _)| number);
    let starts: Vec<usize> = std::iter::once(0).chain(marks).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

fn shift_operation(operation: DiffOp, old: usize, new: usize) -> DiffOp {
    let (tag, o, n) = operation.as_tag_tuple();
    new_operation(tag, o.start + old..o.end + old, n.start + new..n.end + new)
}

fn new_operation(tag: DiffTag, old: Range<usize>, new: Range<usize>) -> DiffOp {
    let (old_index, new_index) = (old.start, new.start);
    match tag {
        DiffTag::Equal => DiffOp::Equal {
            old_index,
            new_index,
            len: old.len(),
        },
        DiffTag::Delete => DiffOp::Delete {
            old_index,
            old_len: old.len(),
            new_index,
        },
        DiffTag::Insert => DiffOp::Insert {
            old_index,
            new_index,
            new_len: new.len(),
        },
        DiffTag::Replace => DiffOp::Replace {
            old_index,
            old_len: old.len(),
            new_index,
            new_len: new.len(),
        },
    }
}

/// Merges adjacent equal ranges, so that context spans documents.
fn merge_equal_ranges(operations: Vec<DiffOp>) -> Vec<DiffOp> {
    let mut all: Vec<DiffOp> = Vec::with_capacity(operations.len());
    for operation in operations {
        match (all.last_mut(), operation) {
            (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) => *len += more,
            _ => all.push(operation),
        }
    }
    all
}

fn write_hunk(hunk: &[DiffOp], old: &[&[u8]], new: &[&[u8]], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let olds = first.old_range().start..last.old_range().end;
    let news = first.new_range().start..last.new_range().end;
    let _ = writeln!(out, "@@ -{} +{} @@", numbers(&olds), numbers(&news));
    for operation in hunk {
        let (tag, o, n) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            write_lines(b' ', old, o, out);
            continue;
        }
        write_lines(b'-', old, o, out);
        write_lines(b'+', new, n, out);
    }
}

/// Formats `START,COUNT` like diff: no count for one line, and the previous line for an empty range.
fn numbers(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        count => format!("{},{count}", range.start + 1),
    }
}

fn write_lines(sign: u8, lines: &[&[u8]], range: Range<usize>, out: &mut Vec<u8>) {
    for line in lines.get(range).unwrap_or_default() {
        out.push(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let found = String::from_utf8(unified("f", old.as_bytes(), new.as_bytes())).unwrap();
        assert_eq!(found, format!("--- a/f\n+++ b/f\n{expected}"));
    }

    #[test]
    fn changes_have_context() {
        check("a\nb\nc\n", "a\nx\nb\nc\n", "@@ -1,3 +1,4 @@\n a\n+x\n b\n c\n");
        check("a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check(
            "a",
            "a\nb",
            "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n",
        );
    }

    #[test]
    fn context_spans_documents() {
        check(
            "a\n---\nb\n---\nc\n",
            "a\n---\nb\nx\n---\nc\n",
            "@@ -1,5 +1,6 @@\n a\n ---\n b\n+x\n ---\n c\n",
        );
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old: String = (0..20)
            .flat_map(|n: usize| [n.to_string(), "\n".to_owned()])
            .collect();
        let new = old.replace("2\n3\n", "2\nx\n3\n").replace("16\n", "16\ny\n");
        let text = String::from_utf8(unified("f", old.as_bytes(), new.as_bytes())).unwrap();
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
    }

    #[test]
    fn many_documents_are_compared_in_linear_time() {
        let old = "---\na: b\nc: d\n".repeat(20_000);
        let new = "---\na: b\nx: y\nc: d\n".repeat(20_000);
        assert!(unified("f", old.as_bytes(), new.as_bytes()).len() > old.len());
    }
}
