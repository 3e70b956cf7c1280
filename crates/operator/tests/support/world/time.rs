//! Waits for conditions and for an idle operator, and counts its calls.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use mainstay_sim::Cluster;
use serde_json::Value;

use super::{Backing, World, has_condition, summarize};
use crate::support::calls::{self, Call, CallKind, CallMarker};
use crate::support::path::ObjectPath;

/// Description of a condition that is not met yet.
#[derive(Debug)]
pub struct UnmetCondition(String);

impl fmt::Display for UnmetCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for UnmetCondition {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for UnmetCondition {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl World {
    /// Returns the timeout of a condition.
    fn timeout(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_mins(15),
            // Includes the start of a process on a busy machine and the timeout of a workload.
            Backing::Real(real) if real.injects => Duration::from_mins(3),
            // The garbage collector discovers new kinds every 30 s.
            Backing::Real(_) => Duration::from_secs(45),
        }
    }

    /// Returns the interval between checks, which increases after a long wait.
    fn interval(&self, waited: Duration) -> Duration {
        match &self.backing {
            Backing::Sim(_) if waited > Duration::from_mins(5) => Duration::from_secs(5),
            Backing::Sim(_) => Duration::from_millis(200),
            Backing::Real(_) => Duration::from_millis(40),
        }
    }

    /// Returns the time without calls after which the operator counts as idle.
    fn idle_time(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_secs(20),
            Backing::Real(_) => Duration::from_millis(600),
        }
    }

    /// Returns a grace period in seconds that is long enough to be observed and short enough for a test.
    pub fn grace_seconds(&self) -> u64 {
        match &self.backing {
            Backing::Sim(_) => 30,
            Backing::Real(real) if real.injects => 2,
            Backing::Real(_) => 5,
        }
    }

    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until `check` succeeds. Its last error is part of the failure message.
    pub async fn until<E: Into<UnmetCondition>>(
        &self,
        what: &str,
        check: impl AsyncFn(&World) -> Result<(), E>,
    ) {
        let begin = tokio::time::Instant::now();
        loop {
            let Err(problem) = check(self).await.map_err(Into::into) else {
                return;
            };
            assert!(
                begin.elapsed() <= self.timeout(),
                "{what}: timeout after {:?}: {problem}\n{}",
                begin.elapsed(),
                self.describe().await
            );
            tokio::time::sleep(self.interval(begin.elapsed())).await;
            self.restart_ended_operator().await;
        }
    }

    /// Waits until an object exists and `check` accepts it.
    pub async fn until_object(&self, at: &ObjectPath, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        let found = RefCell::new(Value::Null);
        self.until(&format!("{at} {what}"), async |world| {
            let Some(object) = world.get(at).await else {
                return Err(UnmetCondition::from("does not exist"));
            };
            let accepted = check(&object);
            let problem = summarize(&object);
            found.replace(object);
            accepted.then_some(()).ok_or(UnmetCondition::from(problem))
        })
        .await;
        found.into_inner()
    }

    pub async fn until_exists(&self, at: &ObjectPath) -> Value {
        self.until_object(at, "exists", |_| true).await
    }

    pub async fn until_gone(&self, at: &ObjectPath) {
        self.until(&format!("{at} is deleted"), async |world| {
            match world.get(at).await {
                None => Ok(()),
                Some(object) => Err(format!("exists: {}", summarize(&object))),
            }
        })
        .await;
    }

    /// Waits until an object has a condition, given as `Ready=True` or
    /// `InUse=False/NotReferencedByAnything`.
    pub async fn until_condition(&self, at: &ObjectPath, wanted: &str) -> Value {
        self.until_object(at, wanted, |object| has_condition(object, wanted))
            .await
    }

