//! Virtual time: the simulator's clock follows tokio's paused clock. The cluster's clock is updated before
//! every API call, and the driver sleeps exactly until the next event of the cluster is due.

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

use crate::Speed;

/// Maximum time between two updates of the cluster's clock.
const MAX_STEP: Duration = Duration::from_mins(10);
/// Maximum time between two updates if virtual time is tied to the wall clock.
const WALL_CLOCK_STEP: Duration = Duration::from_millis(100);

/// Virtual time of one cluster. Clones share the time.
#[derive(Clone, Debug)]
pub(crate) struct VirtualTime {
    cluster: Cluster,
    start: Instant,
    tokio_start: tokio::time::Instant,
    wall_start: std::time::Instant,
    called: Arc<Notify>,
    speed: Speed,
}

impl VirtualTime {
    pub(crate) fn new(cluster: Cluster, speed: Speed) -> Self {
        Self {
            start: cluster.now(),
            cluster,
            tokio_start: tokio::time::Instant::now(),
            called: Arc::default(),
            speed,
            #[allow(
                clippy::disallowed_methods,
                reason = "Speed::Factor is relative to the wall clock"
            )]
            wall_start: std::time::Instant::now(),
        }
    }

    fn instant(&self) -> Instant {
        self.start.plus(self.tokio_start.elapsed())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.instant().as_micros()).unwrap_or(Timestamp::MAX)
    }

    /// Returns this time as a clock for an operator.
    pub(crate) fn clock(&self) -> Clock {
        let time = self.clone();
        Clock::new(move || time.now())
    }

    /// Returns a client that advances the cluster to the current time before every call.
    pub(crate) fn client(&self, connection: Connection) -> Client {
        let service = SynchronizedConnection {
            connection,
            time: self.clone(),
        };
        Client::new(service, "default")
    }

    /// Advances the cluster's clock to the current time and processes all events that are due.
    pub(crate) fn catch_up(&self) {
        let lag = self.instant().since(self.cluster.now());
        if !lag.is_zero() {
            self.cluster.advance(lag);
        }
    }

    /// Advances the cluster forever.
    pub(crate) async fn drive(self) {
        loop {
            self.catch_up();
            let due = self.cluster.due().map(|due| due.since(self.instant()));
            let wait = due.unwrap_or(MAX_STEP).min(self.max_step());
            tokio::select! {
                () = tokio::time::sleep(wait) => self.wait_for_wall_clock(),
                () = self.called.notified() => {}
            }
        }
    }

    fn max_step(&self) -> Duration {
        match self.speed {
            Speed::Unlimited => MAX_STEP,
            Speed::Factor(_) => WALL_CLOCK_STEP,
        }
    }

    /// Blocks the thread until the wall clock has caught up. No event is missed: tokio's paused clock
    /// advances only when every task is idle.
    fn wait_for_wall_clock(&self) {
        let Speed::Factor(factor) = self.speed else {
            return;
        };
        let target = self.tokio_start.elapsed().as_secs_f64() / factor.max(f64::MIN_POSITIVE);
        let target = Duration::try_from_secs_f64(target).unwrap_or(Duration::ZERO);
        // Polled: the virtual clock waits for the wall clock.
        std::thread::sleep(target.saturating_sub(self.wall_start.elapsed()));
    }
}

/// A connection that advances the cluster's clock before each call.
#[derive(Clone, Debug)]
struct SynchronizedConnection {
    connection: Connection,
    time: VirtualTime,
}

impl<B> Service<Request<B>> for SynchronizedConnection
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
        let response = self.connection.call(request);
        let called = self.time.called.clone();
        Box::pin(async move {
            let response = response.await;
            // The call may have scheduled an event that is due earlier than the one that the driver waits
            // for.
            called.notify_one();
            response
        })
    }
}
