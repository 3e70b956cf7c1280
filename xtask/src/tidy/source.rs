//! Checks rules that a text search can decide, for one source file.

use std::path::Path;

use super::Finding;
use super::scan::{Kind, scan_rust};

/// Maximum number of lines of a file. Only tables may be longer; their `//!` contains the word "table".
const MAX_FILE_LINES: usize = 600;

/// Maximum width of a comment line; rustfmt does not wrap comments.
const MAX_COMMENT_WIDTH: usize = 110;

/// Attributes and macros that disable a test or leave code unfinished. Each is split in two, so that this
/// table is not a finding.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test that does not run proves nothing"),
    (concat!("#[", "should_panic"), "assert the error instead"),
    (concat!("todo", "!("), "unfinished"),
    (concat!("unimplemented", "!("), "unfinished"),
    (concat!("thread::", "sleep("), "wait for an event instead"),
];

/// Start of a comment that allows the sleep below it: the code polls another process that sends no event.
const POLLING: &str = "// Polled:";

/// Returns every finding in `text`, the file at `path`.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    if Path::new(path)
        .extension()
        .is_none_or(|extension| extension != "rs")
    {
        return Vec::new();
    }
    let mut findings = Vec::new();
    // Below tests/ a directory keeps a helper module from becoming a test target.
    if path.ends_with("/mod.rs") && !path.contains("/tests/") {
        findings.push(Finding::new(path, "rename to `foo.rs` beside `foo/`"));
    }
    if !text.starts_with("//!") {
        findings.push(Finding::new(
            path,
            "the first line (`//!`) must describe the module",
        ));
    }
    findings.extend(check_length(path, text));
    let mut previous = "";
    for (number, line) in text.lines().enumerate() {
        let location = || format!("{path}:{}", number + 1);
        findings.extend(check_forbidden(line, previous).map(|message| Finding::new(location(), message)));
        previous = line;
    }
    findings.extend(check_widths(path, text));
    findings
}

fn check_forbidden(line: &str, previous: &str) -> Option<String> {
    let is_polling = |word: &str| word.starts_with("thread") && previous.trim_start().starts_with(POLLING);
    FORBIDDEN
        .iter()
        .find(|(word, _)| line.contains(word) && !is_polling(word))
        .map(|(word, why)| format!("{word}: {why}"))
}

/// Reports comments that are too wide. Tables cannot be wrapped.
fn check_widths(path: &str, text: &str) -> Vec<Finding> {
    let is_wide = |line: &str| line.chars().count() > MAX_COMMENT_WIDTH;
    let is_table = |line: &str| line.trim_start_matches(['/', '!', ' ']).starts_with('|');
    let lines: Vec<&str> = text.lines().collect();
    let may_be_wide = |line: &&str| line.trim_start().starts_with("//") && is_wide(line);
    if !lines.iter().any(may_be_wide) {
        return Vec::new();
    }
    // A string literal may contain lines that look like comments.
    let comments = scan_rust(text)
        .into_iter()
        .filter(|segment| segment.kind == Kind::Comment && !is_table(segment.text));
    comments
        .filter(|comment| lines.get(comment.line - 1).is_some_and(may_be_wide))
        .map(|comment| {
            let message = format!("comment wider than {MAX_COMMENT_WIDTH} columns");
            Finding::new(format!("{path}:{}", comment.line), message)
        })
        .collect()
}

fn check_length(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    let mut head = text.lines().take_while(|line| line.starts_with("//!"));
    let is_table = head.any(|line| line.contains("table"));
    let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
    (lines > MAX_FILE_LINES && !is_table && !is_test).then(|| {
        Finding::new(
            path,
            format!("{lines} lines: split it, or say in `//!` that it is a table"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(path, text)
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn a_documented_file_has_no_findings() {
        assert!(messages("crates/x/src/a.rs", "//! Parses a into b.\n").is_empty());
        assert!(messages("README.md", "").is_empty());
    }

    #[test]
    fn a_file_without_module_docs_is_found() {
        assert_eq!(messages("a.rs", "fn a() {}\n").len(), 1);
    }

    #[test]
    fn disabled_tests_are_found() {
        let text = format!("//! A.\n{}]\n", concat!("#[", "ignore"));
        assert_eq!(messages("a.rs", &text).len(), 1);
    }

    #[test]
    fn a_sleep_needs_a_polling_comment() {
        let sleep = concat!("thread::", "sleep(INTERVAL);\n");
        assert_eq!(messages("a.rs", &format!("//! A.\n{sleep}")).len(), 1);
        let other = format!("//! A.\n// It takes a while.\n{sleep}");
        assert_eq!(messages("a.rs", &other).len(), 1);
        let polled = format!("//! A.\n  // Polled: the process reports nothing.\n  {sleep}");
        assert_eq!(messages("a.rs", &polled).len(), 0);
    }

    #[test]
    fn long_files_must_be_tables() {
        let body = "x\n".repeat(MAX_FILE_LINES + 1);
        assert_eq!(messages("a.rs", &format!("//! A.\n{body}")).len(), 1);
        assert_eq!(messages("a.rs", &format!("//! A table of x.\n{body}")).len(), 0);
    }

    #[test]
    fn wide_comments_are_found() {
        let wide = "x".repeat(MAX_COMMENT_WIDTH);
        assert_eq!(messages("a.rs", &format!("//! A.\n// {wide}\n")).len(), 1);
        assert_eq!(messages("a.rs", &format!("//! A.\n// | {wide} |\n")).len(), 0);
    }
}
