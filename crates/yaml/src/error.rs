//! What can go wrong with a text or a tree, in Go's words: the text of an [`Error`] is what Helm would print.

use std::borrow::Cow;
use std::fmt;

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes before it.
    pub offset: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The start of a text.
    #[must_use]
    pub fn start() -> Self {
        Self {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

/// Why a text could not be read or a tree not be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{operation}{problem}")]
pub struct Error {
    /// What was being done.
    pub operation: Operation,
    /// What was wrong.
    pub problem: Problem,
    /// Where; the start of the text if the problem has no place in it.
    pub at: Position,
}

/// What was being done when a problem came up: the prefix Go's wrappers put before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reading YAML or JSON itself, or writing YAML.
    Plain,
    /// `sigs.k8s.io/yaml` turning YAML into JSON.
    YamlToJson,
    /// `sigs.k8s.io/yaml` reading that JSON.
    JsonToValue,
    /// `sigs.k8s.io/yaml` writing JSON first.
    ValueToJson,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "",
            Self::YamlToJson => "error converting YAML to JSON: ",
            Self::JsonToValue => "error unmarshaling JSON: while decoding JSON: ",
            Self::ValueToJson => "error marshaling into JSON: ",
        })
    }
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The text is not YAML. `line` is the number Go prints, which is not always where the problem is.
    #[error("yaml: {}{problem}", GoLine(*.line))]
    Syntax {
        /// What the scanner or parser of go-yaml says.
        problem: Cow<'static, str>,
        /// The line Go prints; 0 for none.
        line: usize,
    },
    /// An alias names no anchor.
    #[error("yaml: unknown anchor '{name}' referenced")]
    UnknownAnchor {
        /// The name.
        name: String,
    },
    /// An anchor's value holds its own alias.
    #[error("yaml: anchor '{name}' value contains itself")]
    CyclicAnchor {
        /// The name.
        name: String,
    },
    /// Aliases repeat too much.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
    /// A list or a map is the key of a map.
    #[error("yaml: invalid map key: {key}")]
    InvalidKey {
        /// The key, in Go's syntax.
        key: String,
    },
    /// `<<` wants maps.
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// A scalar does not fit its explicit tag.
    #[error("yaml: cannot decode {found} `{text}` as a {wanted}")]
    Tag {
        /// The tag that its text resolves to.
        found: &'static str,
        /// The scalar.
        text: String,
        /// The tag it carries.
        wanted: &'static str,
    },
    /// `!!binary` without base64.
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    /// Keys given twice, where the caller asked to be strict.
    #[error("yaml: unmarshal errors:\n  {}", .lines.join("\n  "))]
    Duplicates {
        /// One line per key.
        lines: Vec<String>,
    },
    /// A key that JSON cannot hold.
    #[error("unsupported map key of type: {kind}, key: {key}, value: {value}")]
    UnsupportedKey {
        /// Its Go type.
        kind: &'static str,
        /// The key, in Go's syntax.
        key: String,
        /// Its value, in Go's syntax.
        value: String,
    },
    /// NaN or an infinity, which JSON cannot hold.
    #[error("json: unsupported value: {value}")]
    UnsupportedNumber {
        /// The number as Go prints it.
        value: &'static str,
    },
    /// A JSON value of another kind than asked for.
    #[error("json: cannot unmarshal {found} into Go value of type {wanted}")]
    Kind {
        /// The kind found; for a number out of range with its text.
        found: Cow<'static, str>,
        /// The Go type asked for.
        wanted: &'static str,
    },
    /// The text is not JSON.
    #[error("{problem}")]
    Json {
        /// What `encoding/json` says.
        problem: String,
    },
    /// The text costs more than its [`Budget`](crate::Budget).
    #[error("more than {limit} {of}")]
    Budget {
        /// What there is too much of.
        of: &'static str,
        /// How much would do.
        limit: usize,
    },
    /// go-yaml's writer refuses the value.
    #[error("yaml: {problem}")]
    Unwritable {
        /// What it says.
        problem: &'static str,
    },
}

struct GoLine(usize);

impl fmt::Display for GoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        write!(f, "line {}: ", self.0)
    }
}

impl Problem {
    /// This problem at `at`, with no prefix.
    #[must_use]
    pub fn at(self, at: Position) -> Error {
        Error {
            operation: Operation::Plain,
            problem: self,
            at,
        }
    }
}

impl Error {
    /// The same error under another prefix.
    #[must_use]
    pub fn during(mut self, operation: Operation) -> Self {
        self.operation = operation;
        self
    }
}
