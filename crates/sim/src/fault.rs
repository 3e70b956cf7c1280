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
    LoseReply,
    /// The server answers with this instead of handling the request.
    Refuse(Status),
    /// The server handles the request and answers with this.
    RefuseAfter(Status),
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
        Self::Refuse(Status::new(
            409,
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        ))
    }

    /// 429 with a Retry-After.
    #[must_use]
    pub fn throttled(retry_after: u64) -> Self {
        Self::Refuse(Status::too_many_requests(
            "Too many requests, please try again later.",
            retry_after,
        ))
    }

    /// 500.
    #[must_use]
    pub fn internal() -> Self {
        Self::Refuse(Status::internal("injected fault"))
    }

    /// 503.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::Refuse(Status::unavailable("apiserver not ready"))
    }

    /// 504.
    #[must_use]
    pub fn timeout() -> Self {
        Self::Refuse(Status::timeout(
            "request did not complete within the allotted timeout",
            0,
        ))
    }
}

/// Which call is struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// The client's call of this number (from 0).
    Call(u64),
    /// The client's write of this number (from 0).
    Write(u64),
    /// The client's watch of this number (from 0).
    Watch(u64),
    /// Every call whose method and path contain this text, such as `PATCH /apis/apps`.
    Like(String),
    /// Every call.
    Always,
}

/// A fault, whom it strikes and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The client's name; all clients when unset.
    pub client: Option<String>,
    /// Which of its calls.
    pub when: When,
    /// How often it strikes.
    pub times: u64,
    /// What goes wrong.
    pub fault: Fault,
}

impl Rule {
    /// A fault that strikes once.
    #[must_use]
    pub fn once(client: &str, when: When, fault: Fault) -> Self {
        Self {
            client: Some(client.to_owned()),
            when,
            times: 1,
            fault,
        }
    }
}

/// All rules, and what was called so far.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
    counts: BTreeMap<String, Counts>,
    dead: BTreeSet<String>,
    skews: BTreeMap<String, Skew>,
}

/// What a client called so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of any sort.
    pub calls: u64,
    /// Calls that may change something.
    pub writes: u64,
    /// Watches.
    pub watches: u64,
}

/// How a client's clock differs: an offset, and a rate in thousandths of the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Microseconds ahead.
    pub offset: i64,
    /// 1000 is true time.
    pub rate: i64,
    /// When it began.
    pub since: Instant,
}

/// What a call is, as far as faults care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
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

    /// Forgets all rules; the dead stay dead.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Lets a crashed client live again (it was restarted).
    pub fn revive(&mut self, client: &str) {
        self.dead.remove(client);
    }

    /// Whether a client has crashed.
    #[must_use]
    pub fn is_dead(&self, client: &str) -> bool {
        self.dead.contains(client)
    }

    /// What a client called so far.
    #[must_use]
    pub fn counts(&self, client: &str) -> Counts {
        self.counts.get(client).copied().unwrap_or_default()
    }

    /// Gives a client a wrong clock.
    pub fn skew(&mut self, client: &str, skew: Skew) {
        self.skews.insert(client.to_owned(), skew);
    }

    /// What a client believes the time is.
    #[must_use]
    pub fn time_of(&self, client: &str, now: Instant) -> Instant {
        let Some(skew) = self.skews.get(client) else {
            return now;
        };
        let passed = now.as_micros() - skew.since.as_micros();
        Instant::from_micros(skew.since.as_micros() + skew.offset + passed.saturating_mul(skew.rate) / 1000)
    }

    /// Counts a call and gives the fault that strikes it.
    pub fn strike(&mut self, client: &str, sort: Sort, line: &str) -> Option<Fault> {
        if !self.counts.contains_key(client) {
            self.counts.insert(client.to_owned(), Counts::default());
        }
        let before = self.counts.get_mut(client).map(|counts| counts.count(sort))?;
        if self.dead.contains(client) {
            return Some(Fault::CrashBefore);
        }
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.strikes(client, sort, before, line))?;
        rule.times -= 1;
        let fault = rule.fault.clone();
        if matches!(fault, Fault::CrashBefore | Fault::CrashAfter) {
            self.dead.insert(client.to_owned());
        }
        Some(fault)
    }
}

impl Counts {
    /// Counts one more; gives what was before.
    fn count(&mut self, sort: Sort) -> Self {
        let before = *self;
        self.calls += 1;
        match sort {
            Sort::Write => self.writes += 1,
            Sort::Watch => self.watches += 1,
            Sort::Read => {}
        }
        before
    }
}

impl Rule {
    fn strikes(&self, client: &str, sort: Sort, before: Counts, line: &str) -> bool {
        if self.client.as_deref().is_some_and(|name| name != client) {
            return false;
        }
        match &self.when {
            When::Call(number) => before.calls == *number,
            When::Write(number) => sort == Sort::Write && before.writes == *number,
            When::Watch(number) => sort == Sort::Watch && before.watches == *number,
            When::Like(text) => line.contains(text.as_str()),
            When::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_the_call_it_names_and_no_other() {
        let mut faults = Faults::default();
        faults.add(Rule::once("a", When::Write(1), Fault::LoseReply));
        assert_eq!(faults.strike("a", Sort::Write, "POST /x"), None);
        assert_eq!(faults.strike("b", Sort::Write, "POST /x"), None);
        assert_eq!(faults.strike("a", Sort::Read, "GET /x"), None);
        assert_eq!(faults.strike("a", Sort::Write, "POST /x"), Some(Fault::LoseReply));
        assert_eq!(faults.strike("a", Sort::Write, "POST /x"), None);
        assert_eq!(
            faults.counts("a"),
            Counts {
                calls: 4,
                writes: 3,
                watches: 0
            }
        );
    }

    #[test]
    fn the_dead_stay_dead_until_restarted() {
        let mut faults = Faults::default();
        faults.add(Rule::once("a", When::Call(0), Fault::CrashAfter));
        assert_eq!(faults.strike("a", Sort::Read, ""), Some(Fault::CrashAfter));
        assert_eq!(faults.strike("a", Sort::Read, ""), Some(Fault::CrashBefore));
        faults.revive("a");
        assert_eq!(faults.strike("a", Sort::Read, ""), None);
    }

    #[test]
    fn a_skewed_clock_runs_at_its_own_rate() {
        let mut faults = Faults::default();
        let start = Instant::from_seconds(100);
        faults.skew(
            "a",
            Skew {
                offset: 5_000_000,
                rate: 2000,
                since: start,
            },
        );
        assert_eq!(
            faults.time_of("a", start.plus_seconds(10)),
            Instant::from_seconds(125)
        );
        assert_eq!(faults.time_of("b", start), start);
    }
}
