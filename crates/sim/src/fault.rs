//! Fault injection: selects the fault, if any, for each request. The selection depends on the client, the
//! kind of the request, its method and its path, not on its body.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock::Instant;
use crate::status::Status;

/// An injected fault.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The client crashes before the request is handled; its later requests fail.
    CrashBefore,
    /// The client crashes after the request is handled; its later requests fail.
    CrashAfter,
    /// The request is lost before it is handled.
    LoseRequest,
    /// The request is handled, and the response is lost.
    LoseResponse,
    /// The server returns this status instead of handling the request.
    Reject(Status),
    /// The server handles the request and then returns this status.
    RejectAfter(Status),
    /// The request is handled, and the response is delayed by this duration.
    Slow(Duration),
    /// The response body is truncated.
    Truncate,
    /// A read returns the state before this many versions, as a lagging replica does.
    Stale(u64),
    /// A watch closes without an error after this many events.
    DropWatch(u64),
    /// A watch ends with 410 after this many events.
    ExpireWatch(u64),
    /// A watch omits the event with this index, starting at 0.
    SkipEvent(u64),
    /// A watch sends the event with this index twice.
    RepeatEvent(u64),
}

impl Fault {
    /// Returns a fault that rejects the request with 409 `Conflict`.
    #[must_use]
    pub fn conflict() -> Self {
        Self::Reject(Status::new(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        ))
    }

    /// Returns a fault that rejects the request with 429 and a `Retry-After` header of `retry_after` seconds.
    #[must_use]
    pub fn throttled(retry_after: u64) -> Self {
        Self::Reject(Status::too_many_requests(
            "Too many requests, please try again later.",
            retry_after,
        ))
    }

    /// Returns a fault that rejects the request with 500.
    #[must_use]
    pub fn internal() -> Self {
        Self::Reject(Status::internal("injected fault"))
    }

    /// Returns a fault that rejects the request with 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::Reject(Status::unavailable("apiserver not ready"))
    }

    /// Returns a fault that rejects the request with 504.
    #[must_use]
    pub fn timeout() -> Self {
        Self::Reject(Status::timeout(
            "request did not complete within the allotted timeout",
            0,
        ))
    }
}

/// Selects the requests to which a fault applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The client's request with this index, starting at 0.
    Request(u64),
    /// The client's write with this index, starting at 0.
    Write(u64),
    /// The client's watch with this index, starting at 0.
    Watch(u64),
    /// Every request whose method and path contain this text, such as `PATCH /apis/apps`.
    Matching(String),
    /// Every request.
    Always,
}

/// A fault with the client and the requests to which it applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name of the client; `None` applies the rule to all clients.
    pub client: Option<String>,
    /// Selects the affected requests.
    pub trigger: Trigger,
    /// Number of times the fault is still to be injected.
    pub times: u64,
    /// Fault to inject.
    pub fault: Fault,
}

impl Rule {
    /// Creates a rule that applies once, to a request of `client`.
    #[must_use]
    pub fn once(client: &str, trigger: Trigger, fault: Fault) -> Self {
        Self {
            client: Some(client.to_owned()),
            trigger,
            times: 1,
            fault,
        }
    }
}

/// The fault rules, with the request counts, crashes and clock skews of all clients.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
    counts: BTreeMap<String, RequestCounts>,
    crashed: BTreeSet<String>,
    skews: BTreeMap<String, ClockSkew>,
}

/// Number of requests that a client has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of all requests.
    pub requests: u64,
    /// Number of requests that may change an object.
    pub writes: u64,
    /// Number of watches.
    pub watches: u64,
}

/// Deviation of a client's clock from the cluster's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Offset in microseconds; a positive offset is ahead of the cluster's clock.
    pub offset: i64,
    /// Rate in thousandths; 1000 is the rate of the cluster's clock.
    pub rate: i64,
    /// Time at which the skew began.
    pub since: Instant,
}

/// Kind of a request, as distinguished by fault rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A get or a list.
    Read,
    /// A request that may change an object.
    Write,
    /// A watch.
    Watch,
}

impl Faults {
    /// Adds a rule.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Removes all rules. Crashed clients remain crashed.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Returns the number of faults that are still to be injected.
    #[must_use]
    pub fn pending(&self) -> usize {
        let times: u64 = self.rules.iter().map(|rule| rule.times).sum();
        usize::try_from(times).unwrap_or(usize::MAX)
    }

    /// Marks a crashed client as restarted.
    pub fn restart_client(&mut self, client: &str) {
        self.crashed.remove(client);
    }

