//! One time for two clocks: takes tokio's paused clock, moves the cluster's after it. Whoever calls the cluster calls it at the right moment,
//! and sleeps end when something in the cluster is due, so nobody ticks.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use mainstay_operator::Clock;
use mainstay_sim::clock::Instant;
use mainstay_sim::{Body, Cluster, Connection, TransportError};
use tokio::sync::Notify;
use tower_service::Service;

/// Nobody sleeps longer than this at once.
const LONGEST: Duration = Duration::from_mins(10);
/// When people watch, they see this many steps of virtual time.
const STEP: Duration = Duration::from_millis(100);

/// How fast virtual time may pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// From one event to the next.
    #[default]
    Leaping,
    /// So many virtual seconds in one of the wall clock's.
    Times(f64),
}

/// The stage's time; clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Time {
    cluster: Cluster,
    start: Instant,
    begun: tokio::time::Instant,
    bell: Arc<Notify>,
    pace: Pace,
    wall: std::time::Instant,
}

impl Time {
    pub(super) fn new(cluster: Cluster, pace: Pace) -> Self {
        Self {
            start: cluster.now(),
            cluster,
            begun: tokio::time::Instant::now(),
            bell: Arc::default(),
            pace,
            #[allow(
                clippy::disallowed_methods,
                reason = "people who watch live by the wall clock"
            )]
            wall: std::time::Instant::now(),
        }
    }

    /// What it is by tokio's clock.
    fn moment(&self) -> Instant {
        self.start.plus(self.begun.elapsed())
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.moment().as_micros()).unwrap_or(Timestamp::MAX)
    }

    /// The same for an operator.
    pub(super) fn clock(&self) -> Clock {
        let time = self.clone();
        Clock::new(move || time.now())
    }

    /// A client whose calls find the cluster at the right moment.
    pub(super) fn client(&self, cluster: &Cluster, name: &str) -> Client {
        let service = OnTime {
            connection: cluster.connect(name),
            time: self.clone(),
        };
        Client::new(service, "default")
    }

    /// Brings the cluster's clock to tokio's; everything that was due until then happens.
    fn catch_up(&self) {
        let wait = self.moment().since(self.cluster.now());
        if !wait.is_zero() {
            self.cluster.advance(wait);
        }
    }

    /// Lets the cluster live, for ever.
    pub(super) async fn pass(self) {
        loop {
            self.catch_up();
            let due = self.cluster.due().map(|due| due.since(self.moment()));
            let wait = due.unwrap_or(LONGEST).min(self.longest());
            tokio::select! {
                () = tokio::time::sleep(wait) => self.keep_pace(),
                () = self.bell.notified() => {}
            }
        }
    }

    fn longest(&self) -> Duration {
        match self.pace {
            Pace::Leaping => LONGEST,
            Pace::Times(_) => STEP,
        }
    }

    /// Waits for the wall clock. Nothing else can happen meanwhile: tokio's clock moves only when everybody sleeps.
    fn keep_pace(&self) {
        let Pace::Times(speed) = self.pace else {
            return;
        };
        let wanted = self.begun.elapsed().as_secs_f64() / speed.max(f64::MIN_POSITIVE);
        let wanted = Duration::try_from_secs_f64(wanted).unwrap_or(Duration::ZERO);
        // Polled: the virtual clock waits for the wall clock.
        std::thread::sleep(wanted.saturating_sub(self.wall.elapsed()));
    }
}

/// A connection that moves the cluster's clock before it calls.
#[derive(Clone, Debug)]
pub(super) struct OnTime {
    connection: Connection,
    time: Time,
}

impl<B> Service<Request<B>> for OnTime
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.time.catch_up();
        let answer = self.connection.call(request);
        let bell = self.time.bell.clone();
        Box::pin(async move {
            let answer = answer.await;
            // What was written may be due earlier than what was waited for.
            bell.notify_one();
            answer
        })
    }
}
