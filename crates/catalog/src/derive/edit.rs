//! Edits of a tree of files.

use std::collections::BTreeMap;

use crate::derive::line::{self, Change};
use crate::version::Version;

/// Files by relative path with forward slashes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A row of a derivation: the change, its files, versions and reason.
#[derive(Debug)]
pub struct Edit {
    /// Short name, for messages.
    pub id: &'static str,
    /// Reason of the edit.
    pub reason: &'static str,
    /// Directories; the edit must match in **each** of them that the tree contains.
    pub within: &'static [&'static str],
    /// Files of the directory: a name, or a pattern with one `*`.
    pub file: &'static str,
    /// Versions that the edit is declared for.
    pub applies: Applies,
    /// The change.
    pub op: Op,
}

/// A change that an edit makes to each of its files.
#[derive(Debug)]
pub enum Op {
    /// Replaces the scalar at `path`, which must be one of `from`, with `to`.
    SetScalar {
        /// Keys from the root.
        path: &'static [&'static str],
        /// Expected values; any other value is an error. If empty, every value is accepted.
        from: &'static [&'static str],
        /// The new value.
        to: Text,
    },
    /// Removes the key at this path and its content.
    RemoveKey(&'static [&'static str]),
    /// Removes all lines that contain this text.
    RemoveLines(&'static str),
    /// Inserts `text` after the first line that equals `anchor`.
    InsertAfter {
        /// The whole line.
        anchor: &'static str,
        /// Whole lines.
        text: &'static str,
    },
    /// Removes the file.
    RemoveFile,
}

/// A text that may depend on the version.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// A fixed text.
    Fixed(&'static str),
    /// The version, without `v`.
    Version,
}

impl Text {
    fn resolve(self, version: &Version) -> String {
        match self {
            Self::Fixed(text) => text.to_owned(),
            Self::Version => version.to_string(),
        }
    }
}

/// Versions that a row is declared for.
#[derive(Clone, Copy, Debug)]
pub struct Applies {
    /// First minor version; `None` means no lower bound.
    pub since: Option<(u64, u64)>,
    /// Last minor version; `None` means no upper bound.
    pub until: Option<(u64, u64)>,
    /// Whether development snapshots are excluded.
    pub releases_only: bool,
}

impl Applies {
    /// All versions.
    pub const ALWAYS: Self = Self {
        since: None,
        until: None,
        releases_only: false,
    };
    /// All versions except development snapshots.
    pub const RELEASES: Self = Self {
        releases_only: true,
        ..Self::ALWAYS
    };

    /// Versions since this minor, inclusive.
    #[must_use]
    pub const fn since(major: u64, minor: u64) -> Self {
        Self {
            since: Some((major, minor)),
            ..Self::ALWAYS
        }
    }

    /// Versions up to this minor, inclusive.
    #[must_use]
    pub const fn until(major: u64, minor: u64) -> Self {
        Self {
            until: Some((major, minor)),
            ..Self::ALWAYS
        }
    }

    /// Whether `version` is included.
    #[must_use]
    pub fn includes(&self, version: &Version) -> bool {
        self.since.is_none_or(|since| version.minor() >= since)
            && self.until.is_none_or(|until| version.minor() <= until)
            && (version.is_release() || !self.releases_only)
    }
}

/// Reason why a derivation failed. Partially derived charts are never returned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError {
    /// An edit has no match, because upstream changed.
    #[error("edit {edit:?} matches nothing in {within} (declared for this version because {reason})")]
    NoMatch {
        /// The edit's name.
        edit: &'static str,
        /// The directory and file pattern.
        within: String,
        /// The edit's reason.
        reason: &'static str,
    },
    /// The current value is not an expected one.
    #[error("edit {edit:?} expects another value in {file}: found {found:?}")]
    Unexpected {
        /// The edit's name.
        edit: &'static str,
        /// Path of the file.
        file: String,
        /// The value found.
        found: String,
    },
    /// A file that is edited is not text.
    #[error("edit {edit:?} expects text in {file}")]
    NotText {
        /// The edit's name.
        edit: &'static str,
        /// Path of the file.
        file: String,
    },
    /// A text that the edits must remove is still present.
    #[error("{file} still contains {needle:?} after all edits ({reason})")]
    Leftover {
        /// Path of the file.
        file: String,
        /// Text that must be removed.
        needle: &'static str,
        /// Reason why the text must be removed.
        reason: &'static str,
    },
    /// The source does not contain a chart that every version has.
    #[error("the source does not contain {0}")]
    Missing(String),
}

/// Applies `edit` to `files` if it is declared for `version`.
pub(crate) fn apply(edit: &Edit, version: &Version, files: &mut Files) -> Result<(), DeriveError> {
    if !edit.applies.includes(version) {
        return Ok(());
    }
    for directory in edit.within {
        if contains_directory(files, directory) && apply_within(edit, version, files, directory)? == 0 {
            let within = format!("{directory}/{}", edit.file);
            return Err(DeriveError::NoMatch {
                edit: edit.id,
                within,
                reason: edit.reason,
            });
        }
    }
    Ok(())
}

fn apply_within(
    edit: &Edit,
    version: &Version,
    files: &mut Files,
    directory: &str,
) -> Result<usize, DeriveError> {
    let mut matches = 0;
    for path in matching_paths(files, directory, edit.file) {
        matches += usize::from(apply_to(edit, version, files, &path)?);
    }
    Ok(matches)
}

fn contains_directory(files: &Files, directory: &str) -> bool {
    files
        .keys()
        .any(|path| strip_directory(path, directory).is_some())
}

