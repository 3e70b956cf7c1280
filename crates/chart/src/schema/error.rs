//! Errors of compiling a schema, with the messages of `santhosh-tekuri/jsonschema`.

use mainstay_gostd::quote::quote;
use mainstay_gostd::url::UrlError;

use super::outcome::quote as single_quote;

/// Error of compiling a schema.
#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    /// The schema is not JSON. The text is the message of Go's decoder.
    #[error("{0}")]
    Json(String),
    /// A referenced document is not available.
    #[error("failing loading {}: {reason}", quote(.url))]
    Load { url: String, reason: LoadError },
    /// The root schema names itself as its draft.
    #[error("draft {} is not supported", quote(.0))]
    Draft(String),
    /// The schema violates its metaschema. `report` lists the violations.
    #[error(
        "{} is not valid against metaschema: jsonschema validation failed with {}{report}",
        quote(.location),
        single_quote(&format!("{metaschema}#"))
    )]
    Metaschema {
        location: String,
        metaschema: &'static str,
        report: String,
    },
    /// Checking the schema exceeds the step limit.
    #[error("schema takes too many steps to check")]
    TooManySteps,
    /// A pattern is not a regular expression.
    #[error("invalid regex {} at {}: {reason}", quote(.pattern), quote(.location))]
    Regex {
        pattern: String,
        location: String,
        reason: mainstay_sprig::RegexError,
    },
    /// Two schemas have the same `$id`.
    #[error("duplicate id {} in {} at {} and {}", quote(.id), quote(.document), quote(.first), quote(.second))]
    DuplicateId {
        id: String,
        document: String,
        first: String,
        second: String,
    },
    /// Two schemas have the same anchor.
    #[error("duplicate anchor {} in {} at {} and {}", quote(.anchor), quote(.document), quote(.first), quote(.second))]
    DuplicateAnchor {
        anchor: String,
        document: String,
        first: String,
        second: String,
    },
    /// An `id` contains an invalid anchor.
    #[error("error in parsing anchor at {}", quote(.0))]
    InvalidAnchor(String),
    /// A reference has an unknown anchor.
    #[error("anchor in {} not found in schema {}", quote(.reference), quote(.document))]
    UnknownAnchor { reference: String, document: String },
    /// A JSON pointer contains an invalid escape.
    #[error("invalid json-pointer {}", quote(.0))]
    InvalidPointer(String),
    /// A JSON pointer refers to a location that does not exist.
    #[error("json-pointer in {} not found", quote(.0))]
    UnknownPointer(String),
    /// A reference contains an invalid escape.
    #[error("error in parsing {}: {reason}", quote(.reference))]
    InvalidReference { reference: String, reason: UrlError },
}

/// Reason why a referenced document is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The document is neither the schema itself nor a metaschema.
    #[error("references outside the schema are not allowed")]
    OutsideSchema,
    /// The URL has an unknown scheme.
    #[error("no URLLoader registered for {}", quote(.0))]
    UnknownScheme(String),
}
