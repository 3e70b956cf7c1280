//! Errors of parsing and writing. The text of an [`Error`] equals Go's, since Helm prints it.

use std::borrow::Cow;
use std::fmt;

/// A position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Byte offset.
    pub offset: usize,
    /// Line number, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
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

/// Error of parsing a text or writing a tree.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{operation}{problem}")]
pub struct Error {
    /// The operation that failed.
    pub operation: Operation,
    /// Cause of the error.
    pub problem: Problem,
    /// Position of the error; the start of the text if the problem has no position.
    pub at: Position,
}

/// Operation that failed. Its `Display` form is the prefix that Go's wrappers add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Parsing YAML or JSON, or writing YAML; no prefix.
    Plain,
    /// Conversion of YAML to JSON by `sigs.k8s.io/yaml`.
    YamlToJson,
    /// Decoding of that JSON by `sigs.k8s.io/yaml`.
    JsonToValue,
    /// Encoding of JSON by `sigs.k8s.io/yaml`.
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
    /// The text is not YAML.
    #[error("yaml: {}{problem}", GoLine(*.line))]
    Syntax {
        /// The message of go-yaml's scanner or parser.
        problem: Cow<'static, str>,
        /// The line number that Go prints, which may differ from the position of the problem; 0 if Go
        /// prints none.
        line: usize,
    },
    /// An alias refers to an unknown anchor.
    #[error("yaml: unknown anchor '{name}' referenced")]
    UnknownAnchor {
        /// Name of the anchor.
        name: String,
    },
    /// The value of an anchor contains an alias of the same anchor.
    #[error("yaml: anchor '{name}' value contains itself")]
    CyclicAnchor {
        /// Name of the anchor.
        name: String,
    },
    /// Aliases repeat more nodes than go-yaml allows.
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
    /// The text of a scalar does not match its explicit tag.
    #[error("yaml: cannot decode {found} `{text}` as a {wanted}")]
    Tag {
        /// Tag that the text resolves to.
        found: &'static str,
        /// Text of the scalar.
        text: String,
        /// Explicit tag of the scalar.
        wanted: &'static str,
    },
    /// A scalar with the tag `!!binary` is not valid base64.
    #[error("yaml: !!binary value contains invalid base64 data")]
    Binary,
    /// The document has repeated keys, which are errors in strict mode.
    #[error("yaml: unmarshal errors:\n  {}", .lines.join("\n  "))]
    Duplicates {
        /// One line per key.
        lines: Vec<String>,
    },
    /// A map key that JSON cannot represent.
    #[error("unsupported map key of type: {kind}, key: {key}, value: {value}")]
    UnsupportedKey {
        /// Go type of the key.
        kind: &'static str,
        /// The key, in Go's syntax.
        key: String,
        /// Value of the key, in Go's syntax.
        value: String,
    },
    /// NaN or an infinity, which JSON cannot represent.
    #[error("json: unsupported value: {value}")]
    UnsupportedNumber {
        /// The number as Go prints it.
        value: &'static str,
    },
    /// A JSON value has an unexpected kind.
    #[error("json: cannot unmarshal {found} into Go value of type {wanted}")]
    Kind {
        /// Kind of the value; for a number out of range, followed by its text.
        found: Cow<'static, str>,
        /// Expected Go type.
        wanted: &'static str,
    },
    /// The text is not JSON.
    #[error("{problem}")]
    Json {
        /// The message of `encoding/json`.
        problem: String,
    },
    /// The text exceeds its [`Budget`](crate::Budget).
    #[error("more than {limit} {quantity}")]
    Budget {
        /// Name of the limited quantity.
        quantity: &'static str,
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
