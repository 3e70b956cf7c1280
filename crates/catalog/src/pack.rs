//! Packs all charts into one blob, and unpacks one chart at a time.
//!
//! Versions and flavours are almost identical line by line. The blob therefore stores each run of lines once,
//! in a *pool*, and each file as a list of pool ranges. The pool is deflated in segments; reading a chart
//! inflates only the segments that it uses.
//!
//! ```text
//! magic | sizes of segments | sizes of groups | index | groups | segments
//! index:    directory → position of its recipe in a group
//! segments: the pool, in deflated blocks
//! group:    the recipes of one chart in all versions, deflated together
//! recipe:   texts as ranges of the pool: the list of paths, then each file
//! ```
//!
//! All numbers are LEB128. *Invariant:* equal trees produce equal bytes.

mod read;
mod write;

pub use read::Pack;
pub use write::pack;

/// First bytes of a blob: identify the format and its revision.
const MAGIC: &[u8] = b"mainstay charts 1\n";

/// Size of a segment in bytes: small enough to inflate few unused bytes, large enough for deflate to find
/// repetitions.
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
    fn packing_and_unpacking_returns_the_same_files() {
        check(&tree(&[]));
        check(&tree(&[
            ("1/a", "x", b""),
            ("1/a", "y", b"no newline"),
            ("1/a", "z", b"\n\n\n"),
            ("2/a", "bin", &[0, 255, 10, 13, 10, 254]),
        ]));
    }

    #[test]
    fn repetition_is_stored_once() {
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
    fn damaged_blobs_are_errors() {
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
            // Any result except a panic or an unbounded allocation is acceptable.
            let _ = Pack::open(&bad).and_then(|pack| pack.files("1/a"));
        }
    }

    #[test]
    fn an_unknown_directory_is_an_error() {
        let bytes = pack(&tree(&[("1/a", "x", b"x")]));
        let error = Pack::open(&bytes).unwrap().files("1/b").unwrap_err();
        assert_eq!(error.to_string(), "the embedded charts do not contain 1/b");
    }
}
