//! One edit of a tree of files: takes an [`Edit`] and [`Files`], gives how many files it changed. Knows no Istio.

use std::collections::BTreeMap;

use crate::derive::line::{self, Change};
use crate::version::Version;

/// Files by path. Paths use `/` and are relative.
pub type Files = BTreeMap<String, Vec<u8>>;

/// One row of a derivation: what to change where, in which versions, and why.
#[derive(Debug)]
pub struct Edit {
    /// Short name, for messages.
    pub id: &'static str,
    /// Why the edit exists.
    pub reason: &'static str,
    /// Directories; the edit must match in **each** of them that the tree holds.
    pub within: &'static [&'static str],
    /// Which files of the directory: a name, or a pattern with one `*`.
    pub file: &'static str,
    /// Versions it is declared for.
    pub applies: Applies,
    /// The change.
    pub op: Op,
}

/// The change an edit makes to each of its files.
#[derive(Debug)]
pub enum Op {
    /// The scalar at `path`, now one of `from`, becomes `to`.
    SetScalar {
        /// Keys from the top.
        path: &'static [&'static str],
        /// Values that are expected now; any other is an error. None: whatever it is.
        from: &'static [&'static str],
        /// The new value.
        to: Text,
    },
    /// The key at this path goes, with what is under it.
    RemoveKey(&'static [&'static str]),
    /// Every line that holds this text goes.
    RemoveLines(&'static str),
    /// `text` comes after the first line that reads `anchor`.
    InsertAfter {
        /// The whole line.
        anchor: &'static str,
        /// Whole lines.
        text: &'static str,
    },
    /// The file goes.
    RemoveFile,
}

/// A text that may depend on the version.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// This text.
    Fixed(&'static str),
    /// The version, without `v`.
    Version,
}

impl Text {
    fn of(self, version: &Version) -> String {
        match self {
            Self::Fixed(text) => text.to_owned(),
            Self::Version => version.to_string(),
        }
    }
}

/// Versions a row is declared for.
#[derive(Clone, Copy, Debug)]
pub struct Applies {
    /// From this minor on.
    pub since: Option<(u64, u64)>,
    /// Up to and with this minor.
    pub until: Option<(u64, u64)>,
    /// Not to development snapshots.
    pub releases_only: bool,
}

impl Applies {
    /// Every version.
    pub const ALWAYS: Self = Self {
        since: None,
        until: None,
        releases_only: false,
    };
    /// Every version but development snapshots.
    pub const RELEASES: Self = Self {
        releases_only: true,
        ..Self::ALWAYS
    };

    /// From this minor on.
    #[must_use]
    pub const fn since(major: u64, minor: u64) -> Self {
        Self {
            since: Some((major, minor)),
            ..Self::ALWAYS
        }
    }

    /// Up to and with this minor.
    #[must_use]
    pub const fn until(major: u64, minor: u64) -> Self {
        Self {
            until: Some((major, minor)),
            ..Self::ALWAYS
        }
    }

    /// Is `version` one of them?
    #[must_use]
    pub fn holds(&self, version: &Version) -> bool {
        self.since.is_none_or(|since| version.minor() >= since)
            && self.until.is_none_or(|until| version.minor() <= until)
            && (version.is_release() || !self.releases_only)
    }
}

/// Why a derivation stopped. Half-derived charts are never given.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError {
    /// Upstream no longer looks as the row expects.
    #[error("edit {edit:?} matches nothing in {within} (declared for this version because {reason})")]
    NoMatch {
        /// The edit's name.
        edit: &'static str,
        /// Its directory.
        within: String,
        /// The edit's reason.
        reason: &'static str,
    },
    /// The value to replace is not one of those expected.
    #[error("edit {edit:?} expects another value in {file}: found {found:?}")]
    Unexpected {
        /// The edit's name.
        edit: &'static str,
        /// The file.
        file: String,
        /// What stands there.
        found: String,
    },
    /// A file that is edited is not text.
    #[error("edit {edit:?} expects text in {file}")]
    NotText {
        /// The edit's name.
        edit: &'static str,
        /// The file.
        file: String,
    },
    /// Something that must be gone after all edits is still there.
    #[error("{file} still holds {needle:?} after all edits ({reason})")]
    Leftover {
        /// The file.
        file: String,
        /// The text.
        needle: &'static str,
        /// Why it must be gone.
        reason: &'static str,
    },
    /// A chart that every version has is not in the source.
    #[error("the source holds no {0}")]
    Missing(String),
}

/// Applies `edit` to `files` if it is declared for `version`.
pub(crate) fn apply(edit: &Edit, version: &Version, files: &mut Files) -> Result<(), DeriveError> {
    if !edit.applies.holds(version) {
        return Ok(());
    }
    for directory in edit.within {
        if holds_directory(files, directory) && apply_within(edit, version, files, directory)? == 0 {
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
    for path in matching(files, directory, edit.file) {
        matches += usize::from(apply_to(edit, version, files, &path)?);
    }
    Ok(matches)
}

fn holds_directory(files: &Files, directory: &str) -> bool {
    files.keys().any(|path| within(path, directory).is_some())
}

fn within<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// Paths of `files` in `directory` that match `pattern`.
pub(crate) fn matching(files: &Files, directory: &str, pattern: &str) -> Vec<String> {
    files
        .keys()
        .filter(|path| within(path, directory).is_some_and(|name| fits(name, pattern)))
        .cloned()
        .collect()
}

fn fits(name: &str, pattern: &str) -> bool {
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
    match change(&edit.op, version, text) {
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

fn change(op: &Op, version: &Version, text: &str) -> Change {
    match op {
        Op::SetScalar { path, from, to } => line::set_scalar(text, path, from, &to.of(version)),
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
    fn an_edit_changes_each_directory_it_names() {
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
    fn another_value_is_an_error() {
        check(
            &ROW,
            "1.29.1",
            &[("charts/a/Chart.yaml", "version: 2.0.0\n")],
            Err("edit \"stamp\" expects another value in charts/a/Chart.yaml: found \"2.0.0\""),
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let mut tree = Files::from([("charts/a/Chart.yaml".to_owned(), vec![0xff])]);
        let error = apply(&ROW, &"1.29.1".parse().unwrap(), &mut tree).unwrap_err();
        assert_eq!(
            error.to_string(),
            "edit \"stamp\" expects text in charts/a/Chart.yaml"
        );
    }

    #[test]
    fn a_version_the_edit_is_not_declared_for_is_left_alone() {
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
    fn a_removed_file_is_gone() {
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
