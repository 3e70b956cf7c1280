//! A running cluster: takes connections and the passing of time, gives replies and a trace. This is the lock around [`State`], the
//! controllers beside it, and nothing else.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use crate::auth::User;
use crate::clock::Instant;
use crate::connection::Connection;
use crate::context::{Destination, WebhookCall, WebhookReply};
use crate::controllers::{self, Controller};
use crate::fault::Rule;
use crate::state::{Options, State};

/// A cluster; clones are the same one.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    state: State,
    controllers: Vec<Box<dyn Controller>>,
    transport: Option<Arc<dyn WebhookTransport>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

/// A promise to answer.
pub type ReplyFuture = Pin<Box<dyn Future<Output = WebhookReply> + Send>>;

/// Whoever answers calls that the cluster cannot: webhooks, in this process or beyond.
pub trait WebhookTransport: Send + Sync {
    /// Answers one call.
    fn call(&self, call: WebhookCall) -> ReplyFuture;
}

/// Controllers that keep each other busy longer than this many rounds are at odds.
const MAX_ROUNDS: usize = 10_000;

impl Default for Cluster {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Cluster {
    /// A cluster with the namespaces and objects every cluster has, and the controllers every cluster runs.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let cluster = Self::empty(options);
        cluster.with(controllers::bootstrap);
        for controller in controllers::standard() {
            cluster.add_controller(controller);
        }
        cluster.settle();
        cluster
    }

    /// A cluster with nothing in it and nobody at work.
    #[must_use]
    pub fn empty(options: Options) -> Self {
        let inner = Inner {
            state: State::new(options),
            controllers: Vec::new(),
            transport: None,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// A connection of an administrator; faults and traces know it as `client`.
    #[must_use]
    pub fn connect(&self, client: &str) -> Connection {
        self.connect_as(client, User::admin())
    }

    /// A connection of `user`.
    #[must_use]
    pub fn connect_as(&self, client: &str, user: User) -> Connection {
        Connection::new(self.clone(), client, user)
    }

    /// One more controller; it runs after those that are there.
    pub fn add_controller(&self, controller: Box<dyn Controller>) {
        self.lock(|inner| inner.controllers.push(controller));
    }

    /// Brings the cluster to life: `nodes` nodes, the workload controllers, and a kubelet that follows [`State::scripts`].
    pub fn run_workloads(&self, nodes: usize) {
        self.with(|state| controllers::create_nodes(state, nodes));
        self.add_controller(Box::new(controllers::Workloads::default()));
        self.add_controller(Box::new(controllers::Kubelet::default()));
        self.settle();
    }

    /// Lets `handler` answer for the webhook at `to`: a review comes in, a review goes out. It runs under the cluster's lock and must not
    /// call the cluster.
    pub fn handle_webhook(&self, to: &Destination, mut handler: impl FnMut(Value) -> Value + Send + 'static) {
        self.handle_webhook_with(to, move |review| {
            WebhookReply::Response(200, handler(review.clone()).to_string())
        });
    }

    /// The same for a handler that may also fail or keep silent.
    pub fn handle_webhook_with(
        &self,
        to: &Destination,
        handler: impl FnMut(&Value) -> WebhookReply + Send + 'static,
    ) {
        let handler = Arc::new(Mutex::new(handler));
        self.with(|state| state.webhooks.handlers.set(to, handler));
    }

    /// Who answers what the cluster cannot answer itself.
    pub fn set_webhook_transport(&self, transport: Arc<dyn WebhookTransport>) {
        self.lock(|inner| {
            inner.transport = Some(transport);
            inner.state.webhooks.pending.has_transport = true;
        });
    }

    /// Asks outside what the controllers wait for, until they wait for nothing; for clusters in this process. A [`Server`] does it by itself.
    ///
    /// [`Server`]: crate::serve::Server
    pub async fn send_pending_webhook_calls(&self) {
        for _ in 0..MAX_ROUNDS {
            let calls = self.take_webhook_calls();
            if calls.is_empty() {
                return;
            }
            for call in calls {
                let reply = self.call_webhook(&call).await;
                self.accept_webhook_reply(&call, reply);
            }
        }
    }

    /// What controllers want to know from outside and nobody was sent for yet.
    pub(crate) fn take_webhook_calls(&self) -> Vec<WebhookCall> {
        self.with(|state| state.webhooks.pending.take())
    }

    pub(crate) async fn call_webhook(&self, call: &WebhookCall) -> WebhookReply {
        match self.webhook_transport() {
            Some(transport) => transport.call(call.clone()).await,
            None => WebhookReply::Failed(call.to.unreachable_reason()),
        }
    }

    /// Hands an answer to the controller that waits for it.
    pub(crate) fn accept_webhook_reply(&self, call: &WebhookCall, reply: WebhookReply) {
        self.lock(|inner| {
            inner.state.webhooks.pending.accept(call, reply);
            inner.settle();
        });
    }

    pub(crate) fn webhook_transport(&self) -> Option<Arc<dyn WebhookTransport>> {
        self.lock(|inner| inner.transport.clone())
    }

    /// One more thing that goes wrong.
    pub fn add_fault(&self, rule: Rule) {
        self.with(|state| state.faults.add(rule));
    }

    /// Reads or changes the state directly, past all rules; watchers learn of it.
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.lock(|inner| act(&mut inner.state))
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.with(|state| state.now())
    }

    /// The trace so far.
    #[must_use]
    pub fn trace(&self) -> String {
        self.with(|state| state.trace.text().to_owned())
    }

    /// Lets the controllers work until none of them has anything to do now.
    pub fn settle(&self) {
        self.lock(Inner::settle);
    }

    /// Lets the controllers work if the cluster does so by itself.
    pub(crate) fn settle_if_automatic(&self) {
        self.lock(|inner| {
            if inner.state.options.automatic {
                inner.settle();
            }
        });
    }

    /// Lets time pass: each moment at which a controller has something to do is visited.
    pub fn advance(&self, by: Duration) {
        self.lock(|inner| inner.advance(by));
    }

    /// The first moment after now at which a controller has something to do.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.lock(|inner| inner.due())
    }

