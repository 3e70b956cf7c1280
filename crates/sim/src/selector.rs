//! Label and field selectors of a request.

use serde_json::Value;

use crate::object::{Fields, Object};
use crate::resource::{Resource, Shape};
use crate::status::{Result, Status};

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Error for an invalid selector, with the API server's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl SelectorError {
    fn into_status(self) -> Status {
        Status::bad_request(self.0)
    }
}

/// Label and field selector of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Label selector.
    pub labels: LabelSelector,
    /// Field selector.
    pub fields: FieldSelector,
}

impl Selector {
    /// Parses both selectors. Fails if `resource` does not support a field.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self> {
        let labels = LabelSelector::parse(labels).map_err(SelectorError::into_status)?;
        let fields = FieldSelector::parse(fields).map_err(SelectorError::into_status)?;
        fields.check(resource).map_err(SelectorError::into_status)?;
        Ok(Self { labels, fields })
    }

    /// Returns whether the selector matches every object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether `object` matches.
    #[must_use]
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&|key| object.meta().label(key))
            && self.fields.matches(&|path| object.field(path).unwrap_or(""))
    }
}

/// Returns the values of an object's selectable fields. They are computed once, when the object is stored.
#[must_use]
pub fn selectable(resource: &Resource, value: &Value) -> Fields {
    match &resource.shape {
        Shape::Custom(custom) => custom
            .selectable
            .iter()
            .map(|path| (path.clone().into(), field::field_text(value, path).into()))
            .collect(),
        Shape::Builtin(_) => {
            let paths = field::known_fields(&resource.table);
            paths
                .iter()
                .map(|path| ((*path).into(), field::field_text(value, path).into()))
                .collect()
        }
    }
}
