//! A running cluster: the lock around [`State`] and the controllers that act on it.

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

/// A simulated cluster. Clones share the same state.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    state: State,
    controllers: Vec<Box<dyn Controller>>,
    transport: Option<Arc<dyn WebhookTransport>>,
    /// Maximum number of writes per [`Inner::settle`].
    max_writes: u64,
    /// Whether controllers have more work to do now.
    unsettled: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

/// The pending reply of a webhook.
pub type ReplyFuture = Pin<Box<dyn Future<Output = WebhookReply> + Send>>;

/// Sends webhook calls that have no registered handler in this process.
pub trait WebhookTransport: Send + Sync {
    /// Sends one call to its webhook.
    fn call(&self, call: WebhookCall) -> ReplyFuture;
}

/// Maximum number of controller rounds per [`Cluster::settle`]; guards against controllers that never
/// converge.
const MAX_ROUNDS: usize = 10_000;

impl Default for Cluster {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Cluster {
    /// Creates a cluster with the standard namespaces, objects and controllers.
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

    /// Creates a cluster without objects and controllers.
    #[must_use]
    pub fn empty(options: Options) -> Self {
        let inner = Inner {
            state: State::new(options),
            controllers: Vec::new(),
            transport: None,
            max_writes: u64::MAX,
            unsettled: false,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Connects as an administrator. Fault rules and traces identify the connection by `client`.
    #[must_use]
    pub fn connect(&self, client: &str) -> Connection {
        self.connect_as(client, User::admin())
    }

    /// Connects as `user`.
    #[must_use]
    pub fn connect_as(&self, client: &str, user: User) -> Connection {
        Connection::new(self.clone(), client, user)
    }

    /// Adds a controller that runs after the existing ones.
    pub fn add_controller(&self, controller: Box<dyn Controller>) {
        self.lock(|inner| inner.controllers.push(controller));
    }

    /// Creates `nodes` nodes and starts the workload controllers and a kubelet that follows
    /// [`State::scripts`].
    pub fn run_workloads(&self, nodes: usize) {
        self.with(|state| controllers::create_nodes(state, nodes));
        self.add_controller(Box::new(controllers::Workloads::default()));
        self.add_controller(Box::new(controllers::Kubelet::default()));
        self.add_controller(Box::new(controllers::Quotas::default()));
        self.add_controller(Box::new(controllers::Taints::default()));
        self.settle();
    }

    /// Registers `handler` for the webhook at `to`: it maps an `AdmissionReview` request to a response. The
    /// handler runs under the cluster's lock and must not call the cluster.
    pub fn handle_webhook(&self, to: &Destination, mut handler: impl FnMut(Value) -> Value + Send + 'static) {
        self.handle_webhook_with(to, move |review| {
            WebhookReply::Response(200, handler(review.clone()).to_string())
        });
    }

    /// Registers a handler that may also fail or time out.
    pub fn handle_webhook_with(
        &self,
        to: &Destination,
        handler: impl FnMut(&Value) -> WebhookReply + Send + 'static,
    ) {
        let handler = Arc::new(Mutex::new(handler));
        self.with(|state| state.webhooks.handlers.set(to, handler));
    }

    /// Sets the transport for webhooks without a registered handler.
    pub fn set_webhook_transport(&self, transport: Arc<dyn WebhookTransport>) {
        self.lock(|inner| {
            inner.transport = Some(transport);
            inner.state.webhooks.pending.has_transport = true;
        });
    }

    /// Sends the webhook calls that controllers wait for until none is pending. A [`Server`] does this in the
    /// background.
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

    /// Takes the webhook calls of controllers that have not been sent yet.
    pub(crate) fn take_webhook_calls(&self) -> Vec<WebhookCall> {
        self.with(|state| state.webhooks.pending.take())
    }

    pub(crate) async fn call_webhook(&self, call: &WebhookCall) -> WebhookReply {
        match self.webhook_transport() {
            Some(transport) => transport.call(call.clone()).await,
            None => WebhookReply::Failed(call.to.unreachable_reason()),
        }
    }

    /// Passes a webhook's reply to the controller that waits for it.
    pub(crate) fn accept_webhook_reply(&self, call: &WebhookCall, reply: WebhookReply) {
        self.lock(|inner| {
            inner.state.webhooks.pending.accept(call, reply);
            inner.settle();
        });
    }

    pub(crate) fn webhook_transport(&self) -> Option<Arc<dyn WebhookTransport>> {
        self.lock(|inner| inner.transport.clone())
    }

    /// Adds a fault rule.
    pub fn add_fault(&self, rule: Rule) {
        self.with(|state| state.faults.add(rule));
    }

    /// Reads or changes the state directly, without admission or validation. Watches receive the changes.
    pub fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.lock(|inner| act(&mut inner.state))
    }

    /// Returns the cluster's current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.with(|state| state.now())
    }

    /// Returns the trace so far.
    #[must_use]
    pub fn trace(&self) -> String {
        self.with(|state| state.trace.text().to_owned())
    }

    /// Runs the controllers until none of them has work that is due now.
    pub fn settle(&self) {
        self.lock(Inner::settle);
    }

    /// Limits the writes of controllers per call. The rest is done by the next calls: [`Cluster::due`]
    /// returns the current time until then.
    #[cfg(feature = "serve")]
    pub(crate) fn limit_writes_per_settle(&self, max: u64) {
        self.lock(|inner| inner.max_writes = max);
    }

    /// Runs the controllers if [`Options::automatic`] is set.
    pub(crate) fn settle_if_automatic(&self) {
        self.lock(|inner| {
            if inner.state.options.automatic {
                inner.settle();
            }
        });
    }

    /// Advances the clock, stopping at each time at which a controller has work to do.
    pub fn advance(&self, by: Duration) {
        self.lock(|inner| inner.advance(by));
    }

    /// Advances the clock to the next time at which a controller has work to do, but not beyond `target`.
    /// Returns whether `target` is reached and no work is left.
    #[cfg(feature = "serve")]
    pub(crate) fn advance_once(&self, target: Instant) -> bool {
        self.lock(|inner| {
            let now = inner.state.now();
            let stop = inner.due().map_or(target, |due| due.min(target));
            inner.state.advance(stop.since(now));
            inner.settle();
            stop >= target && !inner.unsettled
        })
    }

    /// Skips time without running controllers.
    #[cfg(feature = "serve")]
    pub(crate) fn skip(&self, by: Duration) {
        self.with(|state| state.advance(by));
    }

    /// Returns the earliest time at which a controller has work to do: after now, or now if work is left.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.lock(|inner| inner.due())
    }

    /// Returns a future that completes when the cluster's clock has advanced by `by`. Another task must
    /// advance the clock.
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
        self.state.pause_at = self.state.store.version().saturating_add(self.max_writes);
        self.unsettled = false;
        for _ in 0..MAX_ROUNDS {
            let mut busy = false;
            for controller in &mut self.controllers {
                busy |= controller.step(&mut self.state);
            }
            if !busy {
                return;
            }
            if self.state.is_paused() {
                self.unsettled = true;
                return;
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let now = self.state.now();
        if self.unsettled {
            return Some(now);
        }
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

/// Future of [`Cluster::sleep`].
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
