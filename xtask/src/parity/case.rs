//! One comparison.

use std::fmt;
use std::path::PathBuf;

/// A chart with the arguments for both programs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Label in the report: `1.29.1/operator/istiod ambient`.
    pub(crate) label: String,
    /// Origin of the case.
    pub(crate) kind: Kind,
    /// Working directory of both programs, so that they print equal relative paths.
    pub(crate) directory: PathBuf,
    /// Everything after `template`.
    pub(crate) arguments: Vec<String>,
}

/// Kind of a comparison; the report counts each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An Istio chart that renders.
    Output,
    /// An Istio chart that both reject.
    Rejection,
    /// A chart of our own.
    EdgeCase,
    /// One of Sprig's functions.
    Function,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "Istio charts, standard output",
            Self::Rejection => "Istio charts, exit and error text",
            Self::EdgeCase => "edge-case charts, output or error text",
            Self::Function => "every Sprig function, output or error text",
        })
    }
}

/// Splits a line into arguments at blanks; single quotes group as in a shell.
pub(crate) fn split_arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let (mut current, mut quoted, mut begun) = (String::new(), false, false);
    for character in line.chars() {
        match character {
            '\'' => (quoted, begun) = (!quoted, true),
            blank if blank.is_whitespace() && !quoted => {
                if std::mem::take(&mut begun) {
                    arguments.push(std::mem::take(&mut current));
                }
            }
            other => {
                current.push(other);
                begun = true;
            }
        }
    }
    if begun {
        arguments.push(current);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::split_arguments;

    #[test]
    fn quotes_group_words() {
        assert_eq!(
            split_arguments("--set 'a=b c'  -f x"),
            ["--set", "a=b c", "-f", "x"]
        );
        assert_eq!(split_arguments("--set ''"), ["--set", ""]);
        assert_eq!(split_arguments("  "), Vec::<String>::new());
    }
}
