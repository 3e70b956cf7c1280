//! Errors of fields: a path, an error type and a detail, formatted as the API server formats them. This
//! module does not depend on kinds.

use std::fmt;

use serde_json::Value;

use crate::show;

/// The path of a field, such as `spec.template.spec.containers[0].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// Creates a path from its text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the path of the field `name` of this object.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self(name.to_owned())
        } else {
            Self([&self.0, ".", name].concat())
        }
    }

    /// Returns the path of the item at `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Returns the path of the entry `key` of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// The type of a field error, which determines its reason and its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// A required value is missing.
    Required,
    /// The field must not be set or changed.
    Forbidden,
    /// The value violates a rule.
    Invalid,
    /// The value is of the wrong type.
    TypeInvalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value occurs more than once.
    Duplicate,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// An internal error prevented the check.
    Internal,
}

impl ErrorType {
    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::NotFound => "FieldValueNotFound",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }

    fn message_prefix(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::NotFound => "Not found",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// An error of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    error_type: ErrorType,
    field: String,
    value: Option<String>,
    detail: String,
}

impl FieldError {
    /// Returns the type of the error.
    #[must_use]
    pub fn error_type(&self) -> ErrorType {
        self.error_type
    }

    /// Returns the reason of the status cause, such as `FieldValueInvalid`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.error_type.reason()
    }

    /// Returns the path of the field.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the message without the path.
    #[must_use]
    pub fn body(&self) -> String {
        let mut body = self.error_type.message_prefix().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(value);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// All field errors of an object, in the order they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether there are no errors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of errors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the errors.
    pub fn iter(&self) -> impl Iterator<Item = &FieldError> {
        self.0.iter()
    }

    /// Moves the errors of `other` to the end of this list.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Adds an error of any type.
    pub fn push(
        &mut self,
        error_type: ErrorType,
        path: &Path,
        value: Option<&Value>,
        detail: impl Into<String>,
    ) {
        let error = FieldError {
            error_type,
            field: path.to_string(),
            value: value.map(show::value),
            detail: detail.into(),
        };
        self.0.push(error);
    }

    /// Adds an error for a missing required value.
    pub fn required(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(ErrorType::Required, path, None, detail);
    }

    /// Adds an error for a field that must not be set or changed.
    pub fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(ErrorType::Forbidden, path, None, detail);
    }

    /// Adds an error for a value that violates a rule.
    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(ErrorType::Invalid, path, Some(&value.into()), detail);
    }

    /// Adds an error for an invalid value that is printed as `shown`. The API server prints its internal
    /// types, which have field names that differ from the JSON.
    pub fn invalid_shown(&mut self, path: &Path, shown: String, detail: impl Into<String>) {
        self.0.push(FieldError {
            error_type: ErrorType::Invalid,
            field: path.to_string(),
            value: Some(shown),
            detail: detail.into(),
        });
    }

    /// Adds an error of any type. The value is printed as `shown`, or omitted if `shown` is `None`.
    pub fn push_shown(
        &mut self,
        error_type: ErrorType,
        path: &Path,
        shown: Option<String>,
        detail: impl Into<String>,
    ) {
        self.0.push(FieldError {
            error_type,
            field: path.to_string(),
            value: shown,
            detail: detail.into(),
        });
    }

    /// Adds an error for a list of more than `max` items.
    pub fn too_many(&mut self, path: &Path, have: usize, max: usize) {
        let items = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {items}");
        self.push_shown(ErrorType::TooMany, path, Some(have.to_string()), detail);
    }

    /// Sorts errors by their text, as some checks of the API server do.
    pub fn sort(&mut self) {
        self.0.sort_by_key(ToString::to_string);
    }

    /// Adds an error for a duplicate value.
    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(ErrorType::Duplicate, path, Some(&value.into()), "");
    }

    /// Adds an error for a duplicate value that is printed as `shown`.
    pub fn duplicate_shown(&mut self, path: &Path, shown: String) {
        self.0.push(FieldError {
            error_type: ErrorType::Duplicate,
            field: path.to_string(),
            value: Some(shown),
            detail: String::new(),
        });
    }

    /// Adds an error for a value that refers to something that does not exist.
    pub fn not_found(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(ErrorType::NotFound, path, Some(&value.into()), "");
    }

    /// Adds an error for a value that is not one of `supported`, which are listed in the given order.
    pub fn not_supported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        let list: Vec<_> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = if list.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", list.join(", "))
        };
        self.push(ErrorType::NotSupported, path, Some(&value.into()), detail);
    }

    /// Adds an error for a value of more than `max` bytes.
    pub fn too_long(&mut self, path: &Path, max: usize) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        self.push(
            ErrorType::TooLong,
            path,
            None,
            format!("may not be more than {max} {unit}"),
        );
    }

    /// Joins the distinct messages. Several messages are enclosed in brackets, a single one is not.
    #[must_use]
    pub fn aggregate(&self) -> String {
        let mut seen: Vec<String> = Vec::new();
        for error in &self.0 {
            let text = error.to_string();
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        match seen.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_errors_are_enclosed_in_brackets() {
        let spec = Path::new("spec");
        let mut errors = FieldErrors::new();
        errors.required(&spec.child("selector"), "");
        assert_eq!(errors.aggregate(), "spec.selector: Required value");
        errors.invalid(&spec.child("ports").index(1).key("a"), 7, "too odd");
        errors.required(&spec.child("selector"), "");
        errors.not_supported(&spec.child("type"), "X", &["A", "B"]);
        assert_eq!(
            errors.aggregate(),
            "[spec.selector: Required value, spec.ports[1][a]: Invalid value: 7: too odd, \
             spec.type: Unsupported value: \"X\": supported values: \"A\", \"B\"]"
        );
    }
}
