//! Replaces ranges of a text and maps offsets of the new text to the original.

use std::cmp::Reverse;

/// Replacement of the bytes from `start` to `end` by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
    /// Depth of the insertion: of several insertions at one offset the deepest comes first.
    pub(crate) depth: usize,
}

impl Splice {
    /// Inserts `text` at an offset.
    pub(crate) fn insert(at: usize, text: String) -> Self {
        Self::replace(at, at, text)
    }

    /// Replaces a range by `text`.
    pub(crate) fn replace(start: usize, end: usize, text: String) -> Self {
        Self {
            start,
            end,
            text,
            depth: 0,
        }
    }

    /// Removes a range.
    pub(crate) fn remove(start: usize, end: usize) -> Self {
        Self::replace(start, end, String::new())
    }
}

/// Sorts splices by position; at one position insertions come first, the deepest one before the others.
pub(crate) fn sort(splices: &mut [Splice]) {
    splices.sort_by_key(|splice| (splice.start, splice.end, Reverse(splice.depth)));
}

/// Applies `splices`, which must be sorted, to `text`; `None` if two of them overlap or one is out of
/// range.
pub(crate) fn apply(text: &[u8], splices: &[Splice]) -> Option<Vec<u8>> {
    let grown: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut out = Vec::with_capacity(text.len() + grown);
    let mut at = 0;
    for splice in splices {
        out.extend_from_slice(text.get(at..splice.start)?);
        out.extend_from_slice(splice.text.as_bytes());
        at = splice.end.max(splice.start);
    }
    out.extend_from_slice(text.get(at..)?);
    Some(out)
}

/// Maps `offset` in the new text to an offset in the original.
pub(crate) fn original_offset(splices: &[Splice], offset: usize) -> usize {
    let (mut old, mut new) = (0, 0);
    for splice in splices {
        let kept = splice.start.saturating_sub(old);
        if offset < new + kept {
            break;
        }
        new += kept + splice.text.len();
        old = splice.end;
        if offset < new {
            return splice.start;
        }
    }
    old + (offset - new.min(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splices_are_applied_in_order() {
        let mut splices = vec![
            Splice::replace(2, 4, "XYZ".into()),
            Splice::insert(2, "1".into()),
            Splice::insert(2, "2".into()),
            Splice::remove(5, 6),
        ];
        sort(&mut splices);
        let out = apply(b"abcdefg", &splices).unwrap();
        assert_eq!(out, b"ab12XYZeg");
        let old: Vec<usize> = (0..9).map(|offset| original_offset(&splices, offset)).collect();
        assert_eq!(old, [0, 1, 2, 2, 2, 2, 2, 4, 6]);
    }

    #[test]
    fn overlaps_are_rejected() {
        let splices = [Splice::remove(0, 3), Splice::remove(2, 4)];
        assert_eq!(apply(b"abcdef", &splices), None);
        assert_eq!(apply(b"ab", &[Splice::remove(1, 3)]), None);
    }
}
