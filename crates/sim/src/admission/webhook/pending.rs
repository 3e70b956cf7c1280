//! What controllers want to know from webhooks outside: takes a controller's write, gives it its answers when they are there. Until then the
//! write fails with [`Status::webhook_pending`], nothing of it stays, and the controller tries again when an answer came.
//!
//! ```text
//! controller ─▶ write ─▶ webhook outside? ─▶ PendingCall ─▶ Cluster::take_webhook_calls ─▶ ask ─▶ Cluster::accept ─▶ the write again
//! ```
//!
//! A later try draws names and uids from where the first one drew them, so that what was asked about is what is written.

use serde_json::Value;

use crate::context::{Context, WebhookCall, WebhookReply};
use crate::random::Random;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

/// How long an answer is kept for a write that does not come again, in seconds.
const REPLY_RETENTION_SECONDS: i64 = 60;

/// Questions of controllers, and the answers so far.
#[derive(Debug, Default)]
pub struct PendingWebhookCalls {
    /// Whether anybody answers for the outside.
    pub(crate) has_transport: bool,
    /// How many answers have come.
    pub(crate) replies_received: u64,
    /// How many writes had to wait.
    pub(crate) blocked_writes: u64,
    list: Vec<PendingCall>,
}

#[derive(Debug)]
struct PendingCall {
    call: WebhookCall,
    /// What tells the write from others.
    write_key: Value,
    /// Where the write drew from.
    random: Random,
    sent: bool,
    reply: Option<WebhookReply>,
    /// When the call was asked, in seconds.
    at: i64,
}

impl PendingWebhookCalls {
    /// The questions that nobody has been sent with yet.
    pub(crate) fn take(&mut self) -> Vec<WebhookCall> {
        let fresh = self.list.iter_mut().filter(|entry| !entry.sent);
        fresh
            .map(|entry| {
                entry.sent = true;
                entry.call.clone()
            })
            .collect()
    }

    /// The answer to a call.
    pub(crate) fn accept(&mut self, call: &WebhookCall, reply: WebhookReply) {
        self.replies_received += 1;
        if let Some(entry) = self.list.iter_mut().find(|entry| entry.call == *call) {
            entry.reply = Some(reply);
        }
    }

    /// What was answered to the very call whose uid `body` has.
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

/// A controller's write: `act` is tried, and tried again with the chance of an earlier try that asked the same.
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
        // The first try keeps its line to itself.
        state.random = Random::new(line.clone().next_u64());
    }
    drop(done);
    wait(state, asks, line, now);
    Err(Status::webhook_pending())
}

/// Notes a call that is not noted yet. One about the same write as it was then is out of date.
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

/// What tells one write from others, without anything drawn: whoever makes an object may draw more than its name.
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

/// A call without the times in it.
fn without_times(body: &Value) -> Value {
    let mut body = body.clone();
    for field in ["creationTimestamp", "managedFields"] {
        tree::remove(&mut body, &["request", "object", "metadata", field]);
    }
    body
}
