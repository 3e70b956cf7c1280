//! Hash of the data that determines the derived files.

use super::edit::{Applies, Edit, Op, Text};
use super::table::{self, Leftover, Part, Place};

/// Version of the derivation code. Incremented when a change of the code (not of a table) changes the
/// derived files.
const ENGINE: u64 = 1;

/// Returns a hash of the derivation of both flavours. Derived files that were stamped with another hash are
/// out of date. Names and reasons of table rows only occur in messages and are not part of the hash.
#[must_use]
pub fn fingerprint() -> u64 {
    let mut hash = Hash::new();
    hash.number(ENGINE);
    hash.rows(table::PLACES, Hash::place);
    hash.texts(table::ADDONS);
    hash.texts(table::OPERATOR_DIRECTORIES);
    hash.rows(table::INSTALLER, Hash::edit);
    hash.rows(table::OPERATOR, Hash::edit);
    hash.texts(&[table::TAGS_SOURCE, table::TAGS_CHART, table::TAGS_CHART_YAML]);
    hash.rows(table::TAGS_PARTS, Hash::part);
    hash.rows(table::INSTALLER_LEFTOVERS, Hash::leftover);
    hash.rows(table::OPERATOR_LEFTOVERS, Hash::leftover);
    hash.0
}

/// FNV-1a, which is sufficient to detect changes. Unlike the hash functions of the standard library, it does
/// not depend on the compiler.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Adds a text with its length, so that the boundaries of texts are part of the hash.
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn rows<T>(&mut self, rows: &[T], add: impl Fn(&mut Self, &T)) {
        self.number(rows.len() as u64);
        for row in rows {
            add(self, row);
        }
    }

    fn texts(&mut self, texts: &[&str]) {
        self.rows(texts, |hash, text| hash.text(text));
    }

    fn place(&mut self, place: &Place) {
        let Place { from, to } = place;
        self.texts(&[from, to]);
    }

    fn edit(&mut self, edit: &Edit) {
        let Edit {
            id: _,
            reason: _,
            within,
            file,
            applies,
            op,
        } = edit;
        self.texts(within);
        self.text(file);
        self.applies(applies);
        self.op(op);
    }

    fn applies(&mut self, applies: &Applies) {
        let Applies {
            since,
            until,
            releases_only,
        } = applies;
        for bound in [since, until] {
            self.rows(bound.as_slice(), |hash, (major, minor)| {
                hash.number(*major);
                hash.number(*minor);
            });
        }
        self.number((*releases_only).into());
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::SetScalar { path, from, to } => {
                self.text("set-scalar");
                self.texts(path);
                self.texts(from);
                match to {
                    Text::Fixed(text) => self.texts(&["fixed", text]),
                    Text::Version => self.texts(&["version"]),
                }
            }
            Op::RemoveKey(path) => {
                self.text("remove-key");
                self.texts(path);
            }
            Op::RemoveLines(needle) => self.texts(&["remove-lines", needle]),
            Op::InsertAfter { anchor, text } => self.texts(&["insert-after", anchor, text]),
            Op::RemoveFile => self.text("remove-file"),
        }
    }

    fn part(&mut self, part: &Part) {
        let Part { file, applies } = part;
        self.text(file);
        self.applies(applies);
    }

    fn leftover(&mut self, leftover: &Leftover) {
        let Leftover {
            file,
            needle,
            applies,
            reason: _,
        } = leftover;
        self.texts(&[file, needle]);
        self.applies(applies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Edit = Edit {
        id: "stamp",
        reason: "a reason",
        within: &["charts/a", "charts/b"],
        file: "Chart.yaml",
        applies: Applies::since(1, 28),
        op: SET,
    };
    const SET: Op = Op::SetScalar {
        path: &["a"],
        from: &["b"],
        to: Text::Version,
    };

    fn hash_of<T>(add: fn(&mut Hash, &T), row: &T) -> u64 {
        let mut hash = Hash::new();
        add(&mut hash, row);
        hash.0
    }

    #[test]
    fn bytes_are_hashed_with_fnv_1a() {
        let hash = |text: &str| hash_of(|hash, text: &&str| hash.bytes(text.as_bytes()), &text);
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_and_reasons_are_not_part_of_the_hash() {
        let renamed = Edit {
            id: "other",
            reason: "another reason",
            ..ROW
        };
        assert_eq!(hash_of(Hash::edit, &renamed), hash_of(Hash::edit, &ROW));
        let leftover = |reason| Leftover {
            file: "a",
            needle: "b",
            applies: Applies::ALWAYS,
            reason,
        };
        let (first, second) = (leftover("a reason"), leftover("another reason"));
        assert_eq!(hash_of(Hash::leftover, &first), hash_of(Hash::leftover, &second));
    }

    #[test]
    fn changes_of_the_derived_files_change_the_hash() {
        let with_op = |op| Edit { op, ..ROW };
        let with_applies = |applies| Edit { applies, ..ROW };
        let set = |path, from, to| with_op(Op::SetScalar { path, from, to });
        let edits = [
            ROW,
            Edit {
                within: &["charts/acharts/b"],
                ..ROW
            },
            Edit {
                within: &["charts/a"],
                ..ROW
            },
            Edit { file: "*", ..ROW },
            with_applies(Applies::until(1, 28)),
            with_applies(Applies::since(1, 29)),
            with_applies(Applies::ALWAYS),
            with_applies(Applies::RELEASES),
            set(&["a", "b"], &[], Text::Version),
            set(&["a"], &["b", "c"], Text::Version),
            set(&["a"], &["b"], Text::Fixed("c")),
            set(&["a"], &["b"], Text::Fixed("version")),
            with_op(Op::RemoveKey(&["a"])),
            with_op(Op::RemoveKey(&["b"])),
            with_op(Op::RemoveLines("a")),
            with_op(Op::InsertAfter {
                anchor: "a",
                text: "b",
            }),
            with_op(Op::InsertAfter {
                anchor: "ab",
                text: "",
            }),
            with_op(Op::RemoveFile),
        ];
        let mut hashes: Vec<u64> = edits.iter().map(|edit| hash_of(Hash::edit, edit)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), edits.len());
    }
}