    /// Lets time pass until the clock shows `target`, but not more than `most` at once; the rest of a longer wait passes in one leap.
    pub fn advance_to(&self, target: Instant, most: Duration) {
        self.lock(|inner| {
            let now = inner.state.now();
            let wait = target.since(now);
            if wait > most {
                inner.state.advance(wait.saturating_sub(most));
            }
            if !wait.is_zero() {
                inner.advance(wait.min(most));
            }
        });
    }

    /// Waits until the cluster's clock has moved on by so much; somebody else must move it.
    #[must_use]
    pub fn sleep(&self, by: Duration) -> Sleep {
        Sleep {
            until: self.now().plus(by),
            cluster: self.clone(),
        }
    }

    fn lock<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = inner.state.store.version();
        let result = act(&mut inner);
        let wakers = inner.state.store.take_wakers(before);
        drop(inner);
        for waker in wakers {
            waker.wake();
        }
        result
    }
}

impl Inner {
    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let mut busy = false;
            for controller in &mut self.controllers {
                busy |= controller.step(&mut self.state);
            }
            if !busy {
                return;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let now = self.state.now();
        let due = self
            .controllers
            .iter()
            .filter_map(|controller| controller.next(&self.state));
        due.filter(|at| *at > now).min()
    }

    fn advance(&mut self, by: Duration) {
        let end = self.state.now().plus(by);
        loop {
            let now = self.state.now();
            let stop = self.due().map_or(end, |due| due.min(end));
            self.state.advance(stop.since(now));
            self.settle();
            if stop >= end {
                return;
            }
        }
    }
}

/// Waits for the cluster's clock.
#[derive(Debug)]
pub struct Sleep {
    cluster: Cluster,
    until: Instant,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.cluster.with(|state| {
            if state.now() >= self.until {
                return Poll::Ready(());
            }
            state.store.on_change(&Arc::from(""), "", context.waker());
            Poll::Pending
        })
    }
}
