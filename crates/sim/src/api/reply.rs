//! Answers: takes objects or refusals, gives code, headers and body.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::object::Object;
use crate::representation::{self, Representation};
use crate::resource::Resource;
use crate::state::State;
use crate::status::Status;
use crate::table;

/// Code, headers and body.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// HTTP code.
    pub code: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Bytes,
}

impl ApiResponse {
    /// A JSON body.
    #[must_use]
    pub fn json(code: u16, value: &Value) -> Self {
        Self::bytes(code, "application/json", value.to_string().into())
    }

    /// A body of some type.
    #[must_use]
    pub fn bytes(code: u16, content_type: &str, body: Bytes) -> Self {
        Self {
            code,
            headers: vec![("content-type", content_type.to_owned())],
            body,
        }
    }

    /// A plain text.
    #[must_use]
    pub fn text(code: u16, text: &str) -> Self {
        Self::bytes(code, "text/plain; charset=utf-8", text.to_owned().into())
    }

    /// No body at all.
    #[must_use]
    pub fn empty(code: u16) -> Self {
        Self {
            code,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// What the server says to a path it does not serve.
    #[must_use]
    pub fn not_found() -> Self {
        Self::text(404, "404 page not found\n")
    }

    /// A refusal.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        let mut answer = Self::json(status.code(), &status.to_value());
        if let Some(seconds) = status.retry_after() {
            answer.headers.push(("retry-after", seconds.to_string()));
        }
        answer
    }

    /// One object in the form asked for.
    #[must_use]
    pub(super) fn object(
        state: &State,
        resource: &Resource,
        object: &Object,
        code: u16,
        form: Representation,
        include: table::Include,
    ) -> Self {
        match form {
            Representation::Whole => {
                Self::bytes(code, "application/json", representation::whole(resource, object))
            }
            Representation::Metadata => Self::json(code, &representation::partial(object)),
            Representation::Table => {
                let meta = json!({"resourceVersion": object.meta().version.to_string()});
                Self::json(
                    code,
                    &table::render(state, resource, &[object], &meta, true, include),
                )
            }
        }
    }

    /// The same answer with warnings in its header.
    #[must_use]
    pub fn with_warnings(mut self, warnings: &[String]) -> Self {
        for warning in warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            self.headers.push(("warning", format!("299 - \"{quoted}\"")));
        }
        self
    }
}
