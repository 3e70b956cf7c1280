//! Follows one collection: lists it, watches it and passes every object and change to a [`Sink`], forever.
//!
//! ```text
//! Unlisted ──list or streaming list──▶ listed ──watch──▶ From(version) ──end──▶ From, or Unlisted again
//!     ▲                                                        │
//!     └────────── 410, or the last list is too old ◀───────────┘
//! ```
//!
//! A list replaces what was known: objects it lacks were deleted. Lists are repeated regularly to make up for
//! missed events. They are streamed as the first events of a watch that starts anyway, without an extra call.

pub(crate) mod all;
pub(crate) mod partial_object;
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

use relist::RelistRequests;
pub(crate) use request::Target;

/// A watch without events is considered dead this long after its server-side timeout.
const SILENCE_MARGIN: Duration = Duration::from_secs(5);

/// Interval of lists on servers without streaming lists, where each list is an extra call.
const RELIST_INTERVAL: Duration = Duration::from_hours(1);

/// Time until a source that cannot be listed counts as failing.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time until a source that was listed before counts as failing, unless access is denied. Long enough for a
/// restart of the API server.
const LISTED_FAILURE_TIMEOUT: Duration = Duration::from_mins(1);

/// Pauses between attempts; they double.
const MIN_PAUSE: Duration = Duration::from_millis(800);
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// Pause before checking again whether the server serves a kind.
const UNSERVED_PAUSE: Duration = Duration::from_mins(5);

/// Receives the objects of a collection.
pub(crate) trait Sink: Send + 'static {
    /// The decoded object.
    type Item: Item;
    /// A list begins.
    fn begin(&mut self);
    /// An object was listed, created or modified.
    fn apply(&mut self, item: Self::Item);
    /// An object was deleted.
    fn delete(&mut self, item: Self::Item);
    /// The list is complete, at this version.
    fn listed(&mut self, version: &str);
    /// The collection could not be read for a while.
    fn failing(&mut self, message: &str);
    /// The collection can be read again.
    fn recovered(&mut self);
}

/// A decoded object.
pub(crate) trait Item: DeserializeOwned + Clone + Send + 'static {
    /// The resourceVersion.
    fn version(&self) -> &str;
}

impl Item for serde_json::Value {
    fn version(&self) -> &str {
        let version = self.pointer("/metadata/resourceVersion");
        version.and_then(Self::as_str).unwrap_or_default()
    }
}

/// The position of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Unlisted,
    From(String),
}

/// Follows `target` forever.
pub(crate) async fn follow_forever<S: Sink>(client: Client, target: Target, sink: S) {
    follow(client, target, sink, relist::relist_channel().1).await;
}

/// Follows `target` forever, and lists it again on request.
pub(crate) async fn follow<S: Sink>(client: Client, target: Target, sink: S, relists: RelistRequests) {
    let mut watch = Watch {
        client,
        target,
        sink,
        relists,
        position: Position::Unlisted,
        can_stream: true,
        listed: Instant::now(),
        was_listed: false,
        pause: MIN_PAUSE,
        failing: None,
    };
    loop {
        let start = Instant::now();
        let ended = AssertUnwindSafe(watch.session()).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| {
            // A new list repairs any partial state.
            watch.position = Position::Unlisted;
            Err(WriteError::local(
                ErrorClass::Other,
                "internal error: a watch panicked".into(),
            ))
        });
        watch.after(ended, start.elapsed()).await;
    }
}

struct Watch<S: Sink> {
    client: Client,
    target: Target,
    sink: S,
    relists: RelistRequests,
    position: Position,
    can_stream: bool,
    listed: Instant,
    was_listed: bool,
    pause: Duration,
    failing: Option<Instant>,
}