fn strip_directory<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// Returns the paths of `files` in `directory` that match `pattern`.
pub(crate) fn matching_paths(files: &Files, directory: &str, pattern: &str) -> Vec<String> {
    files
        .keys()
        .filter(|path| strip_directory(path, directory).is_some_and(|name| matches_pattern(name, pattern)))
        .cloned()
        .collect()
}

fn matches_pattern(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
    }
}

fn apply_to(edit: &Edit, version: &Version, files: &mut Files, path: &str) -> Result<bool, DeriveError> {
    if matches!(edit.op, Op::RemoveFile) {
        return Ok(files.remove(path).is_some());
    }
    let file = || path.to_owned();
    let Some(bytes) = files.get_mut(path) else {
        return Ok(false);
    };
    let text = std::str::from_utf8(bytes).map_err(|_| DeriveError::NotText {
        edit: edit.id,
        file: file(),
    })?;
    match apply_op(&edit.op, version, text) {
        Change::NoMatch => Ok(false),
        Change::Unexpected(found) => Err(DeriveError::Unexpected {
            edit: edit.id,
            file: file(),
            found,
        }),
        Change::Done(text) => {
            *bytes = text.into_bytes();
            Ok(true)
        }
    }
}

fn apply_op(op: &Op, version: &Version, text: &str) -> Change {
    match op {
        Op::SetScalar { path, from, to } => line::set_scalar(text, path, from, &to.resolve(version)),
        Op::RemoveKey(path) => line::remove_key(text, path),
        Op::RemoveLines(needle) => line::remove_lines(text, needle),
        Op::InsertAfter {
            anchor,
            text: addition,
        } => line::insert_after(text, anchor, addition),
        Op::RemoveFile => Change::NoMatch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Edit = Edit {
        id: "stamp",
        reason: "it must be stamped",
        within: &["charts/a", "charts/b"],
        file: "Chart.yaml",
        applies: Applies::since(1, 28),
        op: Op::SetScalar {
            path: &["version"],
            from: &["1.0.0"],
            to: Text::Version,
        },
    };

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    fn check(edit: &Edit, version: &str, before: &[(&str, &str)], expected: Result<&[(&str, &str)], &str>) {
        let mut tree = files(before);
        let result = apply(edit, &version.parse().unwrap(), &mut tree).map_err(|error| error.to_string());
        match expected {
            Ok(after) => assert_eq!((result, tree), (Ok(()), files(after))),
            Err(message) => assert_eq!(result, Err(message.to_owned())),
        }
    }

    #[test]
    fn an_edit_changes_all_its_directories() {
        check(
            &ROW,
            "1.29.1",
            &[
                ("charts/a/Chart.yaml", "version: 1.0.0\n"),
                ("charts/b/Chart.yaml", "x: y\nversion: 1.0.0"),
                ("o", "version: 1.0.0"),
            ],
            Ok(&[
                ("charts/a/Chart.yaml", "version: 1.29.1\n"),
                ("charts/b/Chart.yaml", "x: y\nversion: 1.29.1"),
                ("o", "version: 1.0.0"),
            ]),
        );
    }

    #[test]
    fn an_edit_that_matches_nothing_is_an_error() {
        check(
            &ROW,
            "1.29.1",
            &[
                ("charts/a/Chart.yaml", "version: 1.0.0\n"),
                ("charts/b/Chart.yaml", "name: b\n"),
            ],
            Err(
                "edit \"stamp\" matches nothing in charts/b/Chart.yaml (declared for this version because it must be stamped)",
            ),
        );
        check(
            &ROW,
            "1.29.1",
            &[("charts/a/values.yaml", "version: 1.0.0\n")],
            Err(
                "edit \"stamp\" matches nothing in charts/a/Chart.yaml (declared for this version because it must be stamped)",
            ),
        );
    }

    #[test]
    fn an_unexpected_value_is_an_error() {
        check(
            &ROW,
            "1.29.1",
            &[("charts/a/Chart.yaml", "version: 2.0.0\n")],
            Err("edit \"stamp\" expects another value in charts/a/Chart.yaml: found \"2.0.0\""),
        );
    }

    #[test]
    fn invalid_utf8_is_an_error() {
        let mut tree = Files::from([("charts/a/Chart.yaml".to_owned(), vec![0xff])]);
        let error = apply(&ROW, &"1.29.1".parse().unwrap(), &mut tree).unwrap_err();
        assert_eq!(
            error.to_string(),
            "edit \"stamp\" expects text in charts/a/Chart.yaml"
        );
    }

    #[test]
    fn versions_outside_the_range_are_unchanged() {
        check(
            &ROW,
            "1.27.9",
            &[("charts/a/Chart.yaml", "x")],
            Ok(&[("charts/a/Chart.yaml", "x")]),
        );
        let releases = Edit {
            applies: Applies::RELEASES,
            ..ROW
        };
        check(
            &releases,
            "1.31.0-alpha.x",
            &[("charts/a/Chart.yaml", "x")],
            Ok(&[("charts/a/Chart.yaml", "x")]),
        );
        let until = Edit {
            applies: Applies::until(1, 27),
            ..ROW
        };
        check(
            &until,
            "1.28.0",
            &[("charts/a/Chart.yaml", "x")],
            Ok(&[("charts/a/Chart.yaml", "x")]),
        );
    }

    #[test]
    fn files_can_be_removed() {
        let remove = Edit {
            op: Op::RemoveFile,
            file: "templates/c*s.yaml",
            ..ROW
        };
        check(
            &remove,
            "1.28.0",
            &[("charts/a/templates/crds.yaml", ""), ("charts/a/x", "")],
            Ok(&[("charts/a/x", "")]),
        );
    }
}
