//! What controllers want to know from webhooks outside: takes a controller's write, gives it its answers when they are there. Until then the
//! write fails with [`Status::webhook_pending`], nothing of it stays, and the controller tries again when an answer came.
//!
//! ```text
//! controller ─▶ write ─▶ webhook outside? ─▶ Errand ─▶ Cluster::take_questions ─▶ ask ─▶ Cluster::accept ─▶ the write again
//! ```
//!
//! A later try draws names and uids from where the first one drew them, so that what was asked about is what is written.

use serde_json::Value;

use crate::context::{Context, Question, Reply};
use crate::random::Random;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

/// How long an answer is kept for a write that does not come again, in seconds.
const KEPT: i64 = 60;

/// Questions of controllers, and the answers so far.
#[derive(Debug, Default)]
pub struct Errands {
    /// Whether anybody answers for the outside.
    pub(crate) somebody: bool,
    /// How many answers have come.
    pub(crate) answered: u64,
    /// How many writes had to wait.
    pub(crate) waited: u64,
    list: Vec<Errand>,
}

#[derive(Debug)]
struct Errand {
    question: Question,
    /// What tells the write from others.
    stem: Value,
    /// Where the write drew from.
    random: Random,
    sent: bool,
    reply: Option<Reply>,
    /// When the question was asked, in seconds.
    at: i64,
}

impl Errands {
    /// The questions that nobody has been sent with yet.
    pub(crate) fn take(&mut self) -> Vec<Question> {
        let fresh = self.list.iter_mut().filter(|errand| !errand.sent);
        fresh
            .map(|errand| {
                errand.sent = true;
                errand.question.clone()
            })
            .collect()
    }

    /// The answer to a question.
    pub(crate) fn accept(&mut self, question: &Question, reply: Reply) {
        self.answered += 1;
        if let Some(errand) = self.list.iter_mut().find(|errand| errand.question == *question) {
            errand.reply = Some(reply);
        }
    }

    /// What was answered to the very question whose uid `body` has.
    pub(super) fn reply(&self, body: &Value) -> Option<Reply> {
        let asked = self
            .list
            .iter()
            .find(|errand| uid(&errand.question.body) == uid(body))?;
        asked.reply.clone()
    }

    fn forget_old(&mut self, now: i64) {
        self.list
            .retain(|errand| errand.reply.is_none() || now - errand.at <= KEPT);
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
    if !context.inside || !state.hooks.errands.somebody {
        return act(state, context);
    }
    let mut line = state.random.clone();
    let mut done = act(state, context);
    let Some(question) = context.pending.take() else {
        return done;
    };
    let now = state.now().as_seconds();
    state.hooks.errands.forget_old(now);
    let stem = stem(&question);
    let known = state.hooks.errands.list.iter().find(|errand| errand.stem == stem);
    let mut asks = question;
    if let Some(random) = known.map(|errand| errand.random.clone()) {
        let own = std::mem::replace(&mut state.random, random.clone());
        line = random;
        done = act(state, context);
        state.random = own;
        let Some(question) = context.pending.take() else {
            state.hooks.errands.list.retain(|errand| errand.random != line);
            return done;
        };
        asks = question;
    } else {
        // The first try keeps its line to itself.
        state.random = Random::new(line.clone().next_u64());
    }
    drop(done);
    wait(state, asks, line, now);
    Err(Status::webhook_pending())
}

/// Notes a question that is not noted yet. One about the same write as it was then is out of date.
fn wait(state: &mut State, question: Question, random: Random, at: i64) {
    let errands = &mut state.hooks.errands;
    errands.waited += 1;
    let own = |errand: &Errand| uid(&errand.question.body) == uid(&question.body);
    if errands
        .list
        .iter()
        .any(|errand| own(errand) && timeless(&errand.question.body) == timeless(&question.body))
    {
        return;
    }
    errands.list.retain(|errand| !own(errand));
    errands.list.push(Errand {
        stem: stem(&question),
        question,
        random,
        sent: false,
        reply: None,
        at,
    });
}

/// What tells one write from others, without anything drawn: whoever makes an object may draw more than its name.
fn stem(question: &Question) -> Value {
    let part = |path: &[&str]| {
        let path = [&["request"], path].concat();
        tree::get(&question.body, &path).cloned().unwrap_or_default()
    };
    let drawn = part(&["object", "metadata", "generateName"]);
    serde_json::json!([
        question.to.url(),
        part(&["operation"]),
        part(&["resource"]),
        part(&["subResource"]),
        part(&["namespace"]),
        if drawn.is_string() { drawn } else { part(&["name"]) },
        part(&["object", "metadata", "ownerReferences"]),
        part(&["userInfo"]),
    ])
}

/// A question without the times in it.
fn timeless(body: &Value) -> Value {
    let mut body = body.clone();
    for field in ["creationTimestamp", "managedFields"] {
        tree::remove(&mut body, &["request", "object", "metadata", field]);
    }
    body
}
