//! Rules a text search can see: takes one file, gives its breaches.

use std::path::Path;

use super::Breach;

/// Past this a file holds two subjects, or is a table: then its `//!` says so with the word "table".
const LONG_FILE: usize = 600;

/// Attributes and macros that make a test or a promise empty. Written in two halves, so that this table is not a breach.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test that does not run proves nothing"),
    (concat!("#[", "should_panic"), "assert the error instead"),
    (concat!("todo", "!("), "unfinished"),
    (concat!("unimplemented", "!("), "unfinished"),
    (
        concat!("thread::", "sleep("),
        "wait for an event, not for a while",
    ),
];

/// A line that begins so says who does not tell, and excuses the pause below it: another program, asked again and again.
const EXCUSE: &str = "// Nobody tells";

/// Every breach in `text`, the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Breach> {
    if Path::new(path).extension().is_none_or(|ending| ending != "rs") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    // Under tests/ only a folder keeps a helper from becoming a test of its own.
    if path.ends_with("/mod.rs") && !path.contains("/tests/") {
        breaches.push(Breach::new(
            path,
            "name it after its folder: `foo.rs` beside `foo/`",
        ));
    }
    if !text.starts_with("//!") {
        breaches.push(Breach::new(
            path,
            "the first line (`//!`) says what the file takes and gives",
        ));
    }
    breaches.extend(too_long(path, text));
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        let is_excused = |word: &str| word.starts_with("thread") && above.trim_start().starts_with(EXCUSE);
        let found = FORBIDDEN
            .iter()
            .filter(|(word, _)| line.contains(word) && !is_excused(word));
        breaches.extend(
            found.map(|(word, why)| Breach::new(format!("{path}:{}", number + 1), format!("{word}: {why}"))),
        );
        above = line;
    }
    breaches
}

fn too_long(path: &str, text: &str) -> Option<Breach> {
    let lines = text.lines().count();
    let head = text.lines().take_while(|line| line.starts_with("//!"));
    let is_table = head.into_iter().any(|line| line.contains("table"));
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    (lines > LONG_FILE && !is_table && !is_test).then(|| {
        Breach::new(
            path,
            format!("{lines} lines: a room that should be two, or a table that says so"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|breach| breach.what).collect()
    }

    #[test]
    fn a_good_file_has_no_breach() {
        assert!(said("crates/x/src/a.rs", "//! Takes a, gives b.\n").is_empty());
        assert!(said("README.md", "").is_empty());
    }

    #[test]
    fn a_file_says_what_it_is_about() {
        assert_eq!(said("a.rs", "fn a() {}\n").len(), 1);
    }

    #[test]
    fn tests_that_do_not_run_are_found() {
        let text = format!("//! A.\n{}]\n", concat!("#[", "ignore"));
        assert_eq!(said("a.rs", &text).len(), 1);
    }

    #[test]
    fn a_pause_says_who_does_not_tell() {
        let pause = concat!("thread::", "sleep(PAUSE);\n");
        assert_eq!(said("a.rs", &format!("//! A.\n{pause}")).len(), 1);
        assert_eq!(
            said("a.rs", &format!("//! A.\n// It takes a while.\n{pause}")).len(),
            1
        );
        assert_eq!(
            said(
                "a.rs",
                &format!("//! A.\n  // Nobody tells when it is done.\n  {pause}")
            )
            .len(),
            0
        );
    }

    #[test]
    fn long_files_are_tables_or_too_long() {
        let body = "x\n".repeat(LONG_FILE + 1);
        assert_eq!(said("a.rs", &format!("//! A.\n{body}")).len(), 1);
        assert_eq!(said("a.rs", &format!("//! A table of x.\n{body}")).len(), 0);
    }
}
