//! A running cluster: the lock that protects [`State`], and the controllers that change it.

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
    /// Maximum number of writes of controllers per [`Inner::settle`].
    max_writes: u64,
    /// Whether the last [`Inner::settle`] stopped before all work was done.
    unsettled: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cluster")
    }
}

/// Future of the reply of a webhook.
pub type ReplyFuture = Pin<Box<dyn Future<Output = WebhookReply> + Send>>;

/// Transport for calls of webhooks that have no handler in this process.
pub trait WebhookTransport: Send + Sync {
    /// Sends one call to its webhook.
    fn call(&self, call: WebhookCall) -> ReplyFuture;
}

/// Maximum number of controller rounds per [`Cluster::settle`], in case controllers do not converge.
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

    /// Connects as an administrator. `client` identifies the connection in fault rules and traces.
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

    /// Creates `nodes` nodes, and starts the workload controllers and a kubelet that runs pods according to
    /// [`State::scripts`].
    pub fn run_workloads(&self, nodes: usize) {
        self.with(|state| controllers::create_nodes(state, nodes));
        self.add_controller(Box::new(controllers::Workloads::default()));
        self.add_controller(Box::new(controllers::Kubelet::default()));
        self.add_controller(Box::new(controllers::Quotas::default()));
        self.add_controller(Box::new(controllers::Taints::default()));
        self.settle();
    }

    /// Registers `handler` for the webhook at `to`. It receives an `AdmissionReview` request and returns the
    /// response. It runs while the lock of the cluster is held and must not call the cluster.
    pub fn handle_webhook(&self, to: &Destination, mut handler: impl FnMut(Value) -> Value + Send + 'static) {
        self.handle_webhook_with(to, move |review| {
            WebhookReply::Response(200, handler(review.clone()).to_string())
        });
    }

    /// Registers a handler like [`Cluster::handle_webhook`]. The handler may also fail or time out.
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

    /// Sends the pending webhook calls of controllers until there are none. A [`Server`] does this in the
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

    /// Returns the webhook calls of controllers that have not been sent yet, and marks them as sent.
    pub(crate) fn take_webhook_calls(&self) -> Vec<WebhookCall> {
        self.with(|state| state.webhooks.pending.take())
    }

    pub(crate) async fn call_webhook(&self, call: &WebhookCall) -> WebhookReply {
        match self.webhook_transport() {
            Some(transport) => transport.call(call.clone()).await,
            None => WebhookReply::Failed(call.to.unreachable_reason()),
        }
    }

    /// Stores the reply of a webhook for the controller that is waiting for it, and runs the controllers.
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
    pub fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        self.lock(|inner| f(&mut inner.state))
    }

    /// Returns the current time of the cluster.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.with(|state| state.now())
    }

    /// Returns the trace so far.
    #[must_use]
    pub fn trace(&self) -> String {
        self.with(|state| state.trace.text().to_owned())
    }

    /// Runs the controllers until none of them has work to do at the current time.
    pub fn settle(&self) {
        self.lock(Inner::settle);
    }

    /// Limits the writes of controllers per [`Cluster::settle`]. The next calls do the remaining work;
    /// until then, [`Cluster::due`] returns the current time.
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

    /// Advances the clock by `by`. Stops at each time at which a controller has work to do and runs the
    /// controllers.
    pub fn advance(&self, by: Duration) {
        self.lock(|inner| inner.advance(by));
    }

    /// Advances the clock to the next time at which a controller has work to do, at most to `target`, and
    /// runs the controllers. Returns whether `target` is reached and no work is left.
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

    /// Advances the clock without running controllers.
    #[cfg(feature = "serve")]
    pub(crate) fn skip(&self, by: Duration) {
        self.with(|state| state.advance(by));
    }

    /// Returns the next time at which a controller has work to do, or the current time if the last
    /// [`Cluster::settle`] left work to do.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.lock(|inner| inner.due())
    }

    /// Returns a future that completes when the clock of the cluster has advanced by `by`. Another task must
    /// advance the clock.
    #[must_use]
    pub fn sleep(&self, by: Duration) -> Sleep {
        Sleep {
            until: self.now().plus(by),
            cluster: self.clone(),
        }
    }

    fn lock<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = inner.state.store.version();
        let result = f(&mut inner);
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
            let mut changed = false;
            for controller in &mut self.controllers {
                changed |= controller.step(&mut self.state);
            }
            if !changed {
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
            state.store.register_waker(&Arc::from(""), "", context.waker());
            Poll::Pending
        })
    }
}
