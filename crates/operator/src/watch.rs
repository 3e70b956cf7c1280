//! One kind of object, followed: takes a path, gives every object there and every change to a [`Sink`], for ever. Knows nothing of
//! what the objects are.
//!
//! ```text
//! Unlisted ──list or streaming list──▶ listed ──watch──▶ From(version) ──end──▶ From, or Unlisted again
//!     ▲                                                        │
//!     └────────── 410, or the last list is too old ◀───────────┘
//! ```
//!
//! A list is a set that replaces what was known: what it lacks is gone. Lists are repeated now and then although nothing
//! is known to be missing: as the first events of a watch that begins anyway, they cost no call.

pub(crate) mod all;
pub(crate) mod light;
mod relist;
mod request;
mod sinks;
mod workloads;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt, pin_mut};
use kube::Client;
use kube::core::WatchEvent;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::ErrorClass;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use relist::Orders;
pub(crate) use request::Target;

/// A watch that is silent for so much longer than the server lets it live is dead.
const MARGIN: Duration = Duration::from_secs(5);

/// Where a list is a call of its own, it is repeated this seldom.
const LIST_AGAIN: Duration = Duration::from_hours(1);

/// How long a source may fail before it counts as failing.
const PATIENCE: Duration = Duration::from_secs(15);
/// The same once it was listed, as long as nobody says that we may not read it: a server that restarts is no news.
const LONG_PATIENCE: Duration = Duration::from_mins(1);

/// Pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// A kind that the server does not serve may come with a definition later.
const ABSENT_PAUSE: Duration = Duration::from_mins(5);

/// Whoever wants to know.
pub(crate) trait Sink: Send + 'static {
    /// An object as it is read.
    type Item: Item;
    /// A list begins.
    fn begin(&mut self);
    /// An object is there.
    fn seen(&mut self, item: Self::Item);
    /// An object is gone.
    fn gone(&mut self, item: Self::Item);
    /// The list that began is complete, and true at this version.
    fn listed(&mut self, version: &str);
    /// It cannot be read, and has not been for a while.
    fn failing(&mut self, message: &str);
    /// It can be read again.
    fn recovered(&mut self);
}

/// What is read of an object.
pub(crate) trait Item: DeserializeOwned + Clone + Send + 'static {
    /// Its version.
    fn version(&self) -> &str;
}

impl Item for serde_json::Value {
    fn version(&self) -> &str {
        let version = self.pointer("/metadata/resourceVersion");
        version.and_then(Self::as_str).unwrap_or_default()
    }
}

/// Where a watch is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Unlisted,
    From(String),
}

/// Follows `target` for ever; lists it anew whenever that is ordered.
pub(crate) async fn follow<S: Sink>(client: Client, target: Target, sink: S, orders: Orders) {
    let mut watch = Watch {
        client,
        target,
        sink,
        orders,
        at: Position::Unlisted,
        can_stream: true,
        listed: Instant::now(),
        was_listed: false,
        pause: FIRST_PAUSE,
        failing: None,
    };
    loop {
        let begun = Instant::now();
        let ended = AssertUnwindSafe(watch.session()).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| {
            // Whatever was half done, a list sets right.
            watch.at = Position::Unlisted;
            Err(WriteError::local(
                ErrorClass::Other,
                "internal error: a watch panicked".into(),
            ))
        });
        watch.after(ended, begun.elapsed()).await;
    }
}

struct Watch<S: Sink> {
    client: Client,
    target: Target,
    sink: S,
    orders: Orders,
    at: Position,
    can_stream: bool,
    listed: Instant,
    was_listed: bool,
    pause: Duration,
    failing: Option<Instant>,
}

impl<S: Sink> Watch<S> {
    /// One call or a few, up to the end of a watch.
    async fn session(&mut self) -> Result<(), WriteError> {
        if self.at == Position::Unlisted {
            self.orders.begin();
        }
        match &self.at {
            Position::Unlisted if self.can_stream => self.watch(self.target.stream()).await,
            Position::Unlisted => {
                self.list().await?;
                Ok(())
            }
            Position::From(version) => self.watch(self.target.watch(version)).await,
        }
    }

    async fn list(&mut self) -> Result<(), WriteError> {
        self.sink.begin();
        let mut token = String::new();
        loop {
            let request = self.target.list(&token)?;
            let page: request::Page<S::Item> = self.client.request(request).await?;
            for item in page.items {
                self.sink.seen(item);
            }
            token = page.metadata.continue_token;
            if token.is_empty() {
                self.done(page.metadata.resource_version);
                return Ok(());
            }
        }
    }

