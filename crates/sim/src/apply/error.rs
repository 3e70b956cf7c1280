//! Errors of field sets and managed fields, with the texts of the real API server.

/// A malformed `managedFields` list or field set.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManagedFieldsError {
    /// An entry has an unknown operation.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry has no API version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry has no fields type.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// An entry has an unknown fields type.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {index}")]
    InvalidFieldsType {
        fields_type: String,
        /// The index of the entry.
        index: usize,
    },
    /// A field set is not an object.
    #[error("fields must be an object")]
    NotAnObject,
    /// A path element has no type prefix.
    #[error("missing colon: {0}")]
    MissingColon(String),
    /// An index is not a number.
    #[error("invalid index: {0}")]
    InvalidIndex(String),
    /// The keys of a list item are not an object.
    #[error("keys must be an object: {0}")]
    InvalidKeys(String),
    /// A field set or a value in it is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A list item that has no path element.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListItemError {
    /// The list is owned as a whole.
    #[error("invalid indexing of non-associative list")]
    NotAssociative,
    /// The item of a list with keys is null.
    #[error("associative list with keys may not have a null element")]
    NullElement,
    /// The item of a list with keys is not a map.
    #[error("associative list with keys may not have non-map elements")]
    NonMapElement,
    /// The item has none of the keys.
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any key fields)"
    )]
    MissingKeys(String),
    /// The item of a set is a map.
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    /// The item of a set is a list.
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    /// The item of a set is null.
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}
