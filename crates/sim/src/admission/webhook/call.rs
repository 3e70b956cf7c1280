//! How a webhook is reached: takes a question, gives the text of the reply or why there is none. First who answers in this process, then
//! whoever answers for the outside.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::configuration::Hook;
use crate::context::{Context, Destination, WebhookCall, WebhookReply};
use crate::state::State;
use crate::status::{Result, Status};

/// Answers reviews in this process. It sees the review alone: it runs under the cluster's lock.
pub type Handler = dyn FnMut(&Value) -> WebhookReply + Send;

/// Webhooks in this process by where configurations say they are.
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<String, Arc<Mutex<Handler>>>);

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Handlers {
    /// `handler` answers for `to` from now on.
    pub fn set(&mut self, to: &Destination, handler: Arc<Mutex<Handler>>) {
        self.0.insert(to.url(), handler);
    }

    /// Nobody answers for `to` in this process any more.
    pub fn remove(&mut self, to: &Destination) {
        self.0.remove(&to.url());
    }
}

/// The text of a webhook's reply. The outer error says that somebody outside must be asked first.
pub(super) fn send(
    state: &mut State,
    hook: &Hook,
    body: Value,
    context: &mut Context,
) -> Result<std::result::Result<String, String>> {
    let url = hook.to.url();
    let handler = state.webhooks.handlers.0.get(&url).cloned();
    let reply = match handler {
        Some(handler) => {
            let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
            (*handler)(&body)
        }
        None => match missing(state, &hook.to) {
            Some(why) => WebhookReply::Failed(why),
            None if context.internal && !state.webhooks.pending.has_transport => {
                WebhookReply::Failed(hook.to.unreachable_reason())
            }
            None if let Some(reply) = state.webhooks.pending.reply(&body).filter(|_| context.internal) => {
                reply
            }
            None => {
                let question = WebhookCall {
                    to: hook.to.clone(),
                    ca: hook.ca.clone(),
                    seconds: hook.timeout,
                    body,
                };
                context
                    .call_webhook(question)
                    .ok_or_else(Status::webhook_pending)?
            }
        },
    };
    Ok(read(hook, &url, reply))
}

/// Why a service cannot answer, as far as the cluster knows.
fn missing(state: &State, to: &Destination) -> Option<String> {
    let Destination::Service { namespace, name, .. } = to else {
        return None;
    };
    let found = state.store.get("services", &crate::object::key(namespace, name));
    found.is_none().then(|| format!("service {name:?} not found"))
}

fn read(hook: &Hook, url: &str, reply: WebhookReply) -> std::result::Result<String, String> {
    let failed = |why: String| Err(format!("failed to call webhook: {why}"));
    let post = |why: &str| format!("Post \"{url}?timeout={}s\": {why}", hook.timeout);
    match reply {
        WebhookReply::Response(200..=299, text) => Ok(text),
        WebhookReply::Response(code, text) => failed(refused(code, &text)),
        WebhookReply::Failed(why) => failed(post(&why)),
        WebhookReply::TimedOut => failed(post("context deadline exceeded")),
    }
}

/// How a client words an answer that is an error.
fn refused(code: u16, text: &str) -> String {
    match code {
        404 => "the server could not find the requested resource".into(),
        400 => format!(
            "the server rejected our request for an unknown reason{}",
            detail(text)
        ),
        401 => "the server has asked for the client to provide credentials".into(),
        403 => format!("forbidden: {text}"),
        // The text is not shown: it says it is JSON, and is no Status.
        500..=599 => "an error on the server (\"unknown\") has prevented the request from succeeding".into(),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

fn detail(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
