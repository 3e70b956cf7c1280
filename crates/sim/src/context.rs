//! Context of a request: user, options, warnings and webhook replies.

use serde_json::Value;

use crate::auth::User;
use crate::tree;

/// Handling of fields that the schema does not define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop unknown fields without a warning.
    Ignore,
    /// Drop unknown fields and return a warning header.
    #[default]
    Warn,
    /// Reject objects with unknown fields.
    Strict,
}

/// Context of a request during decoding, admission and storage.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent properties of a request"
)]
pub struct Context {
    /// The authenticated (or impersonated) user.
    pub user: User,
    /// Whether the request is a dry run (`dryRun=All`), which stores nothing.
    pub dry_run: bool,
    /// Field manager: from the query if it contains one, otherwise from the user agent.
    pub manager: String,
    /// Whether the query contains the field manager.
    pub manager_named: bool,
    /// Whether an apply has `force=true`.
    pub force: bool,
    /// Whether the write is a patch. A uid in a patch is not a precondition.
    pub patched: bool,
    /// Whether the write is a server-side apply, which has determined field ownership already.
    pub applied: bool,
    /// Whether the request sets empty `managedFields`, which resets field ownership.
    pub resets_owners: bool,
    /// Handling of unknown fields.
    pub field_validation: FieldValidation,
    /// Subresource being written. Empty for the object itself.
    pub subresource: String,
    /// Options in the query and body as webhooks receive them, without their kind.
    pub options: Value,
    /// Whether the client is a built-in controller, which cannot wait for the reply of a webhook.
    pub internal: bool,
    /// Warnings for the response header.
    pub warnings: Vec<String>,
    /// Replies to the webhook calls of earlier attempts of this request.
    pub webhook_replies: Vec<(WebhookCall, WebhookReply)>,
    /// Webhook call that must complete before the request can be handled. The request is then handled
    /// again from the start.
    pub pending: Option<WebhookCall>,
}

/// A call to an admission webhook outside this process.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// Address of the webhook.
    pub to: Destination,
    /// CA bundle of the webhook: base64-encoded PEM, or empty.
    pub ca_bundle: String,
    /// Timeout in seconds.
    pub timeout_seconds: i64,
    /// The `AdmissionReview` to send.
    pub body: Value,
}

/// Address of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// URL of a webhook outside the cluster.
    Url(String),
    /// A Service of the cluster.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// URL path, with a leading slash.
        path: String,
        /// Port of the Service.
        port: u16,
    },
}

impl Destination {
    /// Returns the address of a Service on port 443.
    #[must_use]
    pub fn service(namespace: &str, name: &str, path: &str) -> Self {
        Self::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: format!("/{}", path.trim_start_matches('/')),
            port: 443,
        }
    }

    /// Parses a `clientConfig`.
    #[must_use]
    pub fn parse(config: &Value) -> Self {
        let text = |key| tree::text(config, &["service", key]);
        if tree::map(config, &["service"]).is_none() {
            return Self::Url(tree::text(config, &["url"]).to_owned());
        }
        let port = tree::int(config, &["service", "port"]).and_then(|port| u16::try_from(port).ok());
        Self::Service {
            namespace: text("namespace").to_owned(),
            name: text("name").to_owned(),
            path: format!("/{}", text("path").trim_start_matches('/')),
            port: port.unwrap_or(443),
        }
    }

    /// Returns the text of the connection error that is reported if no transport is set.
    #[must_use]
    pub fn unreachable_reason(&self) -> String {
        match self {
            Self::Service { name, .. } => format!("no endpoints available for service {name:?}"),
            Self::Url(url) => {
                let host = url.split('/').nth(2).unwrap_or("");
                format!(
                    "dial tcp: lookup {}: no such host",
                    host.split(':').next().unwrap_or("")
                )
            }
        }
    }

    /// Returns the URL for error messages and for the verification of certificates.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Service {
                namespace,
                name,
                path,
                port,
            } => format!("https://{name}.{namespace}.svc:{port}{path}"),
        }
    }
}

/// Result of a webhook call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookReply {
    /// An HTTP response: status code and body.
    Response(u16, String),
    /// A connection error, with the text of Go's HTTP client.
    Failed(String),
    /// No response within the timeout.
    TimedOut,
}

impl Context {
    /// Creates the context for a write by the built-in controller `name`.
    #[must_use]
    pub fn for_controller(name: &str) -> Self {
        Self {
            user: User::system(name),
            internal: true,
            manager: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a warning for the response header unless it is already present.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Returns the reply to `call`, or records the call as pending and returns `None`.
    pub fn call_webhook(&mut self, call: WebhookCall) -> Option<WebhookReply> {
        if let Some((_, reply)) = self.webhook_replies.iter().find(|(earlier, _)| *earlier == call) {
            return Some(reply.clone());
        }
        self.pending = Some(call);
        None
    }
}
