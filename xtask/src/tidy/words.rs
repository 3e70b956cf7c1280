//! Checks the vocabulary: reports banned words in comments, string literals, names and documents, with the
//! term to use instead.
//!
//! `words.txt` lists the words, `exceptions.txt` the texts in which one of them is correct.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use regex::Regex;

use super::Finding;
use super::scan::{Kind, Segment, scan_rust};

const WORDS: &str = include_str!("words.txt");
const EXCEPTIONS: &str = include_str!("exceptions.txt");

/// The word list in compiled form.
pub(super) struct Vocabulary {
    /// Matches any banned word.
    any: Regex,
    entries: Vec<Entry>,
    exceptions: Vec<Exception>,
}

/// One row of `words.txt`.
struct Entry {
    pattern: Regex,
    replacement: &'static str,
}

/// One row of `exceptions.txt`: `text` may appear in files below `path`.
struct Exception {
    path: &'static str,
    text: &'static str,
}

impl Vocabulary {
    /// Parses the two tables.
    pub(super) fn load() -> anyhow::Result<Self> {
        let rows: Vec<(&str, &str)> = table(WORDS)
            .map(|row| row.rsplit_once('|').with_context(|| format!("words.txt: {row}")))
            .collect::<anyhow::Result<_>>()?;
        let alternatives: Vec<String> = rows.iter().map(|(word, _)| format!("(?:{word})")).collect();
        let entries = rows.iter().map(|(word, replacement)| {
            Ok(Entry {
                pattern: whole_word(word)?,
                replacement: replacement.trim(),
            })
        });
        let exceptions = table(EXCEPTIONS).map(|row| {
            let (path, text) = row
                .split_once('|')
                .with_context(|| format!("exceptions.txt: {row}"))?;
            Ok(Exception {
                path: path.trim(),
                text: text.trim(),
            })
        });
        Ok(Self {
            any: whole_word(&alternatives.join("|"))?,
            entries: entries.collect::<anyhow::Result<_>>()?,
            exceptions: exceptions.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns the number of banned words.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns every banned word in `text`, the file at `path`.
    pub(super) fn check(&self, path: &str, text: &str) -> Vec<Finding> {
        // Most files have no match at all, and splitting them into segments costs more than one search.
        if !self.any.is_match(&split_identifiers(text)) {
            return Vec::new();
        }
        let exceptions: Vec<&str> = self
            .exceptions
            .iter()
            .filter(|exception| path.starts_with(exception.path))
            .map(|exception| exception.text)
            .collect();
        segments(path, text)
            .iter()
            .filter_map(|segment| self.check_segment(path, segment, &exceptions))
            .collect()
    }

    fn check_segment(&self, path: &str, segment: &Segment<'_>, exceptions: &[&str]) -> Option<Finding> {
        let text = split_identifiers(segment.text);
        let allowed: Vec<Range<usize>> = exceptions
            .iter()
            .map(|exception| split_identifiers(exception))
            .flat_map(|exception| occurrences(&text, &exception))
            .collect();
        let is_allowed = |found: &Range<usize>| {
            allowed
                .iter()
                .any(|range| range.start <= found.start && found.end <= range.end)
        };
        let found = self
            .any
            .find_iter(&text)
            .find(|found| !is_allowed(&found.range()))?;
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.pattern.is_match(found.as_str()))?;
        Some(Finding::new(
            format!("{path}:{}", segment.line),
            format!(
                "{}: \"{}\": use {}",
                segment.kind,
                found.as_str(),
                entry.replacement
            ),
        ))
    }
}

/// Texts that users read: descriptions of custom resources and the operator's Helm chart.
const USER_TEXTS: [&str; 4] = [
    "crates/api/src/crd/delivery.txt",
    "crates/api/src/crd/istio_operator.txt",
    "crates/api/src/crd/sail.txt",
    "deploy/",
];

/// Returns the parts of a file that the vocabulary applies to.
fn segments<'a>(path: &str, text: &'a str) -> Vec<Segment<'a>> {
    if USER_TEXTS.iter().any(|prefix| path.starts_with(prefix)) {
        return lines(text, |_| true);
    }
    match Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("rs") => scan_rust(text),
        Some("md") => lines(text, |_| true),
        Some("toml" | "yaml" | "yml" | "sh" | "list" | "lock" | "txt" | "py") => lines_after(text, "#"),
        Some("go" | "mjs" | "mod" | "css") => lines_after(text, "//"),
        _ => Vec::new(),
    }
}

