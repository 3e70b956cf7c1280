//! Regular expressions in the syntax of Go, with Go's error messages. Matching takes linear time, and the
//! compiled size is limited.

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled expression, in bytes.
const MAX_COMPILED_SIZE: usize = 1 << 20;
/// Maximum nesting of groups.
const MAX_NESTING: u32 = 250;

/// Error of an invalid expression, with Go's message.
#[derive(Debug, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub(crate) struct PatternError(String);

/// A pattern of a schema.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub source: String,
    compiled: Result<Regex, PatternError>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            compiled: compile(source),
        }
    }

    /// Returns whether the pattern matches a part of the text. An invalid expression never matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

/// Compiles an expression in Go's syntax.
pub(crate) fn compile(source: &str) -> Result<Regex, PatternError> {
    let result = RegexBuilder::new(&translate(source))
        .size_limit(MAX_COMPILED_SIZE)
        .nest_limit(MAX_NESTING)
        .build();
    result.map_err(|error| PatternError(go_message(source, &error)))
}

/// Translates Go's syntax to that of the `regex` crate. Perl classes are ASCII in Go, but Unicode in the
/// crate.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let (mut chars, mut class) = (source.chars(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => out.push_str(&translate_escape(escaped, class)),
                None => out.push('\\'),
            },
            '[' if !class => {
                class = true;
                out.push('[');
            }
            ']' if class && !out.ends_with('[') && !out.ends_with("[^") => {
                class = false;
                out.push(']');
            }
            '[' | '&' | '~' if class && !out.ends_with('\\') => {
                // `[` starts a nested class in the `regex` crate, but is a literal in Go (except for
                // `[:alpha:]`).
                if c == '[' && chars.as_str().starts_with(':') {
                    out.push('[');
                } else {
                    out.push('\\');
                    out.push(c);
                }
            }
            other => out.push(other),
        }
    }
    out
}

fn translate_escape(escaped: char, class: bool) -> String {
    match (escaped, class) {
        ('d', true) => "0-9".into(),
        ('w', true) => "0-9A-Za-z_".into(),
        ('s', true) => r"\t\n\f\r ".into(),
        ('d', false) => "[0-9]".into(),
        ('D', false) => "[^0-9]".into(),
        ('w', false) => "[0-9A-Za-z_]".into(),
        ('W', false) => "[^0-9A-Za-z_]".into(),
        ('s', false) => r"[\t\n\f\r ]".into(),
        ('S', false) => r"[^\t\n\f\r ]".into(),
        ('b', false) => r"(?-u:\b)".into(),
        ('B', false) => r"(?-u:\B)".into(),
        (other, _) => format!("\\{other}"),
    }
}

/// Returns Go's message for an error. Only the most common errors have the exact message.
fn go_message(source: &str, error: &regex::Error) -> String {
    let shown = error.to_string();
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "expression too large".into();
    }
    let perl = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .find(|word| source.contains(**word));
    if let Some(word) = perl {
        let word = word.get(..3).unwrap_or(word);
        return format!("invalid or unsupported Perl syntax: `{word}`");
    }
    let last = |mark: char| {
        source
            .rfind(mark)
            .and_then(|at| source.get(at..))
            .unwrap_or(source)
            .to_owned()
    };
    match shown.as_str() {
        text if text.contains("unclosed group") => format!("missing closing ): `{source}`"),
        text if text.contains("unopened group") => format!("unexpected ): `{source}`"),
        text if text.contains("unclosed character class") => format!("missing closing ]: `{}`", last('[')),
        text if text.contains("repetition operator missing") => {
            let operator = source.chars().find(|c| "*+?".contains(*c)).unwrap_or('*');
            format!("missing argument to repetition operator: `{operator}`")
        }
        text if text.contains("unrecognized escape") => {
            let word: String = last('\\').chars().take(2).collect();
            format!("invalid escape sequence: `{word}`")
        }
        text if text.contains("invalid character class range") => {
            format!("invalid character class range: `{}`", last('['))
        }
        _ => format!("invalid expression: `{source}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: &str) {
        let found = match compile(pattern) {
            Ok(regex) => regex.is_match(text).to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{pattern}");
    }

    #[test]
    fn go_syntax_is_supported() {
        check("^a+$", "aaa", "true");
        check(r"^\d$", "٣", "false");
        check(r"^[\w-]+$", "a-b", "true");
        check("^[a[]$", "[", "true");
        check("^[[:alpha:]]$", "x", "true");
        check("(", "", "error parsing regexp: missing closing ): `(`");
        check("a)", "", "error parsing regexp: unexpected ): `a)`");
        check("[a", "", "error parsing regexp: missing closing ]: `[a`");
        check(
            "*",
            "",
            "error parsing regexp: missing argument to repetition operator: `*`",
        );
        check(
            "a(?=b)",
            "",
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
        );
        check(
            "(((a{100}){100}){100})",
            "",
            "error parsing regexp: expression too large",
        );
    }
}
