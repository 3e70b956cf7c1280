//! Waiting in a world: lets time pass until something holds, or until nothing happens any more, and counts the calls meanwhile.

use std::cell::RefCell;
use std::time::Duration;

use mainstay_sim::Cluster;
use serde_json::Value;

use super::{Backing, World, brief, has_condition};
use crate::support::at::At;
use crate::support::calls::{self, Call, Mark, Sort};

impl World {
    /// How long to wait for what should happen.
    fn patience(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_mins(15),
            // A process must start, those of others may be busy, and one workload may be given up before.
            Backing::Real(real) if real.injects => Duration::from_mins(3),
            // The garbage collector looks for new kinds every 30 s.
            Backing::Real(_) => Duration::from_secs(45),
        }
    }

    /// Who has waited for long looks more seldom.
    fn glance(&self, waited: Duration) -> Duration {
        match &self.backing {
            Backing::Sim(_) if waited > Duration::from_mins(5) => Duration::from_secs(5),
            Backing::Sim(_) => Duration::from_millis(200),
            Backing::Real(_) => Duration::from_millis(40),
        }
    }

    /// How long nothing must happen before we believe that nothing will.
    fn silence(&self) -> Duration {
        match &self.backing {
            Backing::Sim(_) => Duration::from_secs(20),
            Backing::Real(_) => Duration::from_millis(600),
        }
    }

    /// A grace period that is long enough to be seen and short enough to be waited for.
    pub fn grace(&self) -> u64 {
        match &self.backing {
            Backing::Sim(_) => 30,
            Backing::Real(real) if real.injects => 2,
            Backing::Real(_) => 5,
        }
    }

    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until `check` is content; its last complaint is what the test fails with.
    pub async fn until(&self, what: &str, check: impl AsyncFn(&World) -> Result<(), String>) {
        let begin = tokio::time::Instant::now();
        loop {
            let complaint = match check(self).await {
                Ok(()) => return,
                Err(complaint) => complaint,
            };
            assert!(
                begin.elapsed() <= self.patience(),
                "{what}: not after {:?}: {complaint}\n{}",
                begin.elapsed(),
                self.last_words().await
            );
            tokio::time::sleep(self.glance(begin.elapsed())).await;
            self.revive_operator().await;
        }
    }

    /// Waits until an object is there and `check` is content with it.
    pub async fn until_object(&self, at: &At, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        let found = RefCell::new(Value::Null);
        self.until(&format!("{at} {what}"), async |world| {
            let object = world.get(at).await.ok_or("not there")?;
            let content = check(&object);
            let complaint = brief(&object);
            found.replace(object);
            content.then_some(()).ok_or(complaint)
        })
        .await;
        found.into_inner()
    }

    pub async fn until_there(&self, at: &At) -> Value {
        self.until_object(at, "is there", |_| true).await
    }

    pub async fn until_gone(&self, at: &At) {
        self.until(&format!("{at} is gone"), async |world| {
            match world.get(at).await {
                None => Ok(()),
                Some(object) => Err(format!("there: {}", brief(&object))),
            }
        })
        .await;
    }

    /// Waits until a condition is as written: `Ready=True`, `InUse=False/NotReferencedByAnything`.
    pub async fn until_condition(&self, at: &At, wanted: &str) -> Value {
        self.until_object(at, wanted, |object| has_condition(object, wanted))
            .await
    }

    pub async fn until_state(&self, at: &At, state: &str) -> Value {
        self.until_object(at, &format!("state {state}"), |object| {
            object["status"]["state"] == state
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await
    }

    /// Waits until the operator has asked nothing for a while.
    pub async fn settle(&self) {
        let begin = tokio::time::Instant::now();
        loop {
            let mark = self.mark();
            tokio::time::sleep(self.silence()).await;
            let asked = self.calls(&mark);
            if calls::asked(&asked).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < self.patience() * 4,
                "never quiet: {:#?}",
                calls::asked(&asked)
            );
        }
    }

    /// Waits until the operator has asked nothing for longer than it holds anything back; one that has died is started again.
    pub async fn rest(&self) {
        let begin = tokio::time::Instant::now();
        let seconds = match &self.backing {
            Backing::Sim(_) => 70,
            // What it holds back for longer, somebody asked it to.
            Backing::Real(_) => 3,
        };
        loop {
            let mark = self.mark();
            for _ in 0..seconds {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.revive_operator().await;
            }
            let asked = self.calls(&mark);
            if calls::asked(&asked).is_empty() {
                return;
            }
            assert!(
                begin.elapsed() < Duration::from_hours(1),
                "never quiet: {:#?}",
                calls::asked(&asked)
            );
        }
    }

    /// As a Deployment would: a process that ended is started again.
    async fn revive_operator(&self) {
        if let Backing::Sim(sim) = &self.backing
            && (restart_crashed(sim.sim()) || self.operator_ended())
        {
            self.restart_operator().await;
        }
    }

    /// Every watch ends in time, and none can go on from where it was.
    pub async fn expire_watches(&self) {
        let Backing::Sim(sim) = &self.backing else {
            panic!("only the simulator forgets on demand");
        };
        for _ in 0..75 {
            compact(sim.sim());
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        self.rest().await;
    }

    /// From the beginning of the world.
    #[allow(clippy::unused_self, reason = "it reads as every other step of a scenario")]
    pub fn mark_start(&self) -> Mark {
        Mark::Trace(0)
    }

    /// From now on.
    pub fn mark(&self) -> Mark {
        match &self.backing {
            Backing::Sim(sim) => Mark::Trace(sim.sim().with(|state| state.trace.text().len())),
            Backing::Real(real) => real.mark(),
        }
    }

    /// What the operator asked since then.
    pub fn calls(&self, mark: &Mark) -> Vec<Call> {
        match (&self.backing, mark) {
            (Backing::Sim(sim), Mark::Trace(from)) => traced_calls(sim.sim(), *from),
            (Backing::Real(_), Mark::Audit(audit)) => {
                let entries = audit.entries().unwrap();
                entries.iter().filter_map(calls::of_entry).collect()
            }
            _ => panic!("a mark of another world"),
        }
    }

    /// The operator asks the server nothing because of `act`.
    pub async fn quiet(&self, what: &str, act: impl AsyncFnOnce(&World)) {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        tokio::time::sleep(self.silence()).await;
        let seen = self.calls(&mark);
        assert_eq!(calls::asked(&seen), [""; 0], "{what}");
    }

    /// How many writes `act` causes, one line each.
    pub async fn writes_of(&self, act: impl AsyncFnOnce(&World)) -> Vec<String> {
        self.settle().await;
        let mark = self.mark();
        act(self).await;
        self.settle().await;
        let seen = self.calls(&mark);
        calls::of_sort(&seen, Sort::Write)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }
}

/// Returns the operator's calls in the trace from this byte on.
pub(super) fn traced_calls(sim: &Cluster, from: usize) -> Vec<Call> {
    sim.with(|state| {
        state.trace.text()[from..]
            .lines()
            .filter_map(calls::of_trace)
            .collect()
    })
}

/// Clears the crash of the operator's client, and returns whether there was one.
fn restart_crashed(sim: &Cluster) -> bool {
    sim.with(|state| {
        let crashed = state.faults.has_crashed(calls::OPERATOR);
        state.faults.restart_client(calls::OPERATOR);
        crashed
    })
}

/// Drops the event history: watches from earlier versions expire.
fn compact(sim: &Cluster) {
    sim.with(|state| {
        let version = state.store.version() + 1;
        state.store.advance_version(version);
        state.store.compact(version);
    });
}