/// Returns the lines that are comments with the given mark.
fn lines_after<'a>(text: &'a str, mark: &str) -> Vec<Segment<'a>> {
    lines(text, |line| line.trim_start().starts_with(mark))
}

fn lines(text: &str, applies: impl Fn(&str) -> bool) -> Vec<Segment<'_>> {
    let numbered = text.lines().enumerate().filter(|(_, line)| applies(line));
    numbered
        .map(|(number, text)| Segment {
            line: number + 1,
            kind: Kind::Document,
            text,
        })
        .collect()
}

fn table(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns a regular expression that matches whole words in any case.
fn whole_word(pattern: &str) -> anyhow::Result<Regex> {
    let pattern = format!(r"(?i)\b(?:{pattern})\b");
    Regex::new(&pattern).with_context(|| format!("words.txt: {pattern}"))
}

fn occurrences(text: &str, part: &str) -> Vec<Range<usize>> {
    text.match_indices(part)
        .map(|(start, part)| start..start + part.len())
        .collect()
}

/// Separates the words of `snake_case` and `CamelCase` names by spaces.
fn split_identifiers(text: &str) -> String {
    let mut separated = String::with_capacity(text.len() + 8);
    let mut previous = ' ';
    for character in text.chars() {
        if character.is_ascii_uppercase() && (previous.is_ascii_lowercase() || previous.is_ascii_digit()) {
            separated.push(' ');
        }
        separated.push(if character == '_' { ' ' } else { character });
        previous = character;
    }
    separated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str) -> Vec<String> {
        let vocabulary = Vocabulary::load().unwrap();
        vocabulary
            .check(path, text)
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn the_list_has_at_least_80_entries() {
        assert!(Vocabulary::load().unwrap().len() >= 80);
    }

    #[test]
    fn banned_words_in_comments_are_found() {
        let word = concat!("who", "ever");
        let findings = check(
            "a.rs",
            &format!("/// Returned to {word} calls it.\nfn a() {{}}\n"),
        );
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("comment: "), "{findings:?}");
    }

    #[test]
    fn banned_words_in_names_are_found() {
        for name in [
            concat!("pati", "ence"),
            concat!("PATI", "ENCE"),
            concat!("MaxPati", "ence"),
        ] {
            let findings = check("a.rs", &format!("const A: u8 = {name};\n"));
            assert_eq!(findings.len(), 1, "{name}");
            assert!(findings[0].starts_with("name: "), "{findings:?}");
        }
    }

    #[test]
    fn banned_words_in_messages_are_found() {
        let text = concat!("println!(\"WHAT BECOMES", " OF IT\");\n");
        let findings = check("a.rs", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("text: "), "{findings:?}");
    }

    #[test]
    fn banned_words_in_documents_are_found() {
        let text = concat!("The operator fixes it any", "how,\nand any", "body may look.\n");
        let findings = check("docs/a.md", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("document: "), "{findings:?}");
    }

    #[test]
    fn every_entry_matches_a_word_and_names_a_replacement() {
        for row in table(WORDS) {
            let (_, replacement) = row.rsplit_once('|').unwrap();
            assert!(!replacement.trim().is_empty(), "{row}");
        }
    }

    #[test]
    fn exceptions_apply_to_their_own_text_only() {
        let text = concat!("// connection ref", "used\n// connection not ref", "used\n");
        assert_eq!(check("a.rs", text).len(), 1);
    }
}
