//! All charts in one small blob: takes trees of files, gives bytes; and back, one chart at a time.
//!
//! Versions and flavours repeat each other nearly line by line, so the blob keeps each run of lines once, in a *pool*, and
//! each file as the list of pool ranges it is made of. The pool is deflated in segments, and reading a chart inflates
//! only those it touches.
//!
//! ```text
//! magic | sizes of segments | sizes of shelves | index: directory → place of its recipe on a shelf | shelves | segments
//! segments: the pool, in deflated pieces
//! shelf:    the recipes of one chart in all versions, deflated together
//! recipe:   texts as ranges of the pool: first the list of its paths, then each file
//! ```
//!
//! All numbers are LEB128. *Invariant:* equal trees give equal bytes.

mod read;
mod write;

pub use read::Pack;
pub use write::pack;

/// Names the format and its revision.
const MAGIC: &[u8] = b"mainstay charts 1\n";

/// Small enough that one chart does not pay for all, large enough that deflate finds repetitions.
const SEGMENT: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Files;
    use std::collections::BTreeMap;

    fn tree(list: &[(&str, &str, &[u8])]) -> Vec<(String, Files)> {
        let mut tree: BTreeMap<String, Files> = BTreeMap::new();
        for (directory, path, bytes) in list {
            tree.entry((*directory).to_owned())
                .or_default()
                .insert((*path).to_owned(), bytes.to_vec());
        }
        tree.into_iter().collect()
    }

    fn check(tree: &[(String, Files)]) -> Vec<u8> {
        let bytes = pack(tree);
        let opened = Pack::open(&bytes).unwrap();
        assert!(
            opened
                .directories()
                .eq(tree.iter().map(|(directory, _)| directory))
        );
        for (directory, files) in tree {
            assert_eq!(&opened.files(directory).unwrap(), files, "{directory}");
        }
        bytes
    }

    fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
        (0..count).map(line).collect::<Vec<_>>().concat()
    }

    #[test]
    fn what_goes_in_comes_out() {
        check(&tree(&[]));
        check(&tree(&[
            ("1/a", "x", b""),
            ("1/a", "y", b"no newline"),
            ("1/a", "z", b"\n\n\n"),
            ("2/a", "bin", &[0, 255, 10, 13, 10, 254]),
        ]));
    }

    #[test]
    fn repetition_costs_next_to_nothing() {
        let text = lines(4000, |n| {
            format!(
                "key{n}: {}
",
                n * 7919 % 1009
            )
        });
        let changed = text.replace("key2000:", "another:");
        let one = check(&tree(&[("1/a", "x", text.as_bytes())])).len();
        let two = check(&tree(&[
            ("1/a", "x", text.as_bytes()),
            ("2/a", "x", changed.as_bytes()),
            ("3/a", "y", text.as_bytes()),
        ]))
        .len();
        assert!(two < one + 100, "{two} bytes for three, {one} for one");
    }

    #[test]
    fn damage_is_an_error() {
        let text = lines(400, |n| {
            format!(
                "line {n}
"
            )
        });
        let good = pack(&tree(&[("1/a", "x", text.as_bytes()), ("2/b", "y", b"other\n")]));
        for length in 0..good.len() {
            let cut = &good[..length];
            let read = Pack::open(cut).and_then(|pack| Ok((pack.files("1/a")?, pack.files("2/b")?)));
            assert!(read.is_err(), "cut to {length} of {}", good.len());
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            // Any answer will do that is no panic and no unbounded one.
            let _ = Pack::open(&bad).and_then(|pack| pack.files("1/a"));
        }
    }

    #[test]
    fn an_unknown_directory_is_told() {
        let bytes = pack(&tree(&[("1/a", "x", b"x")]));
        let error = Pack::open(&bytes).unwrap().files("1/b").unwrap_err();
        assert_eq!(error.to_string(), "the embedded charts hold no 1/b");
    }
}
