//! Follows a collection: lists it, watches it and passes all objects and changes to a [`Sink`], forever.
//!
//! ```text
//! Unlisted ──list or streaming list──▶ listed ──watch──▶ From(version) ──end──▶ From, or Unlisted again
//!     ▲                                                        │
//!     └────────── 410, or the last list is too old ◀───────────┘
//! ```
//!
//! A list replaces the known objects: objects that are not in the list were deleted. Lists are repeated
//! regularly to recover from missed events. They are streamed as the first events of the next watch, which
//! requires no additional call.

pub(crate) mod all;
mod items;
pub(crate) mod partial_object;
mod relist;
mod request;
mod sinks;
mod workloads;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{AsyncBufReadExt, FutureExt, StreamExt, pin_mut};
use kube::Client;
use kube::core::WatchEvent;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::ErrorClass;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use items::ItemSplitter;
use relist::RelistRequests;
use request::Page;
pub(crate) use request::{SMALL_RELIST_INTERVAL, Target};

/// Time after its server-side timeout at which a watch without events counts as dead.
const SILENCE_MARGIN: Duration = Duration::from_secs(5);

/// Interval of lists on servers without streaming lists, where each list requires an additional call.
const RELIST_INTERVAL: Duration = Duration::from_hours(1);

/// Time after which a source that cannot be listed counts as failing.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time after which a source that was listed before counts as failing, unless access is denied. It is long
/// enough for a restart of the API server.
const LISTED_FAILURE_TIMEOUT: Duration = Duration::from_mins(1);

/// First delay between two attempts. It doubles with each failure.
const MIN_PAUSE: Duration = Duration::from_millis(800);
/// Maximum delay between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// Interval of checks whether the server serves an optional kind.
const UNSERVED_PAUSE: Duration = Duration::from_mins(5);

/// A receiver of the objects of a collection.
pub(crate) trait Sink: Send + 'static {
    /// Type of decoded objects.
    type Item: Item;
    fn begin_list(&mut self);
    /// Receives an object that was listed, created or modified.
    fn apply(&mut self, item: Self::Item);
    /// Receives the last version of a deleted object.
    fn delete(&mut self, item: Self::Item);
    /// Completes a list at this resource version.
    fn finish_list(&mut self, version: &str);
    /// Marks the collection as failing, because it could not be read for some time.
    fn mark_failing(&mut self, message: &str);
    /// Marks the collection as readable again.
    fn mark_recovered(&mut self);
}

/// A decoded object.
pub(crate) trait Item: DeserializeOwned + Clone + Send + 'static {
    /// Returns the resourceVersion.
    fn version(&self) -> &str;
}

impl Item for serde_json::Value {
    fn version(&self) -> &str {
        let version = self.pointer("/metadata/resourceVersion");
        version.and_then(Self::as_str).unwrap_or_default()
    }
}

/// Position of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Unlisted,
    From(String),
}

/// Follows `target` forever, without requests for lists.
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
        let ended = AssertUnwindSafe(watch.run_session()).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| {
            // A new list corrects any partial state.
            watch.position = Position::Unlisted;
            Err(WriteError::local(
                ErrorClass::Other,
                "internal error: a watch panicked".into(),
            ))
        });
        watch.finish_session(ended, start.elapsed()).await;
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
    /// Lists the collection, or watches it until the watch ends.
    async fn run_session(&mut self) -> Result<(), WriteError> {
        if self.position == Position::Unlisted {
            self.relists.begin_list();
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
        self.sink.begin_list();
        let mut token = String::new();
        loop {
            let page = self.list_page(&token).await?;
            token = page.metadata.continue_token;
            if token.is_empty() {
                self.finish_list(page.metadata.resource_version);
                return Ok(());
            }
        }
    }

    /// Passes the objects of a page to the sink while they are received.
    async fn list_page(&mut self, token: &str) -> Result<Page, WriteError> {
        let request = self.target.list(token)?;
        let response = self.client.request_stream(request).await?;
        pin_mut!(response);
        let mut splitter = ItemSplitter::default();
        loop {
            let part = response.fill_buf().await.map_err(kube::Error::ReadEvents)?;
            if part.is_empty() {
                break;
            }
            let length = part.len();
            splitter.push(part, |item| {
                let item = serde_json::from_slice(item).map_err(kube::Error::SerdeError)?;
                self.sink.apply(item);
                Ok::<(), kube::Error>(())
            })?;
            response.consume_unpin(length);
        }
        let page = serde_json::from_slice(&splitter.into_envelope());
        Ok(page.map_err(kube::Error::SerdeError)?)
    }

    async fn watch(&mut self, request: Result<http::Request<Vec<u8>>, WriteError>) -> Result<(), WriteError> {
        let events = self.client.request_events::<S::Item>(request?).await?;
        pin_mut!(events);
        if self.position == Position::Unlisted {
            self.sink.begin_list();
        } else {
            self.record_success();
        }
        let max_silence = self.target.watch_timeout() + SILENCE_MARGIN;
        loop {
            let is_listed = self.position != Position::Unlisted;
            tokio::select! {
                event = timeout(max_silence, events.next()) => match event {
                    Ok(Some(event)) => self.handle_event(event?)?,
                    Ok(None) | Err(_) => break,
                },
                () = self.relists.wait_for_request(), if is_listed => {
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

    fn handle_event(&mut self, event: WatchEvent<S::Item>) -> Result<(), WriteError> {
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
                // The bookmark that marks the end of the list may be repeated.
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

    /// Records the version from which the watch continues. Does nothing until the list is complete.
    fn advance(&mut self, version: &str) {
        if let Position::From(current) = &mut self.position
            && !version.is_empty()
        {
            version.clone_into(current);
        }
    }

    fn finish_list(&mut self, version: String) {
        self.sink.finish_list(&version);
        self.listed = Instant::now();
        self.was_listed = true;
        self.position = Position::From(version);
        self.relists.finish_list();
        self.record_success();
    }

    fn record_success(&mut self) {
        self.pause = MIN_PAUSE;
        if self.failing.take().is_some() {
            self.sink.mark_recovered();
        }
    }

    async fn finish_session(&mut self, ended: Result<(), WriteError>, lasted: Duration) {
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
                // Prevents a busy loop if the server closes watches immediately.
                if lasted < MIN_PAUSE && !self.was_just_listed() {
                    self.wait_before_retry(None).await;
                }
            }
            Err(error) => self.handle_failure(error).await,
        }
    }

    fn was_just_listed(&self) -> bool {
        !self.can_stream && self.listed.elapsed() < MIN_PAUSE
    }

    async fn handle_failure(&mut self, error: WriteError) {
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
            self.sink.begin_list();
            self.sink.finish_list("");
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
            self.sink.mark_failing(&error.message);
        }
        self.wait_before_retry(error.retry_after).await;
    }

    async fn wait_before_retry(&mut self, retry_after: Option<Duration>) {
        sleep(retry_after.unwrap_or_default().max(self.pause)).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}