    pub async fn until_state(&self, at: &ObjectPath, state: &str) -> Value {
        self.until_object(at, &format!("state {state}"), |object| {
            object["status"]["state"] == state
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    /// Waits until the operator is idle.
    pub async fn settle(&self) {
        let begin = tokio::time::Instant::now();
        loop {
            let mark = self.mark();
            tokio::time::sleep(self.idle_time()).await;
            let calls = self.calls(&mark);
            if calls::requests(&calls).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < self.timeout() * 4,
                "never idle: {:#?}",
                calls::requests(&calls)
            );
        }
    }

    /// Waits until the operator has been idle for longer than its timers. Restarts an operator that has
    /// ended.
    pub async fn wait_until_idle(&self) {
        let begin = tokio::time::Instant::now();
        let seconds = match &self.backing {
            Backing::Sim(_) => 70,
            // Scenarios with longer delays wait for them explicitly.
            Backing::Real(_) => 3,
        };
        loop {
            let mark = self.mark();
            for _ in 0..seconds {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.restart_ended_operator().await;
            }
            let calls = self.calls(&mark);
            if calls::requests(&calls).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_hours(1),
                "never idle: {:#?}",
                calls::requests(&calls)
            );
        }
    }

    /// Restarts an operator that has ended, as a Deployment would.
    async fn restart_ended_operator(&self) {
        if let Backing::Sim(sim) = &self.backing
            && (restart_crashed(sim.sim()) || self.operator_ended())
        {
            self.restart_operator().await;
        }
    }

    /// Ends every watch and drops the event history, so that no watch can be resumed.
    pub async fn expire_watches(&self) {
        let Backing::Sim(sim) = &self.backing else {
            panic!("only the simulator can drop its history");
        };
        for _ in 0..75 {
            compact(sim.sim());
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        self.wait_until_idle().await;
    }

    /// Returns a marker for the start of the world.
    #[allow(clippy::unused_self, reason = "it reads as every other step of a scenario")]
    pub fn mark_start(&self) -> CallMarker {
        CallMarker::Trace(0)
    }

    /// Returns a marker for the current position in the trace or audit log.
    pub fn mark(&self) -> CallMarker {
        match &self.backing {
            Backing::Sim(sim) => CallMarker::Trace(sim.sim().with(|state| state.trace.text().len())),
            Backing::Real(real) => real.mark(),
        }
    }

    /// Returns the operator's calls since a marker.
    pub fn calls(&self, mark: &CallMarker) -> Vec<Call> {
        match (&self.backing, mark) {
            (Backing::Sim(sim), CallMarker::Trace(from)) => traced_calls(sim.sim(), *from),
            (Backing::Real(_), CallMarker::Audit(audit)) => {
                let entries = audit.entries().unwrap();
                entries.iter().filter_map(calls::from_audit_entry).collect()
            }
            _ => panic!("a mark of another cluster"),
        }
    }

    /// Checks that `act` causes no call of the operator.
    pub async fn assert_no_calls(&self, what: &str, act: impl AsyncFnOnce(&World)) {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        tokio::time::sleep(self.idle_time()).await;
        let calls = self.calls(&mark);
        assert_eq!(calls::requests(&calls), [""; 0], "{what}");
    }

    /// Returns the writes that `act` causes, one line each.
    pub async fn writes_of(&self, act: impl AsyncFnOnce(&World)) -> Vec<String> {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        self.settle().await;
        let calls = self.calls(&mark);
        calls::of_kind(&calls, CallKind::Write)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }
}

/// Returns the operator's calls in the trace, starting at this byte offset.
pub(super) fn traced_calls(sim: &Cluster, from: usize) -> Vec<Call> {
    sim.with(|state| {
        state.trace.text()[from..]
            .lines()
            .filter_map(calls::parse_trace_line)
            .collect()
    })
}

/// Restarts the operator's client if it has crashed. Returns whether it had crashed.
fn restart_crashed(sim: &Cluster) -> bool {
    sim.with(|state| {
        let crashed = state.faults.has_crashed(calls::OPERATOR);
        state.faults.restart_client(calls::OPERATOR);
        crashed
    })
}

/// Drops the event history, so that watches from earlier versions expire.
fn compact(sim: &Cluster) {
    sim.with(|state| {
        let version = state.store.version() + 1;
        state.store.advance_version(version);
        state.store.compact(version);
    });
}
