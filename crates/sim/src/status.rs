//! API errors as `metav1.Status`, with the messages of the API server.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::field::FieldErrors;

/// Result of an operation that can be rejected.
pub type Result<T> = std::result::Result<T, Status>;

/// A `metav1.Status` with status `Failure`. It is boxed to keep results small, because errors are rare.
#[derive(Clone, Debug, PartialEq)]
pub struct Status(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Map<String, Value>>,
    token: String,
}

/// Reason of the status [`Status::webhook_pending`], which is never sent to a client.
const WEBHOOK_PENDING: &str = "WebhookPending";

/// A resource or kind with its group, formatted as `deployments.apps`, or `pods` in the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural name of the resource, or the kind where the API server uses the kind.
    pub name: &'a str,
}

impl std::fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.group, self.name) {
            ("", name) => f.write_str(name),
            (group, name) => write!(f, "{name}.{group}"),
        }
    }
}

impl Status {
    /// Creates a status without details.
    #[must_use]
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            token: String::new(),
        }))
    }

    /// Returns the HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Returns the machine-readable reason, such as `NotFound`; empty if there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns the human-readable message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the number of seconds after which the client may retry, if the details contain it.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.0.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// Sets a field of the details.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0
            .details
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    /// Sets name, group and kind of the object in the details.
    #[must_use]
    pub fn about(self, what: Qualified<'_>, name: &str) -> Self {
        let mut status = self;
        let details = status.0.details.get_or_insert_default();
        for (key, value) in [("name", name), ("group", what.group), ("kind", what.name)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        status
    }

    /// Sets a continue token in the metadata.
    #[must_use]
    pub fn with_continue(mut self, token: &str) -> Self {
        token.clone_into(&mut self.0.token);
        self
    }

    /// Adds empty details if there are none.
    #[must_use]
    pub fn with_details(mut self) -> Self {
        self.0.details.get_or_insert_default();
        self
    }

    /// Returns the error for a path that does not refer to a served resource of a known group.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details()
    }

    /// Returns the error for a path that does not support the method.
    #[must_use]
    pub fn no_such_method() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", text).with_details()
    }

    /// Appends a cause to the details.
    #[must_use]
    pub fn cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        let details = self.0.details.get_or_insert_default();
        let causes = details.entry("causes").or_insert_with(|| json!([]));
        let mut cause = Map::new();
        for (key, value) in [("reason", reason), ("message", message), ("field", field)] {
            if !value.is_empty() {
                cause.insert(key.into(), value.into());
            }
        }
        if let Value::Array(causes) = causes {
            causes.push(Value::Object(cause));
        }
        self
    }

    /// Returns the status as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": self.0.code,
        });
        if let Value::Object(map) = &mut value {
            if !self.0.token.is_empty() {
                map.insert("metadata".into(), json!({"continue": self.0.token}));
            }
            if !self.0.message.is_empty() {
                map.insert("message".into(), self.0.message.clone().into());
            }
            if !self.0.reason.is_empty() {
                map.insert("reason".into(), self.0.reason.as_ref().into());
            }
            if let Some(details) = &self.0.details {
                map.insert("details".into(), Value::Object(details.clone()));
            }
        }
        value
    }

    /// Returns the error for an object that does not exist.
    #[must_use]
    pub fn not_found(what: Qualified<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{what} {name:?} not found")).about(what, name)
    }

    /// Returns the error for a name that another object already has.
    #[must_use]
    pub fn already_exists(what: Qualified<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{what} {name:?} already exists")).about(what, name)
    }

    /// Returns the error for a `generateName` from which only names in use were generated.
    #[must_use]
    pub fn generate_name_conflict(what: Qualified<'_>, name: &str) -> Self {
        let text = format!(
            "{what} {name:?} already exists, the server was not able to generate a unique name for the object"
        );
        Self::new(409, "AlreadyExists", text)
            .about(what, name)
            .detail("retryAfterSeconds", 1)
    }

    /// Returns the error for a precondition or a resourceVersion that does not match.
    #[must_use]
    pub fn conflict(what: Qualified<'_>, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} {name:?}: {why}"),
        )
        .about(what, name)
    }

    /// Returns the error for a resourceVersion that differs from the stored one.
    #[must_use]
    pub fn modified(what: Qualified<'_>, name: &str) -> Self {
        Self::conflict(
            what,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Returns the error for a request that admission or authorization rejects.
    #[must_use]
    pub fn forbidden(what: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = match (what.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{what} is forbidden: {why}"),
            _ => format!("{what} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(what, name)
    }

    /// Returns the error for a request that is not authenticated.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Returns the error for an invalid object. `kind` is its group and kind.
    #[must_use]
    pub fn invalid(kind: Qualified<'_>, name: &str, errors: &FieldErrors) -> Self {
        let shown = errors.aggregate();
        let message = match shown.as_str() {
            "" => format!("{kind} {name:?} is invalid"),
            shown => format!("{kind} {name:?} is invalid: {shown}"),
        };
        let status = Self::new(422, "Invalid", message).about(kind, name);
        errors.iter().fold(status, |status, error| {
            status.cause(error.reason(), &error.body(), error.field())
        })
    }

    /// Returns the error for a malformed request.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Returns the error for a version that was compacted, or for a continue token that is too old.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Returns the error for a watch from the version `requested`, which is older than the first version
    /// `oldest` of the history.
    #[must_use]
    pub fn too_old(requested: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// Returns the error for a resource that does not support a verb.
    #[must_use]
    pub fn method_not_supported(what: Qualified<'_>, action: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!(
                "{action} is not supported on resources of kind {:?}",
                what.to_string()
            ),
        )
        .about(what, "")
    }

    /// Returns the error for an unsupported content type of a body or patch.
    #[must_use]
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns the error for a request that the client must retry after `retry_after` seconds.
    #[must_use]
    pub fn too_many_requests(message: &str, retry_after: u64) -> Self {
        Self::new(429, "TooManyRequests", message).detail("retryAfterSeconds", retry_after)
    }

    /// Returns an internal status, which is not an error for a client: a webhook must be called, then the
    /// write is retried.
    #[must_use]
    pub fn webhook_pending() -> Self {
        Self::new(500, WEBHOOK_PENDING, "a webhook must be called first")
    }

    /// Returns whether this is [`Status::webhook_pending`].
    #[must_use]
    pub fn is_webhook_pending(&self) -> bool {
        self.reason() == WEBHOOK_PENDING
    }

    /// Returns an internal error.
    #[must_use]
    pub fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).cause("", why, "")
    }

    /// Returns an error for which the API server has no status: code 500 without a reason.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// Returns the error of a server that is temporarily unavailable.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// Returns the error for an operation that timed out. The client may retry after `retry_after` seconds.
    #[must_use]
    pub fn timeout(message: &str, retry_after: u64) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {message}")).detail("retryAfterSeconds", retry_after)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Status {}
