//! One comparison to make, as data.

use std::fmt;
use std::path::PathBuf;

/// A chart with the arguments both programs get.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What the report calls it: `1.29.1/operator/istiod ambient`.
    pub(crate) label: String,
    /// Where it came from.
    pub(crate) kind: Kind,
    /// The folder both programs run in, so that relative paths print alike.
    pub(crate) folder: PathBuf,
    /// Everything after `template`.
    pub(crate) arguments: Vec<String>,
}

/// What a comparison is about; the report counts each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An Istio chart that renders.
    Output,
    /// An Istio chart that both refuse.
    Refusal,
    /// A chart of our own.
    Corner,
    /// One of Sprig's functions.
    Function,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "Istio charts, standard output",
            Self::Refusal => "Istio charts, exit and error text",
            Self::Corner => "corner charts, output or error text",
            Self::Function => "every Sprig function, output or error text",
        })
    }
}

/// Splits a line of arguments as a shell would: blanks separate, single quotes hold together.
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
    fn quotes_hold_blanks_together() {
        assert_eq!(
            split_arguments("--set 'a=b c'  -f x"),
            ["--set", "a=b c", "-f", "x"]
        );
        assert_eq!(split_arguments("--set ''"), ["--set", ""]);
        assert_eq!(split_arguments("  "), Vec::<String>::new());
    }
}
