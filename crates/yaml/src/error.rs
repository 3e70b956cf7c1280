//! Errors in Go's words: the text of an [`Error`] is what Helm prints.

use std::borrow::Cow;
use std::fmt;

/// A position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of bytes before it.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the start of a text.
    #[must_use]
    pub fn start() -> Self {
        Self {
            offset: 0,
            line: 1,
            column: 1,
        }
    }
}

/// The reason why a text could not be parsed or a tree could not be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{operation}{problem}")]
pub struct Error {
    /// The operation that failed.
    pub operation: Operation,
    /// The problem.
    pub problem: Problem,
    /// The position; the start of the text if the problem has none.
    pub at: Position,
}

/// The operation during which a problem occurred, printed as the prefix that Go's wrappers add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Parsing YAML or JSON, or writing YAML.
    Plain,
    /// `sigs.k8s.io/yaml` converting YAML to JSON.
    YamlToJson,
    /// `sigs.k8s.io/yaml` decoding that JSON.
    JsonToValue,
    /// `sigs.k8s.io/yaml` encoding JSON.
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

/// The cause of an error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The text is not YAML. `line` is the number that Go prints, which is not always the position of the
    /// problem.
    #[error("yaml: {}{problem}", GoLine(*.line))]
    Syntax {
        /// The message of go-yaml's scanner or parser.
        problem: Cow<'static, str>,
        /// The line that Go prints; 0 for none.
        line: usize,
    },
    /// An alias refers to an unknown anchor.
    #[error("yaml: unknown anchor '{name}' referenced")]
    UnknownAnchor {
        /// The name.
        name: String,
    },
    /// The value of an anchor contains its own alias.
    #[error("yaml: anchor '{name}' value contains itself")]
    CyclicAnchor {
        /// The name.
        name: String,
    },
    /// Aliases repeat too many nodes.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
    /// A list or a map is used as the key of a map.
    #[error("yaml: invalid map key: {key}")]
    InvalidKey {
        /// The key, in Go's syntax.
        key: String,
    },
    /// The value of `<<` is not a map or a list of maps.
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    /// A scalar does not match its explicit tag.
    #[error("yaml: cannot decode {found} `{text}` as a {wanted}")]
    Tag {
        /// The tag that its text resolves to.
        found: &'static str,
        /// The scalar.
        text: String,
        /// Its explicit tag.
        wanted: &'static str,
    },
    /// `!!binary` without valid base64.
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    /// Repeated keys, in strict mode.
    #[error("yaml: unmarshal errors:\n  {}", .lines.join("\n  "))]
    Duplicates {
        /// One line per key.
        lines: Vec<String>,
    },
    /// A key that JSON cannot represent.
    #[error("unsupported map key of type: {kind}, key: {key}, value: {value}")]
    UnsupportedKey {
        /// Its Go type.
        kind: &'static str,
        /// The key, in Go's syntax.
        key: String,
        /// Its value, in Go's syntax.
        value: String,
    },
    /// NaN or an infinity, which JSON cannot represent.
    #[error("json: unsupported value: {value}")]
    UnsupportedNumber {
        /// The number as Go prints it.
        value: &'static str,
    },
    /// A JSON value of an unexpected kind.
    #[error("json: cannot unmarshal {found} into Go value of type {wanted}")]
    Kind {
        /// The kind found; for a number out of range with its text.
        found: Cow<'static, str>,
        /// The expected Go type.
        wanted: &'static str,
    },
    /// The text is not JSON.
    #[error("{problem}")]
    Json {
        /// The message of `encoding/json`.
        problem: String,
    },
    /// The text exceeds its [`Budget`](crate::Budget).
    #[error("more than {limit} {of}")]
    Budget {
        /// The exceeded quantity.
        of: &'static str,
        /// The limit.
        limit: usize,
    },
    /// go-yaml's writer rejects the value.
    #[error("yaml: {problem}")]
    Unwritable {
        /// The message of go-yaml.
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
    /// Creates an error at `at`, without a prefix.
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
    /// Sets the operation that failed.
    #[must_use]
    pub fn during(mut self, operation: Operation) -> Self {
        self.operation = operation;
        self
    }
}
