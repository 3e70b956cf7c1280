//! HTTP responses of the API.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::object::Object;
use crate::representation::{self, Representation};
use crate::resource::Resource;
use crate::state::State;
use crate::status::Status;
use crate::table;

/// A complete HTTP response.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// HTTP status code.
    pub code: u16,
    /// Response headers.
    pub headers: Vec<(&'static str, String)>,
    /// Response body.
    pub body: Bytes,
}

impl ApiResponse {
    /// Creates a JSON response.
    #[must_use]
    pub fn json(code: u16, value: &Value) -> Self {
        Self::bytes(code, "application/json", value.to_string().into())
    }

    /// Creates a response with a content type.
    #[must_use]
    pub fn bytes(code: u16, content_type: &str, body: Bytes) -> Self {
        Self {
            code,
            headers: vec![("content-type", content_type.to_owned())],
            body,
        }
    }

    /// Creates a plain text response.
    #[must_use]
    pub fn text(code: u16, text: &str) -> Self {
        Self::bytes(code, "text/plain; charset=utf-8", text.to_owned().into())
    }

    /// Creates a response without a body.
    #[must_use]
    pub fn empty(code: u16) -> Self {
        Self {
            code,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Returns the generic response for a path that is not served.
    #[must_use]
    pub fn not_found() -> Self {
        Self::text(404, "404 page not found\n")
    }

    /// Creates the response for an error status.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        let mut response = Self::json(status.code(), &status.to_value());
        if let Some(seconds) = status.retry_after() {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        response
    }

    /// Creates a response that contains one object in the requested representation.
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

    /// Adds warning headers.
    #[must_use]
    pub fn with_warnings(mut self, warnings: &[String]) -> Self {
        for warning in warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            self.headers.push(("warning", format!("299 - \"{quoted}\"")));
        }
        self
    }
}
