//! Version constraints in Masterminds' syntax (`>=1.21-0 <2 || ^3.x`).

use std::cmp::Ordering;

use mainstay_gostd::quote::quote;

use super::version::{Scan, Version, compare_prerelease};

/// Maximum length of a constraint in bytes.
pub const MAX_CONSTRAINT_LEN: usize = 512;
/// Maximum number of alternatives.
pub const MAX_CONSTRAINT_GROUPS: usize = 32;

/// A constraint: alternatives, each a group of terms that must all be satisfied.
#[derive(Clone, Debug)]
pub struct Constraint(Vec<Group>);

/// Error of parsing a constraint, with Masterminds' message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The text has more than [`MAX_CONSTRAINT_LEN`] bytes.
    #[error("constraint string is too long (max {MAX_CONSTRAINT_LEN} bytes)")]
    TooLong,
    /// The text has more than [`MAX_CONSTRAINT_GROUPS`] alternatives.
    #[error("too many constraint groups (max {MAX_CONSTRAINT_GROUPS})")]
    TooManyGroups,
    /// An alternative is not a list of terms.
    #[error("improper constraint: {}", quote(.0.as_bytes()))]
    Improper(String),
    /// The version of a term is invalid.
    #[error("constraint parser error")]
    Version,
}

impl Constraint {
    /// Parses a constraint.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > MAX_CONSTRAINT_LEN {
            return Err(ConstraintError::TooLong);
        }
        let text = rewrite_ranges(text);
        if text.split("||").count() > MAX_CONSTRAINT_GROUPS {
            return Err(ConstraintError::TooManyGroups);
        }
        text.split("||")
            .map(Group::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether `version` satisfies at least one of the alternatives.
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.0.iter().any(|group| group.check(version))
    }
}

/// Terms that must all be satisfied.
#[derive(Clone, Debug)]
struct Group {
    terms: Vec<Term>,
    /// Whether pre-releases are allowed: a term with a pre-release allows them for the whole group.
    prereleases: bool,
}

impl Group {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        let raw = parse_terms(text).ok_or_else(|| ConstraintError::Improper(text.into()))?;
        let terms = raw.iter().map(Term::read).collect::<Result<Vec<_>, _>>()?;
        let prereleases = terms.iter().any(|term| !term.version.pre.is_empty());
        Ok(Self { terms, prereleases })
    }

    fn check(&self, version: &Version) -> bool {
        (self.prereleases || version.pre.is_empty()) && self.terms.iter().all(|term| term.check(version))
    }
}

/// A comparison with a version.
#[derive(Clone, Debug)]
struct Term {
    operator: Operator,
    version: Version,
    wildcard: Wildcard,
}

/// The first number of a version that is missing or a wildcard such as `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wildcard {
    /// All three numbers are present.
    None,
    Major,
    Minor,
    Patch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Operators. Longer ones precede their prefixes.
const OPERATORS: &[(&str, Operator)] = &[
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

/// A term as written.
struct RawTerm<'a> {
    operator: Operator,
    text: &'a str,
    scan: Scan<'a>,
}

impl Term {
    fn read(raw: &RawTerm<'_>) -> Result<Self, ConstraintError> {
        let [major, minor, patch] = raw.scan.numbers;
        let pre = match raw.scan.pre {
            "" => String::new(),
            pre => format!("-{pre}"),
        };
        let (wildcard, text) = if is_wildcard(major) {
            (Wildcard::Major, format!("0.0.0{pre}"))
        } else if is_wildcard(minor) {
            (Wildcard::Minor, format!("{major}.0.0{pre}"))
        } else if is_wildcard(patch) {
            (Wildcard::Patch, format!("{major}.{minor}.0{pre}"))
        } else {
            (Wildcard::None, raw.text.to_owned())
        };
        let version = Version::parse(&text).map_err(|_| ConstraintError::Version)?;
        Ok(Self {
            operator: raw.operator,
            version,
            wildcard,
        })
    }

