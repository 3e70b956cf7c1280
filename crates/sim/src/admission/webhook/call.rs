//! Sends a review to a webhook: to a handler in this process if one is registered, otherwise through the
//! transport.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::configuration::Hook;
use super::error::WebhookError;
use crate::context::{Context, Destination, WebhookCall, WebhookReply};
use crate::state::State;
use crate::status::{Result, Status};

/// A webhook handler in this process. It runs under the cluster's lock and receives the review only.
pub type Handler = dyn FnMut(&Value) -> WebhookReply + Send;

/// Webhook handlers in this process, by URL.
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<String, Arc<Mutex<Handler>>>);

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Handlers {
    /// Registers `handler` for `to`.
    pub fn set(&mut self, to: &Destination, handler: Arc<Mutex<Handler>>) {
        self.0.insert(to.url(), handler);
    }

    /// Removes the handler for `to`.
    pub fn remove(&mut self, to: &Destination) {
        self.0.remove(&to.url());
    }
}

/// Calls a webhook and returns the body of its response. The outer error means that the call is pending.
pub(super) fn send(
    state: &mut State,
    hook: &Hook,
    body: Value,
    context: &mut Context,
) -> Result<std::result::Result<String, WebhookError>> {
    let url = hook.to.url();
    let handler = state.webhooks.handlers.0.get(&url).cloned();
    let reply = match handler {
        Some(handler) => {
            let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
            (*handler)(&body)
        }
        None => match missing_service_error(state, &hook.to) {
            Some(cause) => WebhookReply::Failed(cause),
            None if context.internal && !state.webhooks.pending.has_transport => {
                WebhookReply::Failed(hook.to.unreachable_reason())
            }
            None if let Some(reply) = state.webhooks.pending.reply(&body).filter(|_| context.internal) => {
                reply
            }
            None => {
                let call = WebhookCall {
                    to: hook.to.clone(),
                    ca_bundle: hook.ca_bundle.clone(),
                    timeout_seconds: hook.timeout_seconds,
                    body,
                };
                context.call_webhook(call).ok_or_else(Status::webhook_pending)?
            }
        },
    };
    Ok(read_reply(hook, &url, reply))
}

/// Returns the error text if the webhook's Service does not exist.
fn missing_service_error(state: &State, to: &Destination) -> Option<String> {
    let Destination::Service { namespace, name, .. } = to else {
        return None;
    };
    let found = state.store.get("services", &crate::object::key(namespace, name));
    found.is_none().then(|| format!("service {name:?} not found"))
}

/// Returns the body of a successful response, or the error with the text of the real API server.
fn read_reply(hook: &Hook, url: &str, reply: WebhookReply) -> std::result::Result<String, WebhookError> {
    let failed = |cause: String| Err(WebhookError::Call(cause));
    let post = |cause: &str| format!("Post \"{url}?timeout={}s\": {cause}", hook.timeout_seconds);
    match reply {
        WebhookReply::Response(200..=299, text) => Ok(text),
        WebhookReply::Response(code, text) => failed(response_error(code, &text)),
        WebhookReply::Failed(cause) => failed(post(&cause)),
        WebhookReply::TimedOut => failed(post("context deadline exceeded")),
    }
}

/// Returns client-go's error text for a response with an error code.
fn response_error(code: u16, text: &str) -> String {
    match code {
        404 => "the server could not find the requested resource".into(),
        400 => format!(
            "the server rejected our request for an unknown reason{}",
            detail_suffix(text)
        ),
        401 => "the server has asked for the client to provide credentials".into(),
        403 => format!("forbidden: {text}"),
        // client-go omits the text: its content type is JSON, but it is not a Status.
        500..=599 => "an error on the server (\"unknown\") has prevented the request from succeeding".into(),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

fn detail_suffix(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
