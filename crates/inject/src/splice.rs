//! Splices: replaces ranges of a text, and maps offsets of the new text back to the old one.

use std::cmp::Reverse;

/// One exchange: `text` for the bytes from `start` to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) text: String,
    /// How deep it belongs: of insertions at one place the deepest comes first.
    pub(crate) depth: usize,
}

impl Splice {
    /// `text` between two bytes.
    pub(crate) fn insert(at: usize, text: String) -> Self {
        Self::exchange(at, at, text)
    }

    /// `text` instead of these bytes.
    pub(crate) fn exchange(start: usize, end: usize, text: String) -> Self {
        Self {
            start,
            end,
            text,
            depth: 0,
        }
    }

    /// Nothing instead of these bytes.
    pub(crate) fn remove(start: usize, end: usize) -> Self {
        Self::exchange(start, end, String::new())
    }
}

/// Sorts splices by position; at one position insertions come first, the deepest ahead.
pub(crate) fn sort(splices: &mut [Splice]) {
    splices.sort_by_key(|splice| (splice.start, splice.end, Reverse(splice.depth)));
}

/// `text` with all `splices`, which must be sorted; `None` if two of them overlap or one lies outside.
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

/// Where the byte at `offset` of the new text was in the old one.
pub(crate) fn back(splices: &[Splice], offset: usize) -> usize {
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
    fn pieces_are_exchanged_in_order() {
        let mut splices = vec![
            Splice::exchange(2, 4, "XYZ".into()),
            Splice::insert(2, "1".into()),
            Splice::insert(2, "2".into()),
            Splice::remove(5, 6),
        ];
        sort(&mut splices);
        let out = apply(b"abcdefg", &splices).unwrap();
        assert_eq!(out, b"ab12XYZeg");
        let old: Vec<usize> = (0..9).map(|offset| back(&splices, offset)).collect();
        assert_eq!(old, [0, 1, 2, 2, 2, 2, 2, 4, 6]);
    }

    #[test]
    fn overlaps_are_rejected() {
        let splices = [Splice::remove(0, 3), Splice::remove(2, 4)];
        assert_eq!(apply(b"abcdef", &splices), None);
        assert_eq!(apply(b"ab", &[Splice::remove(1, 3)]), None);
    }
}