    /// Returns whether a client has crashed.
    #[must_use]
    pub fn has_crashed(&self, client: &str) -> bool {
        self.crashed.contains(client)
    }

    /// Returns the request counts of a client.
    #[must_use]
    pub fn counts(&self, client: &str) -> RequestCounts {
        self.counts.get(client).copied().unwrap_or_default()
    }

    /// Sets the clock skew of a client.
    pub fn set_skew(&mut self, client: &str, skew: ClockSkew) {
        self.skews.insert(client.to_owned(), skew);
    }

    /// Returns the time according to the client's clock.
    #[must_use]
    pub fn client_time(&self, client: &str, now: Instant) -> Instant {
        let Some(skew) = self.skews.get(client) else {
            return now;
        };
        let passed = now.as_micros() - skew.since.as_micros();
        Instant::from_micros(skew.since.as_micros() + skew.offset + passed.saturating_mul(skew.rate) / 1000)
    }

    /// Counts a request and returns the fault to inject, if any.
    pub fn next_fault(&mut self, client: &str, kind: RequestKind, line: &str) -> Option<Fault> {
        if !self.counts.contains_key(client) {
            self.counts.insert(client.to_owned(), RequestCounts::default());
        }
        let before = self
            .counts
            .get_mut(client)
            .map(|counts| counts.count_request(kind))?;
        if self.crashed.contains(client) {
            return Some(Fault::CrashBefore);
        }
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.matches(client, kind, before, line))?;
        rule.times -= 1;
        let fault = rule.fault.clone();
        if matches!(fault, Fault::CrashBefore | Fault::CrashAfter) {
            self.crashed.insert(client.to_owned());
        }
        Some(fault)
    }
}

impl RequestCounts {
    /// Counts one request and returns the counts before it.
    fn count_request(&mut self, kind: RequestKind) -> Self {
        let before = *self;
        self.requests += 1;
        match kind {
            RequestKind::Write => self.writes += 1,
            RequestKind::Watch => self.watches += 1,
            RequestKind::Read => {}
        }
        before
    }
}

impl Rule {
    fn matches(&self, client: &str, kind: RequestKind, before: RequestCounts, line: &str) -> bool {
        if self.client.as_deref().is_some_and(|name| name != client) {
            return false;
        }
        match &self.trigger {
            Trigger::Request(number) => before.requests == *number,
            Trigger::Write(number) => kind == RequestKind::Write && before.writes == *number,
            Trigger::Watch(number) => kind == RequestKind::Watch && before.watches == *number,
            Trigger::Matching(text) => line.contains(text.as_str()),
            Trigger::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_applies_only_to_the_selected_request() {
        let mut faults = Faults::default();
        faults.add(Rule::once("a", Trigger::Write(1), Fault::LoseResponse));
        assert_eq!(faults.next_fault("a", RequestKind::Write, "POST /x"), None);
        assert_eq!(faults.next_fault("b", RequestKind::Write, "POST /x"), None);
        assert_eq!(faults.next_fault("a", RequestKind::Read, "GET /x"), None);
        assert_eq!(
            faults.next_fault("a", RequestKind::Write, "POST /x"),
            Some(Fault::LoseResponse)
        );
        assert_eq!(faults.next_fault("a", RequestKind::Write, "POST /x"), None);
        assert_eq!(
            faults.counts("a"),
            RequestCounts {
                requests: 4,
                writes: 3,
                watches: 0
            }
        );
    }

    #[test]
    fn a_crashed_client_stays_crashed_until_restarted() {
        let mut faults = Faults::default();
        faults.add(Rule::once("a", Trigger::Request(0), Fault::CrashAfter));
        assert_eq!(
            faults.next_fault("a", RequestKind::Read, ""),
            Some(Fault::CrashAfter)
        );
        assert_eq!(
            faults.next_fault("a", RequestKind::Read, ""),
            Some(Fault::CrashBefore)
        );
        faults.restart_client("a");
        assert_eq!(faults.next_fault("a", RequestKind::Read, ""), None);
    }

    #[test]
    fn a_skewed_clock_has_the_configured_offset_and_rate() {
        let mut faults = Faults::default();
        let start = Instant::from_seconds(100);
        faults.set_skew(
            "a",
            ClockSkew {
                offset: 5_000_000,
                rate: 2000,
                since: start,
            },
        );
        assert_eq!(
            faults.client_time("a", start.plus_seconds(10)),
            Instant::from_seconds(125)
        );
        assert_eq!(faults.client_time("b", start), start);
    }
}
