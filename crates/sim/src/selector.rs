//! Which objects are meant: takes selector texts, gives a test for objects. Knows no store.

use serde_json::Value;

use crate::object::{Fields, Object};
use crate::resource::{Resource, Shape};
use crate::status::{Result, Status};

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Both selectors of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

impl Selector {
    /// Reads both; `resource` says which fields may be asked for.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self> {
        let labels = LabelSelector::parse(labels).map_err(Status::bad_request)?;
        let fields = FieldSelector::parse(fields).map_err(Status::bad_request)?;
        fields.check(resource).map_err(Status::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether `object` is meant.
    #[must_use]
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&|key| object.meta().label(key))
            && self.fields.matches(&|path| object.field(path).unwrap_or(""))
    }
}

/// The values of an object's selectable fields, taken when it is stored.
#[must_use]
pub fn selectable(resource: &Resource, value: &Value) -> Fields {
    match &resource.shape {
        Shape::Custom(custom) => custom
            .selectable
            .iter()
            .map(|path| (path.clone().into(), field::text_at(value, path).into()))
            .collect(),
        Shape::Builtin(_) => {
            let paths = field::known(&resource.table);
            paths
                .iter()
                .map(|path| ((*path).into(), field::text_at(value, path).into()))
                .collect()
        }
    }
}
