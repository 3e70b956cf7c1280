//! Renders objects as the `Table` that `kubectl get` prints. The columns of each kind are in the submodules.

use serde_json::{Value, json};

use crate::convert;
use crate::object::Object;
use crate::resource::{Resource, Shape};
use crate::state::State;
use crate::tree;

mod age;
mod cells;
mod custom;
mod kinds;
mod more;
mod pod;

pub use age::age;

/// Part of each object that a row contains (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// No part.
    None,
}

impl Include {
    /// Parses the query parameter `includeObject`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            "None" => Some(Self::None),
            _ => None,
        }
    }
}

/// A column definition.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    kind: String,
    format: String,
    description: String,
    priority: i64,
}

/// Columns of a resource, and a function that returns the cells of an object.
type Printer = (Vec<Column>, Box<dyn Fn(&Value, &State) -> Vec<Value>>);

/// Renders `objects` as a table. `columns` selects whether the column definitions are included.
#[must_use]
pub fn render(
    state: &State,
    resource: &Resource,
    objects: &[&Object],
    meta: &Value,
    columns: bool,
    include: Include,
) -> Value {
    let (definitions, cells) = printer(resource);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| row(state, resource, object, &cells, include))
        .collect();
    let definitions: Vec<Value> = if columns {
        definitions.iter().map(Column::to_value).collect()
    } else {
        Vec::new()
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "columnDefinitions": definitions, "rows": rows})
}

fn row(
    state: &State,
    resource: &Resource,
    object: &Object,
    cells: &dyn Fn(&Value, &State) -> Vec<Value>,
    include: Include,
) -> Value {
    let value = convert::from_stored(resource, object.value());
    let mut row = json!({"cells": cells(&value, state)});
    match include {
        Include::Metadata => tree::set(&mut row, &["object"], crate::representation::partial(object)),
        Include::Object => tree::set(&mut row, &["object"], value),
        Include::None => {}
    }
    row
}

impl Column {
    fn new(name: &str, kind: &str, priority: i64) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self {
            name: name.into(),
            kind: kind.into(),
            format: format.into(),
            description: String::new(),
            priority,
        }
    }

    fn to_value(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": self.description, "priority": self.priority,
        })
    }
}

fn printer(resource: &Resource) -> Printer {
    if let Shape::Custom(custom) = &resource.shape {
        return custom::printer(custom);
    }
    if let Some((columns, cells)) = kinds::find(&resource.table) {
        return (columns, Box::new(cells));
    }
    let columns = vec![
        Column::new("Name", "string", 0),
        Column::new("Created At", "date", 0),
    ];
    let cells = |value: &Value, _: &State| {
        vec![
            tree::text(value, &["metadata", "name"]).into(),
            tree::text(value, &["metadata", "creationTimestamp"]).into(),
        ]
    };
    (columns, Box::new(cells))
}