    async fn watch(&mut self, request: Result<http::Request<Vec<u8>>, WriteError>) -> Result<(), WriteError> {
        let events = self.client.request_events::<S::Item>(request?).await?;
        pin_mut!(events);
        if self.at == Position::Unlisted {
            self.sink.begin();
        } else {
            self.healthy();
        }
        // Silence longer than the server allows itself is the end.
        let silence = self.target.life() + MARGIN;
        loop {
            let is_listed = self.at != Position::Unlisted;
            tokio::select! {
                event = timeout(silence, events.next()) => match event {
                    Ok(Some(event)) => self.event(event?)?,
                    Ok(None) | Err(_) => break,
                },
                () = self.orders.wanted(), if is_listed => {
                    self.at = Position::Unlisted;
                    return Ok(());
                }
            }
        }
        match self.at {
            Position::Unlisted => Err(WriteError::local(
                ErrorClass::Transient,
                "the list ended early".into(),
            )),
            Position::From(_) => Ok(()),
        }
    }

    fn event(&mut self, event: WatchEvent<S::Item>) -> Result<(), WriteError> {
        match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => {
                self.advance(item.version());
                self.sink.seen(item);
            }
            WatchEvent::Deleted(item) => {
                self.advance(item.version());
                self.sink.gone(item);
            }
            WatchEvent::Bookmark(mark) => {
                let version = mark.metadata.resource_version;
                let annotations = &mark.metadata.annotations;
                let ends_list = annotations.contains_key("k8s.io/initial-events-end");
                // A list ends once; the mark may come twice.
                if ends_list && self.at == Position::Unlisted {
                    self.done(version);
                } else {
                    self.advance(&version);
                }
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        }
        Ok(())
    }

    /// Only once the list is complete: before that there is nothing to continue from.
    fn advance(&mut self, version: &str) {
        if let Position::From(at) = &mut self.at
            && !version.is_empty()
        {
            version.clone_into(at);
        }
    }

    fn done(&mut self, version: String) {
        self.sink.listed(&version);
        self.listed = Instant::now();
        self.was_listed = true;
        self.at = Position::From(version);
        self.orders.done();
        self.healthy();
    }

    fn healthy(&mut self) {
        self.pause = FIRST_PAUSE;
        if self.failing.take().is_some() {
            self.sink.recovered();
        }
    }

    async fn after(&mut self, ended: Result<(), WriteError>, lasted: Duration) {
        match ended {
            Ok(()) => {
                let oldest = if self.can_stream {
                    self.target.fresh
                } else {
                    LIST_AGAIN
                };
                if self.listed.elapsed() >= oldest {
                    self.at = Position::Unlisted;
                }
                // A server that hangs up at once would be called without pause.
                if lasted < FIRST_PAUSE && !self.just_listed() {
                    self.wait(None).await;
                }
            }
            Err(refused) => self.fail(refused).await,
        }
    }

    fn just_listed(&self) -> bool {
        !self.can_stream && self.listed.elapsed() < FIRST_PAUSE
    }

    async fn fail(&mut self, refused: WriteError) {
        let unlisted = self.at == Position::Unlisted;
        if unlisted && self.can_stream && matches!(refused.code, 400 | 422) {
            self.can_stream = false;
            return;
        }
        if refused.code == 410 && !unlisted {
            self.at = Position::Unlisted;
            return;
        }
        if refused.code == 404 && self.target.is_optional {
            self.sink.begin();
            self.sink.listed("");
            self.at = Position::Unlisted;
            sleep(ABSENT_PAUSE).await;
            return;
        }
        tracing::debug!(path = self.target.path, error = %refused, "watch failed");
        let since = *self.failing.get_or_insert_with(Instant::now);
        let is_denied = matches!(refused.code, 401 | 403 | 404);
        let patience = if self.was_listed && !is_denied {
            LONG_PATIENCE
        } else {
            PATIENCE
        };
        if since.elapsed() >= patience {
            self.sink.failing(&refused.message);
        }
        self.wait(refused.retry_after).await;
    }

    async fn wait(&mut self, told: Option<Duration>) {
        sleep(told.unwrap_or_default().max(self.pause)).await;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
    }
}
