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
    calls: Vec<PendingCall>,
}

#[derive(Debug)]
struct PendingCall {
    call: WebhookCall,
    /// Key of the write, see [`write_key`].
    write_key: Value,
    /// Random number generator at the start of the write.
    random: Random,
    sent: bool,
    reply: Option<WebhookReply>,
    /// Time of the call, in seconds.
    called_at: i64,
}

impl PendingWebhookCalls {
    /// Takes the calls that have not been sent yet.
    pub(crate) fn take(&mut self) -> Vec<WebhookCall> {
        let unsent = self.calls.iter_mut().filter(|entry| !entry.sent);
        unsent
            .map(|entry| {
                entry.sent = true;
                entry.call.clone()
            })
            .collect()
    }

    /// Stores the reply to a call.
    pub(crate) fn accept(&mut self, call: &WebhookCall, reply: WebhookReply) {
        self.replies_received += 1;
        if let Some(entry) = self.calls.iter_mut().find(|entry| entry.call == *call) {
            entry.reply = Some(reply);
        }
    }

    /// Returns the reply to the call with the uid of `body`.
    pub(super) fn reply(&self, body: &Value) -> Option<WebhookReply> {
        let entry = self
            .calls
            .iter()
            .find(|entry| uid(&entry.call.body) == uid(body))?;
        entry.reply.clone()
    }

    fn remove_expired(&mut self, now: i64) {
        self.calls
            .retain(|entry| entry.reply.is_none() || now - entry.called_at <= REPLY_RETENTION_SECONDS);
    }
}

fn uid(body: &Value) -> &str {
    tree::text(body, &["request", "uid"])
}

/// Runs a write and records the webhook call that it is waiting for. A retry of a controller's write uses the
/// random numbers of its first attempt.
pub(crate) fn attempt<T>(
    state: &mut State,
    context: &mut Context,
    write: &mut dyn FnMut(&mut State, &mut Context) -> Result<T>,
) -> Result<T> {
    if !context.internal || !state.webhooks.pending.has_transport {
        return write(state, context);
    }
    let mut random = state.random.clone();
    let mut result = write(state, context);
    let Some(call) = context.pending.take() else {
        return result;
    };
    let now = state.now().as_seconds();
    state.webhooks.pending.remove_expired(now);
    let write_key = write_key(&call);
    let earlier = state
        .webhooks
        .pending
        .calls
        .iter()
        .find(|entry| entry.write_key == write_key);
    let mut pending_call = call;
    if let Some(first) = earlier.map(|entry| entry.random.clone()) {
        let current = std::mem::replace(&mut state.random, first.clone());
        random = first;
        result = write(state, context);
        state.random = current;
        let Some(call) = context.pending.take() else {
            state
                .webhooks
                .pending
                .calls
                .retain(|entry| entry.random != random);
            return result;
        };
        pending_call = call;
    } else {
        // The call keeps the random sequence of this attempt; the state continues with a different one.
        state.random = Random::new(random.clone().next_u64());
    }
    drop(result);
    add_pending_call(state, pending_call, random, now);
    Err(Status::webhook_pending())
}

/// Records a call unless an equal one is pending. An earlier call for the same write with different
/// content is replaced.
fn add_pending_call(state: &mut State, call: WebhookCall, random: Random, called_at: i64) {
    let pending = &mut state.webhooks.pending;
    pending.blocked_writes += 1;
    let is_same = |entry: &PendingCall| uid(&entry.call.body) == uid(&call.body);
    if pending
        .calls
        .iter()
        .any(|entry| is_same(entry) && without_timestamps(&entry.call.body) == without_timestamps(&call.body))
    {
        return;
    }
    pending.calls.retain(|entry| !is_same(entry));
    pending.calls.push(PendingCall {
        write_key: write_key(&call),
        call,
        random,
        sent: false,
        reply: None,
        called_at,
    });
}

/// Returns a key that identifies the write: the request without random values.
fn write_key(call: &WebhookCall) -> Value {
    let field = |path: &[&str]| {
        let path = [&["request"], path].concat();
        tree::get(&call.body, &path).cloned().unwrap_or_default()
    };
    let generate_name = field(&["object", "metadata", "generateName"]);
    serde_json::json!([
        call.to.url(),
        field(&["operation"]),
        field(&["resource"]),
        field(&["subResource"]),
        field(&["namespace"]),
        if generate_name.is_string() {
            generate_name
        } else {
            field(&["name"])
        },
        field(&["object", "metadata", "ownerReferences"]),
        field(&["userInfo"]),
    ])
}

/// Returns the review without timestamps.
fn without_timestamps(body: &Value) -> Value {
    let mut body = body.clone();
    for field in ["creationTimestamp", "managedFields"] {
        tree::remove(&mut body, &["request", "object", "metadata", field]);
    }
    body
}
