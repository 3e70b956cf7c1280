//! Rules of `.helmignore`.

use mainstay_gostd::path::match_path;

/// Rules for a chart directory, including Helm's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoreRules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    pattern: String,
    /// Whether the pattern applies to the whole path instead of only the file name.
    whole_path: bool,
    negated: bool,
    directories_only: bool,
}

/// Error of parsing a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A pattern contains `**`.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A pattern is malformed.
    #[error("syntax error in pattern")]
    Pattern,
    /// A line is too long for Go's scanner.
    #[error("bufio.Scanner: token too long")]
    LongLine,
}

/// Maximum line length in bytes of Go's scanner.
const MAX_LINE_LEN: usize = 64 * 1024;

impl IgnoreRules {
    /// Parses the rules of `text` and adds Helm's own, which ignore hidden files in `templates/`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, IgnoreError> {
        let mut rules = Self::default();
        let text = crate::chart::without_bom(text);
        for line in text.split(|byte| *byte == b'\n') {
            if line.len() >= MAX_LINE_LEN {
                return Err(IgnoreError::LongLine);
            }
            rules.add(&String::from_utf8_lossy(line))?;
        }
        rules.add("templates/.?*")?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), IgnoreError> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err(IgnoreError::DoubleStar);
        }
        match_path(line, "abc").map_err(|_| IgnoreError::Pattern)?;
        let (negated, line) = strip_marker(line, line.strip_prefix('!'));
        let (directories_only, line) = strip_marker(line, line.strip_suffix('/'));
        let (rooted, pattern) = strip_marker(line, line.strip_prefix('/'));
        let whole_path = rooted || pattern.contains('/');
        self.0.push(Rule {
            pattern: pattern.into(),
            whole_path,
            negated,
            directories_only,
        });
        Ok(())
    }

    /// Whether `path` is ignored. It must be relative to the chart's directory and have forward slashes.
    pub(crate) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        for rule in &self.0 {
            if rule.negated {
                // Helm keeps only paths that match every negated rule.
                if (rule.directories_only && !is_directory) || !rule.matches(path) {
                    return true;
                }
            } else if (!rule.directories_only || is_directory) && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let subject = if self.whole_path {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        match_path(&self.pattern, subject).unwrap_or(false)
    }
}

fn strip_marker<'a>(line: &'a str, stripped: Option<&'a str>) -> (bool, &'a str) {
    stripped.map_or((false, line), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a path against rules that are separated by blanks. A path with a trailing slash is a
    /// directory.
    fn check(rules: &str, path: &str, expected: bool) {
        let rules = IgnoreRules::parse(rules.replace(' ', "\n").as_bytes()).expect("rules parse");
        let is_directory = path.ends_with('/');
        assert_eq!(
            rules.ignores(path.trim_end_matches('/'), is_directory),
            expected,
            "{path}"
        );
    }

    #[test]
    fn rules_match_as_in_helm() {
        check("helm.txt", "helm.txt", true);
        check("helm.*", "helm.txt", true);
        check("helm.*", "rudder.txt", false);
        check("*.txt", "tiller.txt", true);
        check("*.txt", "cargo/a.txt", true);
        check("cargo/*.txt", "cargo/a.txt", true);
        check("cargo/*.*", "cargo/a.txt", true);
        check("cargo/*.txt", "mast/a.txt", false);
        check("ru[c-e]?er.txt", "rudder.txt", true);
        check("cargo/", "cargo/", true);
        check("cargo/", "cargo", false);
        check("/a.txt", "a.txt", true);
        check("/cargo/a.txt", "cargo/a.txt", true);
        check("/a.txt", "cargo/a.txt", false);
        check("!helm.txt", "helm.txt", false);
        check("!helm.txt", "tiller.txt", true);
        check("!*.txt", "cargo/", true);
        check("!cargo/", "mast/", true);
        check("#helm.txt", "helm.txt", false);
        check("", "templates/.dotfile", true);
        check("", "templates/a/.dotfile", false);
    }

    #[test]
    fn invalid_rules_are_rejected() {
        let error = |text: &[u8]| IgnoreRules::parse(text).expect_err("rejected").to_string();
        assert_eq!(error(b"a\n**/foo"), "double-star (**) syntax is not supported");
        assert_eq!(error(b"[z"), "syntax error in pattern");
        assert_eq!(error(&vec![b'x'; MAX_LINE_LEN]), "bufio.Scanner: token too long");
    }
}
