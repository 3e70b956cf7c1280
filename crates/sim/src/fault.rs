//! What goes wrong, and when: takes rules, gives for each call the fault that strikes it. Knows nothing of what calls do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock::Instant;
use crate::status::Status;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The client dies before the request is handled: nothing happens, and all its later calls fail.
    CrashBefore,
    /// The client dies after the request was handled: it happened, the client never learns, and all its later calls fail.
    CrashAfter,
    /// The request is lost on its way.
    LoseRequest,
    /// The request is handled, the reply is lost.
    LoseResponse,
    /// The server answers with this instead of handling the request.
    Reject(Status),
    /// The server handles the request and answers with this.
    RejectAfter(Status),
    /// The request times out on its way back: handled, answered after so long.
    Slow(Duration),
    /// The reply's body ends early.
    Truncate,
    /// A read sees the cluster as it was this many versions ago (a lagging replica).
    Stale(u64),
    /// A watch ends without a word after this many events.
    DropWatch(u64),
    /// A watch ends with 410 after this many events.
    ExpireWatch(u64),
    /// A watch never sends its event of this number (from 0).
    SkipEvent(u64),
    /// A watch sends its event of this number twice.
    RepeatEvent(u64),
}

impl Fault {
    /// 409: somebody else was faster.
    #[must_use]
    pub fn conflict() -> Self {
        Self::Reject(Status::new(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        ))
    }

    /// 429 with a Retry-After.
    #[must_use]
    pub fn throttled(retry_after: u64) -> Self {
        Self::Reject(Status::too_many_requests(
            "Too many requests, please try again later.",
            retry_after,
        ))
    }

    /// 500.
    #[must_use]
    pub fn internal() -> Self {
        Self::Reject(Status::internal("injected fault"))
    }

    /// 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::Reject(Status::unavailable("apiserver not ready"))
    }

    /// 504.
    #[must_use]
    pub fn timeout() -> Self {
        Self::Reject(Status::timeout(
            "request did not complete within the allotted timeout",
            0,
        ))
    }
}

/// Which call is struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The client's call of this number (from 0).
    Request(u64),
    /// The client's write of this number (from 0).
    Write(u64),
    /// The client's watch of this number (from 0).
    Watch(u64),
    /// Every call whose method and path contain this text, such as `PATCH /apis/apps`.
    Matching(String),
    /// Every call.
    Always,
}

/// A fault, whom it strikes and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The client's name; all clients when unset.
    pub client: Option<String>,
    /// Which of its requests.
    pub trigger: Trigger,
    /// How often it strikes.
    pub times: u64,
    /// What goes wrong.
    pub fault: Fault,
}

impl Rule {
    /// A fault that strikes once.
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

/// All rules, and what was called so far.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
    counts: BTreeMap<String, RequestCounts>,
    crashed: BTreeSet<String>,
    skews: BTreeMap<String, ClockSkew>,
}

/// What a client called so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Calls of any sort.
    pub requests: u64,
    /// Calls that may change something.
    pub writes: u64,
    /// Watches.
    pub watches: u64,
}

/// How a client's clock differs: an offset, and a rate in thousandths of the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSkew {
    /// Microseconds ahead.
    pub offset: i64,
    /// 1000 is true time.
    pub rate: i64,
    /// When it began.
    pub since: Instant,
}

/// What a call is, as far as faults care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A get or a list.
    Read,
    /// Anything that may change something.
    Write,
    /// A watch.
    Watch,
}

impl Faults {
    /// Adds a rule.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Forgets all rules; the dead stay crashed.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Lets a crashed client live again (it was restarted).
    pub fn restart_client(&mut self, client: &str) {
        self.crashed.remove(client);
    }

    /// Whether a client has crashed.
    #[must_use]
    pub fn has_crashed(&self, client: &str) -> bool {
        self.crashed.contains(client)
    }

    /// What a client called so far.
    #[must_use]
    pub fn counts(&self, client: &str) -> RequestCounts {
        self.counts.get(client).copied().unwrap_or_default()
    }

    /// Gives a client a wrong clock.
    pub fn set_skew(&mut self, client: &str, skew: ClockSkew) {
        self.skews.insert(client.to_owned(), skew);
    }

    /// What a client believes the time is.
    #[must_use]
    pub fn client_time(&self, client: &str, now: Instant) -> Instant {
        let Some(skew) = self.skews.get(client) else {
            return now;
        };
        let passed = now.as_micros() - skew.since.as_micros();
        Instant::from_micros(skew.since.as_micros() + skew.offset + passed.saturating_mul(skew.rate) / 1000)
    }

    /// RequestCounts a call and gives the fault that strikes it.
    pub fn next_fault(&mut self, client: &str, sort: RequestKind, line: &str) -> Option<Fault> {
        if !self.counts.contains_key(client) {
            self.counts.insert(client.to_owned(), RequestCounts::default());
        }
        let before = self
            .counts
            .get_mut(client)
            .map(|counts| counts.count_request(sort))?;
        if self.crashed.contains(client) {
            return Some(Fault::CrashBefore);
        }
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.applies(client, sort, before, line))?;
        rule.times -= 1;
        let fault = rule.fault.clone();
        if matches!(fault, Fault::CrashBefore | Fault::CrashAfter) {
            self.crashed.insert(client.to_owned());
        }
        Some(fault)
    }
}

impl RequestCounts {
    /// RequestCounts one more; gives what was before.
    fn count_request(&mut self, sort: RequestKind) -> Self {
        let before = *self;
        self.requests += 1;
        match sort {
            RequestKind::Write => self.writes += 1,
            RequestKind::Watch => self.watches += 1,
            RequestKind::Read => {}
        }
        before
    }
}

impl Rule {
    fn applies(&self, client: &str, sort: RequestKind, before: RequestCounts, line: &str) -> bool {
        if self.client.as_deref().is_some_and(|name| name != client) {
            return false;
        }
        match &self.trigger {
            Trigger::Request(number) => before.requests == *number,
            Trigger::Write(number) => sort == RequestKind::Write && before.writes == *number,
            Trigger::Watch(number) => sort == RequestKind::Watch && before.watches == *number,
            Trigger::Matching(text) => line.contains(text.as_str()),
            Trigger::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_the_call_it_names_and_no_other() {
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
    fn the_dead_stay_dead_until_restarted() {
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
    fn a_skewed_clock_runs_at_its_own_rate() {
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
