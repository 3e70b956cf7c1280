//! Load generator: sends requests at their due times, independent of earlier responses, and keeps every
//! result.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http::Connection;

/// Result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time at which the request was due, since the start of the load.
    pub due: Duration,
    /// Time from the due time to the response. Includes delays caused by earlier requests on the same
    /// connection.
    pub latency: Duration,
    /// Error, if the request failed.
    pub failure: Option<String>,
    /// Body of the response, if the request succeeded: the names of the applications that served it.
    pub response: String,
}

/// A running load.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    completed: Arc<AtomicUsize>,
    workers: Vec<JoinHandle<Vec<Sample>>>,
    begin: Instant,
}

/// Results of a load, sorted by due time.
#[derive(Clone, Debug, Default)]
pub struct Results(pub Vec<Sample>);

/// Number of keep-alive connections. Requests are distributed over them in turn, so that a response may
/// take this many intervals before it delays the next request on its connection.
const WORKERS: u32 = 16;
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Load {
    /// Starts sending `per_second` requests for `/` to `address`.
    #[must_use]
    pub fn start(address: SocketAddr, per_second: u32) -> Self {
        let (stop, begin) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let completed = Arc::new(AtomicUsize::new(0));
        let between = Duration::from_secs(1) / per_second.max(1);
        let workers = (0..WORKERS)
            .map(|number| {
                let worker = Worker {
                    address,
                    begin,
                    offset: between * number,
                    stride: between * WORKERS,
                    stop: Arc::clone(&stop),
                    completed: Arc::clone(&completed),
                };
                std::thread::spawn(move || worker.run())
            })
            .collect();
        Self {
            stop,
            completed,
            workers,
            begin,
        }
    }

    /// Returns the number of completed requests.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.completed.load(Ordering::Relaxed)
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Stops the load, waits for open requests and returns all results.
    #[must_use]
    pub fn finish(mut self) -> Results {
        self.stop.store(true, Ordering::Relaxed);
        let workers = std::mem::take(&mut self.workers);
        let mut samples: Vec<Sample> = workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .flatten()
            .collect();
        samples.sort_by_key(|sample| sample.due);
        Results(samples)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Worker {
    address: SocketAddr,
    begin: Instant,
    offset: Duration,
    stride: Duration,
    stop: Arc<AtomicBool>,
    completed: Arc<AtomicUsize>,
}

impl Worker {
    fn run(&self) -> Vec<Sample> {
        let (mut samples, mut connection, mut due) = (Vec::new(), None, self.offset);
        while !self.stop.load(Ordering::Relaxed) {
            // Polled: requests are sent at fixed times.
            std::thread::sleep(due.saturating_sub(self.begin.elapsed()));
            let outcome = self.request(&mut connection);
            let latency = self.begin.elapsed().saturating_sub(due);
            let (response, failure) = match outcome {
                Ok(response) => (response, None),
                Err(failure) => (String::new(), Some(failure)),
            };
            samples.push(Sample {
                due,
                latency,
                failure,
                response,
            });
            self.completed.fetch_add(1, Ordering::Relaxed);
            due += self.stride;
        }
        samples
    }

    /// Sends a request without retries, so that every failure is visible. Returns the body or a description
    /// of the error.
    fn request(&self, kept: &mut Option<Connection>) -> Result<String, String> {
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => {
                Connection::open(self.address, TIMEOUT).map_err(|error| format!("connecting: {error}"))?
            }
        };
        let reply = connection
            .get("mesh.test", "/")
            .map_err(|error| error.to_string())?;
        if !reply.closes {
            *kept = Some(connection);
        }
        if reply.code == 200 {
            return Ok(reply.body);
        }
        Err(format!("{}: {}", reply.code, reply.body))
    }
}

impl Results {
    /// Returns the number of requests.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.0.len()
    }

    /// Returns the failed requests.
    pub fn failures(&self) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(|sample| sample.failure.is_some())
    }

    /// Returns the longest latency.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.0
            .iter()
            .map(|sample| sample.latency)
            .max()
            .unwrap_or_default()
    }

    /// Returns a percentile of the latencies.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut latencies: Vec<Duration> = self.0.iter().map(|sample| sample.latency).collect();
        latencies.sort_unstable();
        let at = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
        latencies.get(at).copied().unwrap_or_default()
    }

    /// Returns the average number of requests per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let last = self.0.last().map_or(Duration::ZERO, |sample| sample.due);
        self.sent() as f64 / last.as_secs_f64().max(1.0)
    }

    /// Returns the share of the requests completed in a time range that an application served, and the number
    /// of requests completed in that range. Failed requests count as not served.
    #[must_use]
    pub fn share(&self, range: &Range<Duration>, application: &str) -> (f64, usize) {
        let is_within = |sample: &&Sample| range.contains(&(sample.due + sample.latency));
        let completed = || self.0.iter().filter(is_within);
        let served = completed().filter(|sample| sample.response.starts_with(application));
        let all = completed().count();
        (served.count() as f64 / all.max(1) as f64, all)
    }

    /// Returns the number of successful and of failed requests for each second.
    #[must_use]
    pub fn by_second(&self) -> Vec<(usize, usize)> {
        let mut seconds = Vec::new();
        for sample in &self.0 {
            let second = usize::try_from(sample.due.as_secs()).unwrap_or(usize::MAX);
            if seconds.len() <= second {
                seconds.resize(second + 1, (0, 0));
            }
            if let Some(slot) = seconds.get_mut(second) {
                *(if sample.failure.is_some() {
                    &mut slot.1
                } else {
                    &mut slot.0
                }) += 1;
            }
        }
        seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(due: u64, latency: u64, failure: Option<&str>) -> Sample {
        Sample {
            due: Duration::from_millis(due),
            latency: Duration::from_millis(latency),
            failure: failure.map(str::to_owned),
            response: if failure.is_none() { "app-1" } else { "" }.to_owned(),
        }
    }

    #[test]
    fn results_are_counted_by_second() {
        let results = Results(vec![
            sample(0, 3, None),
            sample(999, 9, Some("503: no")),
            sample(2_500, 1, None),
        ]);
        assert_eq!(results.by_second(), [(1, 1), (0, 0), (1, 0)]);
        assert_eq!((results.sent(), results.failures().count()), (3, 1));
        assert_eq!(results.longest(), Duration::from_millis(9));
        assert_eq!(results.percentile(50), Duration::from_millis(3));
        assert_eq!(Results::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn shares_are_those_of_a_time_range() {
        let mut results = Results(vec![
            sample(0, 3, None),
            sample(10, 9, Some("503: no")),
            sample(20, 1, None),
            sample(30, 1, None),
        ]);
        results.0[2].response = "app-2".to_owned();
        let range = |from, to| Duration::from_millis(from)..Duration::from_millis(to);
        // These requests complete at 3, 19, 21 and 31 ms.
        assert_eq!(results.share(&range(0, 30), "app-1"), (1.0 / 3.0, 3));
        assert_eq!(results.share(&range(10, 40), "app-2"), (1.0 / 3.0, 3));
        assert_eq!(results.share(&range(50, 60), "app-1"), (0.0, 0));
    }
}
