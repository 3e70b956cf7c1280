//! Who asks and how: what accompanies one request through the pipeline, beside the object itself.

use serde_json::Value;

use crate::auth::User;
use crate::tree;

/// What to do about fields the type does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them in silence.
    Ignore,
    /// Drop them and say so in a header.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

/// One request's company.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent yes/no facts about a request"
)]
pub struct Context {
    /// Who asks.
    pub user: User,
    /// Nothing is to be kept.
    pub dry_run: bool,
    /// The name under which fields are owned; from the query, else from the user agent.
    pub manager: String,
    /// Whether the query named the manager.
    pub manager_named: bool,
    /// `force=true` of an apply.
    pub force: bool,
    /// The write is a patch: a uid in it is no precondition.
    pub patched: bool,
    /// The write is a server-side apply: who owns what was settled when it was merged.
    pub applied: bool,
    /// The sent object says that nobody shall own its fields any more.
    pub resets_owners: bool,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// The subresource written to, empty for the object itself.
    pub subresource: String,
    /// What the query and body ask for beyond the object, as webhooks are shown it (without its kind).
    pub options: Value,
    /// A controller writes: it cannot wait for anybody outside.
    pub internal: bool,
    /// Warnings for the reply's header.
    pub warnings: Vec<String>,
    /// Answers from outside (webhooks) that earlier tries of this request asked for, by question.
    pub webhook_replies: Vec<(WebhookCall, WebhookReply)>,
    /// What must be asked outside before this request can go on: the request is then tried again from the start.
    pub pending: Option<WebhookCall>,
}

/// Something only the outside can answer: a webhook's verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookCall {
    /// Who is asked.
    pub to: Destination,
    /// The bundle that vouches for it: PEM in base64, or empty.
    pub ca: String,
    /// How long it may take, in seconds.
    pub seconds: i64,
    /// What is sent.
    pub body: Value,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// At an address.
    Url(String),
    /// Behind a service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The path, with its slash.
        path: String,
        /// The port of the service.
        port: u16,
    },
}

impl Destination {
    /// Behind a service, on the usual port.
    #[must_use]
    pub fn service(namespace: &str, name: &str, path: &str) -> Self {
        Self::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: format!("/{}", path.trim_start_matches('/')),
            port: 443,
        }
    }

    /// Reads a `clientConfig`.
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

    /// Why nobody answers there when nobody answers for the outside.
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

    /// The address that errors show and certificates are for.
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

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookReply {
    /// An answer: its code and its text.
    Response(u16, String),
    /// It could not be asked, and why, as a client would word it.
    Failed(String),
    /// It did not answer in time.
    TimedOut,
}

impl Context {
    /// The context of what the cluster's own controllers do.
    #[must_use]
    pub fn for_controller(name: &str) -> Self {
        Self {
            user: User::system(name),
            internal: true,
            manager: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a warning for the reply's header, once.
    pub fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// The answer to `question`, or `None` after noting that it must be asked.
    pub fn call_webhook(&mut self, call: WebhookCall) -> Option<WebhookReply> {
        if let Some((_, answer)) = self.webhook_replies.iter().find(|(earlier, _)| *earlier == call) {
            return Some(answer.clone());
        }
        self.pending = Some(call);
        None
    }
}
