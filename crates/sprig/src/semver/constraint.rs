//! Version constraints in Masterminds' syntax (`>=1.21-0 <2 || ^3.x`).

use std::cmp::Ordering;

use mainstay_gostd::quote::quote;

use super::version::{Scan, Version, compare_prerelease};

/// Maximum length of a constraint in bytes.
pub const MAX_CONSTRAINT_LEN: usize = 512;
/// Maximum number of alternatives.
pub const MAX_CONSTRAINT_GROUPS: usize = 32;

/// A constraint: alternatives of terms that must all hold.
#[derive(Clone, Debug)]
pub struct Constraint(Vec<Group>);

/// An invalid constraint, with Masterminds' messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// More than [`MAX_CONSTRAINT_LEN`] bytes.
    #[error("constraint string is too long (max {MAX_CONSTRAINT_LEN} bytes)")]
    TooLong,
    /// More than [`MAX_CONSTRAINT_GROUPS`] alternatives.
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

    /// Whether `version` satisfies one of the alternatives.
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.0.iter().any(|group| group.check(version))
    }
}

/// Terms that must all hold.
#[derive(Clone, Debug)]
struct Group {
    terms: Vec<Term>,
    /// Whether all terms hold; one term with a pre-release allows pre-releases for all of them.
    prereleases: bool,
}

impl Group {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        let raw = raw_terms(text).ok_or_else(|| ConstraintError::Improper(text.into()))?;
        let terms = raw.iter().map(Term::read).collect::<Result<Vec<_>, _>>()?;
        let prereleases = terms.iter().any(|term| !term.version.pre.is_empty());
        Ok(Self { terms, prereleases })
    }

    fn check(&self, version: &Version) -> bool {
        (self.prereleases || version.pre.is_empty()) && self.terms.iter().all(|term| term.check(version))
    }
}

/// A comparison.
#[derive(Clone, Debug)]
struct Term {
    operator: Operator,
    version: Version,
    open: Open,
}

/// The first number of a version that is missing or written as `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// None: all three numbers are present.
    Nothing,
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

/// Operators, longest first.
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
        let (open, text) = if is_open(major) {
            (Open::Major, format!("0.0.0{pre}"))
        } else if is_open(minor) {
            (Open::Minor, format!("{major}.0.0{pre}"))
        } else if is_open(patch) {
            (Open::Patch, format!("{major}.{minor}.0{pre}"))
        } else {
            (Open::Nothing, raw.text.to_owned())
        };
        let version = Version::parse(&text).map_err(|_| ConstraintError::Version)?;
        Ok(Self {
            operator: raw.operator,
            version,
            open,
        })
    }

    fn check(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Equal if self.open == Open::Nothing => self.compare(version).is_eq(),
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
        match self.open {
            // `!=*` means `!=0.0.0`: the numbers are compared although they are missing.
            Open::Nothing | Open::Major => self.compare(version).is_ne(),
            Open::Minor => version.major != own.major,
            Open::Patch => {
                (version.major, version.minor) != (own.major, own.minor)
                    || compare_prerelease(&version.pre, &own.pre).is_ne()
            }
        }
    }

    fn check_greater(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.open {
            Open::Nothing => self.compare(version).is_gt(),
            Open::Minor => version.major > own.major,
            Open::Patch => (version.major, version.minor) > (own.major, own.minor),
            Open::Major => version.major > own.major || self.compare(version).is_gt(),
        }
    }

    fn check_less_or_equal(&self, version: &Version) -> bool {
        let own = &self.version;
        match self.open {
            Open::Nothing => self.compare(version).is_le(),
            Open::Minor => version.major <= own.major,
            Open::Major | Open::Patch => (version.major, version.minor) <= (own.major, own.minor),
        }
    }

    fn check_tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.compare(version).is_lt() {
            return false;
        }
        let anything = (own.major, own.minor, own.patch) == (0, 0, 0);
        if anything && matches!(self.open, Open::Nothing | Open::Major) {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.open == Open::Minor)
    }

    fn check_caret(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.compare(version).is_lt() {
            return false;
        }
        if own.major > 0 || self.open == Open::Minor {
            return version.major == own.major;
        }
        if own.minor > 0 || self.open == Open::Patch {
            return (version.major, version.minor) == (0, own.minor);
        }
        (version.major, version.minor, version.patch) == (0, 0, own.patch)
    }
}

fn is_open(number: &str) -> bool {
    matches!(number, "" | "x" | "X" | "*")
}

/// Parses terms separated by white space or a comma; `None` for other texts.
fn raw_terms(text: &str) -> Option<Vec<RawTerm<'_>>> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let (term, after) = raw_term(rest)?;
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

fn raw_term(text: &str) -> Option<(RawTerm<'_>, &str)> {
    let (operator, rest) = OPERATORS
        .iter()
        .find_map(|(spelling, operator)| Some((*operator, text.strip_prefix(spelling)?)))
        .unwrap_or((Operator::Equal, text));
    let rest = rest.trim_start_matches(is_space);
    let scan = Scan::prefix(rest, is_number)?;
    let (text, after) = rest.split_at_checked(scan.len)?;
    Some((RawTerm { operator, text, scan }, after))
}

/// Upstream's class of number characters contains a `|` by mistake, which changes the error for a misplaced
/// one.
fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'x' | b'X' | b'*' | b'|')
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// Replaces each `1.2 - 2.3` with `>= 1.2, <= 2.3 `.
fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while let Some(range) = text.get(at..).and_then(next_range) {
        let replacement = format!(">= {}, <= {} ", range.from, range.to);
        // Upstream replaces the first equal text, at any position.
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
    // Every range contains this, and few constraints do.
    text.find('-')?;
    text.char_indices().find_map(|(offset, _)| range_at(text, offset))
}

fn range_at(text: &str, offset: usize) -> Option<Range<'_>> {
    let start = text.get(offset..)?;
    let lead = start.trim_start_matches(is_space);
    let (from, rest) = lead.split_at_checked(Scan::prefix(lead, is_number)?.len)?;
    let rest = spaces(rest)?.strip_prefix('-')?;
    let rest = spaces(rest)?;
    let (to, rest) = rest.split_at_checked(Scan::prefix(rest, is_number)?.len)?;
    let rest = rest.trim_start_matches(is_space);
    Some(Range {
        offset,
        text: start.get(..start.len() - rest.len())?,
        from,
        to,
    })
}

/// Returns the text after at least one white space.
fn spaces(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(is_space);
    (rest.len() < text.len()).then_some(rest)
}