impl<S: Sink> Watch<S> {
    /// Lists or watches until the watch ends.
    async fn session(&mut self) -> Result<(), WriteError> {
        if self.position == Position::Unlisted {
            self.relists.begin();
        }
        match &self.position {
            Position::Unlisted if self.can_stream => self.watch(self.target.streaming_list()).await,
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
                self.sink.apply(item);
            }
            token = page.metadata.continue_token;
            if token.is_empty() {
                self.finish_list(page.metadata.resource_version);
                return Ok(());
            }
        }
    }

    async fn watch(&mut self, request: Result<http::Request<Vec<u8>>, WriteError>) -> Result<(), WriteError> {
        let events = self.client.request_events::<S::Item>(request?).await?;
        pin_mut!(events);
        if self.position == Position::Unlisted {
            self.sink.begin();
        } else {
            self.record_success();
        }
        let max_silence = self.target.watch_timeout() + SILENCE_MARGIN;
        loop {
            let is_listed = self.position != Position::Unlisted;
            tokio::select! {
                event = timeout(max_silence, events.next()) => match event {
                    Ok(Some(event)) => self.event(event?)?,
                    Ok(None) | Err(_) => break,
                },
                () = self.relists.requested(), if is_listed => {
                    self.position = Position::Unlisted;
                    return Ok(());
                }
            }
        }
        match self.position {
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
                self.sink.apply(item);
            }
            WatchEvent::Deleted(item) => {
                self.advance(item.version());
                self.sink.delete(item);
            }
            WatchEvent::Bookmark(mark) => {
                let version = mark.metadata.resource_version;
                let annotations = &mark.metadata.annotations;
                let ends_list = annotations.contains_key("k8s.io/initial-events-end");
                // The bookmark that ends the list may be repeated.
                if ends_list && self.position == Position::Unlisted {
                    self.finish_list(version);
                } else {
                    self.advance(&version);
                }
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        }
        Ok(())
    }

    /// Records the version to continue from, once the list is complete.
    fn advance(&mut self, version: &str) {
        if let Position::From(current) = &mut self.position
            && !version.is_empty()
        {
            version.clone_into(current);
        }
    }

    fn finish_list(&mut self, version: String) {
        self.sink.listed(&version);
        self.listed = Instant::now();
        self.was_listed = true;
        self.position = Position::From(version);
        self.relists.done();
        self.record_success();
    }

    fn record_success(&mut self) {
        self.pause = MIN_PAUSE;
        if self.failing.take().is_some() {
            self.sink.recovered();
        }
    }

    async fn after(&mut self, ended: Result<(), WriteError>, lasted: Duration) {
        match ended {
            Ok(()) => {
                let max_age = if self.can_stream {
                    self.target.max_list_age
                } else {
                    RELIST_INTERVAL
                };
                if self.listed.elapsed() >= max_age {
                    self.position = Position::Unlisted;
                }
                // Avoids calling a server that closes watches immediately without a pause.
                if lasted < MIN_PAUSE && !self.just_listed() {
                    self.wait(None).await;
                }
            }
            Err(error) => self.fail(error).await,
        }
    }

    fn just_listed(&self) -> bool {
        !self.can_stream && self.listed.elapsed() < MIN_PAUSE
    }

    async fn fail(&mut self, error: WriteError) {
        let unlisted = self.position == Position::Unlisted;
        if unlisted && self.can_stream && matches!(error.code, 400 | 422) {
            self.can_stream = false;
            return;
        }
        if error.code == 410 && !unlisted {
            self.position = Position::Unlisted;
            return;
        }
        if error.code == 404 && self.target.is_optional {
            self.sink.begin();
            self.sink.listed("");
            self.position = Position::Unlisted;
            sleep(UNSERVED_PAUSE).await;
            return;
        }
        tracing::debug!(path = self.target.path, error = %error, "watch failed");
        let since = *self.failing.get_or_insert_with(Instant::now);
        let is_denied = matches!(error.code, 401 | 403 | 404);
        let timeout = if self.was_listed && !is_denied {
            LISTED_FAILURE_TIMEOUT
        } else {
            FAILURE_TIMEOUT
        };
        if since.elapsed() >= timeout {
            self.sink.failing(&error.message);
        }
        self.wait(error.retry_after).await;
    }

    async fn wait(&mut self, retry_after: Option<Duration>) {
        sleep(retry_after.unwrap_or_default().max(self.pause)).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}
