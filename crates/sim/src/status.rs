//! API errors as `metav1.Status`, with the messages of the API server.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::field::FieldErrors;

/// The result of an operation that can be rejected.
pub type Result<T> = std::result::Result<T, Status>;

/// A `metav1.Status` with status `Failure` (boxed because errors are rare).
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

/// The reason of an internal status, which is never sent to a client.
const WEBHOOK_PENDING: &str = "WebhookPending";

/// `deployments.apps`, or `pods` for the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// The API group, empty for core.
    pub group: &'a str,
    /// The plural resource, or the kind where the API server uses the kind.
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

    /// The HTTP code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason, such as `NotFound`; empty if there is none.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The human-readable message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The number of seconds after which the client may retry.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.0.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// Sets one detail.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0
            .details
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    /// Sets the object in the details.
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

    /// The path does not name a served resource of a known group.
    #[must_use]
    pub fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details()
    }

    /// The path does not support the method.
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

    /// The status as JSON.
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

    /// The object does not exist.
    #[must_use]
    pub fn not_found(what: Qualified<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{what} {name:?} not found")).about(what, name)
    }

    /// An object of this name exists already.
    #[must_use]
    pub fn already_exists(what: Qualified<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{what} {name:?} already exists")).about(what, name)
    }

    /// All names generated from `generateName` are in use.
    #[must_use]
    pub fn generate_name_conflict(what: Qualified<'_>, name: &str) -> Self {
        let text = format!(
            "{what} {name:?} already exists, the server was not able to generate a unique name for the object"
        );
        Self::new(409, "AlreadyExists", text)
            .about(what, name)
            .detail("retryAfterSeconds", 1)
    }

    /// A precondition or the resourceVersion does not match.
    #[must_use]
    pub fn conflict(what: Qualified<'_>, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} {name:?}: {why}"),
        )
        .about(what, name)
    }

    /// The resourceVersion in the request is not the stored one.
    #[must_use]
    pub fn modified(what: Qualified<'_>, name: &str) -> Self {
        Self::conflict(
            what,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Rejected by admission or authorization.
    #[must_use]
    pub fn forbidden(what: Qualified<'_>, name: &str, why: &str) -> Self {
        let message = match (what.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{what} is forbidden: {why}"),
            _ => format!("{what} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(what, name)
    }

    /// The request is not authenticated.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// The object is invalid; `kind` is its group and kind.
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

    /// The request is malformed.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The version was compacted, or the continue token is too old.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The resourceVersion of a watch is older than the history.
    #[must_use]
    pub fn too_old(asked: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {asked} ({oldest})"))
    }

    /// The resource does not support the verb.
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

    /// The content type of the body or patch is not supported.
    #[must_use]
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The client must retry later.
    #[must_use]
    pub fn too_many_requests(message: &str, retry_after: u64) -> Self {
        Self::new(429, "TooManyRequests", message).detail("retryAfterSeconds", retry_after)
    }

    /// Not an error for a client: a webhook must be called first, then the write is retried.
    #[must_use]
    pub fn webhook_pending() -> Self {
        Self::new(500, WEBHOOK_PENDING, "a webhook must be asked first")
    }

    /// Returns whether this is [`Status::webhook_pending`].
    #[must_use]
    pub fn is_webhook_pending(&self) -> bool {
        self.reason() == WEBHOOK_PENDING
    }

    /// An internal error.
    #[must_use]
    pub fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).cause("", why, "")
    }

    /// An error for which the API server has no status: code 500 without a reason.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// The server is temporarily unavailable.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// The operation timed out.
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