    fn check(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Equal if self.wildcard == Wildcard::None => self.compare(version).is_eq(),
            Operator::Equal | Operator::Tilde => self.check_tilde(version),
            Operator::NotEqual => self.check_not_equal(version),
            Operator::Greater => self.check_greater(version),
            Operator::Less => self.compare(version).is_lt(),
            Operator::GreaterOrEqual => self.compare(version).is_ge(),
            Operator::LessOrEqual => self.check_less_or_equal(version),
            Operator::Caret => self.check_caret(version),
        }
    }

    /// Compares `version` with the term's version.
    fn compare(&self, version: &Version) -> Ordering {
        version.compare(&self.version)
    }

    fn check_not_equal(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.wildcard {
            // `!=*` is equivalent to `!=0.0.0`: the numbers are compared although they are missing.
            Wildcard::None | Wildcard::Major => self.compare(version).is_ne(),
            Wildcard::Minor => version.major != own.major,
            Wildcard::Patch => {
                (version.major, version.minor) != (own.major, own.minor)
                    || compare_prerelease(&version.pre, &own.pre).is_ne()
            }
        }
    }

    fn check_greater(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.wildcard {
            Wildcard::None => self.compare(version).is_gt(),
            Wildcard::Minor => version.major > own.major,
            Wildcard::Patch => (version.major, version.minor) > (own.major, own.minor),
            Wildcard::Major => version.major > own.major || self.compare(version).is_gt(),
        }
    }

    fn check_less_or_equal(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.wildcard {
            Wildcard::None => self.compare(version).is_le(),
            Wildcard::Minor => version.major <= own.major,
            Wildcard::Major | Wildcard::Patch => (version.major, version.minor) <= (own.major, own.minor),
        }
    }

    fn check_tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.compare(version).is_lt() {
            return false;
        }
        let anything = (own.major, own.minor, own.patch) == (0, 0, 0);
        if anything && matches!(self.wildcard, Wildcard::None | Wildcard::Major) {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.wildcard == Wildcard::Minor)
    }

    fn check_caret(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.compare(version).is_lt() {
            return false;
        }
        if own.major > 0 || self.wildcard == Wildcard::Minor {
            return version.major == own.major;
        }
        if own.minor > 0 || self.wildcard == Wildcard::Patch {
            return (version.major, version.minor) == (0, own.minor);
        }
        (version.major, version.minor, version.patch) == (0, 0, own.patch)
    }
}

fn is_wildcard(number: &str) -> bool {
    matches!(number, "" | "x" | "X" | "*")
}

/// Parses terms separated by white space or a comma. Returns `None` for other texts.
fn parse_terms(text: &str) -> Option<Vec<RawTerm<'_>>> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let (term, after) = parse_term(rest)?;
        terms.push(term);
        rest = after.trim_start_matches(is_space);
        if rest.is_empty() {
            return Some(terms);
        }
        let spaced = rest.len() < after.len();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start_matches(is_space),
            None if spaced => {}
            None => return None,
        }
    }
}

fn parse_term(text: &str) -> Option<(RawTerm<'_>, &str)> {
    let (operator, rest) = OPERATORS
        .iter()
        .find_map(|(spelling, operator)| Some((*operator, text.strip_prefix(spelling)?)))
        .unwrap_or((Operator::Equal, text));
    let rest = rest.trim_start_matches(is_space);
    let scan = Scan::prefix(rest, is_number)?;
    let (text, after) = rest.split_at_checked(scan.len)?;
    Some((RawTerm { operator, text, scan }, after))
}

/// Whether `byte` may be part of a number. Upstream's class of these characters contains a `|` by mistake,
/// which changes the error for a misplaced `|`.
fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|')
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// Replaces each range `1.2 - 2.3` with `>= 1.2, <= 2.3 `.
fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while let Some(range) = text.get(at..).and_then(next_range) {
        let replacement = format!(">= {}, <= {} ", range.from, range.to);
        // Upstream replaces the first occurrence of the same text, which may be at another position.
        out = out.replacen(range.text, &replacement, 1);
        at += range.offset + range.text.len();
    }
    out
}

struct Range<'a> {
    offset: usize,
    text: &'a str,
    from: &'a str,
    to: &'a str,
}

fn next_range(text: &str) -> Option<Range<'_>> {
    // Every range contains a hyphen, and few constraints do.
    text.find('-')?;
    text.char_indices().find_map(|(offset, _)| range_at(text, offset))
}

fn range_at(text: &str, offset: usize) -> Option<Range<'_>> {
    let start = text.get(offset..)?;
    let lead = start.trim_start_matches(is_space);
    let (from, rest) = lead.split_at_checked(Scan::prefix(lead, is_number)?.len)?;
    let rest = strip_spaces(rest)?.strip_prefix('-')?;
    let rest = strip_spaces(rest)?;
    let (to, rest) = rest.split_at_checked(Scan::prefix(rest, is_number)?.len)?;
    let rest = rest.trim_start_matches(is_space);
    Some(Range {
        offset,
        text: start.get(..start.len() - rest.len())?,
        from,
        to,
    })
}

/// Strips white space. Returns `None` if there is none.
fn strip_spaces(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_space);
    (rest.len() < text.len()).then_some(rest)
}
