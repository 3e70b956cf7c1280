//! Webhook calls of controllers. A controller's write that needs a webhook outside this process fails with
//! [`Status::webhook_pending`] without side effects; the controller retries it when the reply has arrived.
//!
//! ```text
//! controller ─▶ write ─▶ PendingCall ─▶ take_webhook_calls ─▶ transport ─▶ accept_webhook_reply ─▶ retry
//! ```
//!
//! A retry uses the random number generator of the first attempt, so that generated names and uids equal
//! those that the webhook reviewed.

use serde_json::Value;

use crate::context::{Context, WebhookCall, WebhookReply};
use crate::random::Random;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

/// Retention of a reply for a write that is not retried, in seconds.
const REPLY_RETENTION_SECONDS: i64 = 60;

/// Webhook calls of controllers and their replies.
#[derive(Debug, Default)]
pub struct PendingWebhookCalls {
    /// Whether a transport is set.
    pub(crate) has_transport: bool,
    /// Number of replies received.
    pub(crate) replies_received: u64,
    /// Number of writes that had to wait for a reply.
    pub(crate) blocked_writes: u64,
    list: Vec<PendingCall>,
}

#[derive(Debug)]
struct PendingCall {
    call: WebhookCall,
    /// Identifies the write.
    write_key: Value,
    /// The random number generator at the start of the write.
    random: Random,
    sent: bool,
    reply: Option<WebhookReply>,
    /// Time of the call, in seconds.
    at: i64,
}

impl PendingWebhookCalls {
    /// Takes the calls that have not been sent yet.
    pub(crate) fn take(&mut self) -> Vec<WebhookCall> {
        let fresh = self.list.iter_mut().filter(|entry| !entry.sent);
        fresh
            .map(|entry| {
                entry.sent = true;
                entry.call.clone()
            })
            .collect()
    }

    /// Stores the reply to a call.
    pub(crate) fn accept(&mut self, call: &WebhookCall, reply: WebhookReply) {
        self.replies_received += 1;
        if let Some(entry) = self.list.iter_mut().find(|entry| entry.call == *call) {
            entry.reply = Some(reply);
        }
    }

    /// Returns the reply to the call with the uid of `body`.
    pub(super) fn reply(&self, body: &Value) -> Option<WebhookReply> {
        let asked = self
            .list
            .iter()
            .find(|entry| uid(&entry.call.body) == uid(body))?;
        asked.reply.clone()
    }

    fn forget_old(&mut self, now: i64) {
        self.list
            .retain(|entry| entry.reply.is_none() || now - entry.at <= REPLY_RETENTION_SECONDS);
    }
}

fn uid(body: &Value) -> &str {
    tree::text(body, &["request", "uid"])
}

/// Runs a controller's write; a retry of a write that waits for a reply uses the random numbers of its first
/// attempt.
pub(crate) fn attempt<T>(
    state: &mut State,
    context: &mut Context,
    act: &mut dyn FnMut(&mut State, &mut Context) -> Result<T>,
) -> Result<T> {
    if !context.internal || !state.webhooks.pending.has_transport {
        return act(state, context);
    }
    let mut line = state.random.clone();
    let mut done = act(state, context);
    let Some(call) = context.pending.take() else {
        return done;
    };
    let now = state.now().as_seconds();
    state.webhooks.pending.forget_old(now);
    let write_key = write_key(&call);
    let known = state
        .webhooks
        .pending
        .list
        .iter()
        .find(|entry| entry.write_key == write_key);
    let mut asks = call;
    if let Some(random) = known.map(|entry| entry.random.clone()) {
        let own = std::mem::replace(&mut state.random, random.clone());
        line = random;
        done = act(state, context);
        state.random = own;
        let Some(call) = context.pending.take() else {
            state.webhooks.pending.list.retain(|entry| entry.random != line);
            return done;
        };
        asks = call;
    } else {
        // The first attempt keeps its random sequence; the state continues with another one.
        state.random = Random::new(line.clone().next_u64());
    }
    drop(done);
    wait(state, asks, line, now);
    Err(Status::webhook_pending())
}

/// Records a call unless an equal one is pending. An earlier call for the same write with another content is
/// replaced.
fn wait(state: &mut State, call: WebhookCall, random: Random, at: i64) {
    let pending = &mut state.webhooks.pending;
    pending.blocked_writes += 1;
    let own = |entry: &PendingCall| uid(&entry.call.body) == uid(&call.body);
    if pending
        .list
        .iter()
        .any(|entry| own(entry) && without_times(&entry.call.body) == without_times(&call.body))
    {
        return;
    }
    pending.list.retain(|entry| !own(entry));
    pending.list.push(PendingCall {
        write_key: write_key(&call),
        call,
        random,
        sent: false,
        reply: None,
        at,
    });
}

/// Identifies a write by its request without random values.
fn write_key(call: &WebhookCall) -> Value {
    let part = |path: &[&str]| {
        let path = [&["request"], path].concat();
        tree::get(&call.body, &path).cloned().unwrap_or_default()
    };
    let drawn = part(&["object", "metadata", "generateName"]);
    serde_json::json!([
        call.to.url(),
        part(&["operation"]),
        part(&["resource"]),
        part(&["subResource"]),
        part(&["namespace"]),
        if drawn.is_string() { drawn } else { part(&["name"]) },
        part(&["object", "metadata", "ownerReferences"]),
        part(&["userInfo"]),
    ])
}

/// Returns the review without timestamps.
fn without_times(body: &Value) -> Value {
    let mut body = body.clone();
    for field in ["creationTimestamp", "managedFields"] {
        tree::remove(&mut body, &["request", "object", "metadata", field]);
    }
    body
}
