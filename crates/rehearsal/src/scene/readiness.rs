//! How long pods take: takes pods as they were observed, gives each workload a time drawn from its own, a wished one, or the default.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::workload::WorkloadKey;
use mainstay_sim::Random;
use serde_json::Value;

use super::{Pod, Scene, Workload};
use crate::input::{at, text};
use crate::wish::Wish;

/// A pod that is not ready so long after it was made will not be.
const HOPELESS: Duration = Duration::from_mins(5);

/// How long pods take until they are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Nothing: never.
    pub(crate) ready: Option<Duration>,
    /// Whether that was observed.
    pub(crate) observed: bool,
}

/// What pods told.
pub(super) struct Observed {
    taken: Option<Timestamp>,
    times: BTreeMap<WorkloadKey, Vec<Duration>>,
    hopeless: BTreeMap<WorkloadKey, usize>,
}

impl Observed {
    pub(super) fn new(taken: Option<Timestamp>) -> Self {
        Self {
            taken,
            times: BTreeMap::new(),
            hopeless: BTreeMap::new(),
        }
    }

    pub(super) fn see(&mut self, pod: &Pod, object: &Value) {
        let Some(key) = pod.workload.as_ref().filter(|_| !pod.finished && !pod.leaving) else {
            return;
        };
        let created: Option<Timestamp> = text(object, "/metadata/creationTimestamp").parse().ok();
        let Some(created) = created else {
            return;
        };
        match ready_condition(object) {
            Ready::Since(ready) if !restarted(object) => {
                let took = Duration::try_from(ready.duration_since(created)).unwrap_or_default();
                self.times.entry(key.clone()).or_default().push(took);
            }
            Ready::No if self.is_old(created) => {
                *self.hopeless.entry(key.clone()).or_default() += 1;
            }
            Ready::Since(_) | Ready::Untold | Ready::No => {}
        }
    }

    fn is_old(&self, created: Timestamp) -> bool {
        let age = self.taken.map(|taken| taken.duration_since(created));
        age.and_then(|age| Duration::try_from(age).ok())
            .is_some_and(|age| age >= HOPELESS)
    }

    /// Gives every workload its pace, in a fixed order of draws.
    pub(super) fn settle(mut self, scene: &mut Scene, wish: &Wish) {
        let mut random = Random::new(wish.seed);
        for (key, workload) in &mut scene.workloads {
            let drawn = random.next_u64();
            workload.pace = self.pace(key, workload, wish, drawn);
        }
        let istiods = scene.workloads.iter().filter(|(key, _)| is_istiod(key));
        let times =
            istiods.filter_map(|(_, workload)| workload.pace.ready.filter(|_| workload.pace.observed));
        scene.control_plane = times.max().unwrap_or(wish.readiness);
    }

    fn pace(&mut self, key: &WorkloadKey, workload: &Workload, wish: &Wish, drawn: u64) -> Pace {
        if let Some(said) = wish
            .readiness_of
            .get(&format!("{}/{}", key.namespace(), key.name()))
        {
            return Pace {
                ready: *said,
                observed: false,
            };
        }
        if let Some(times) = self.times.get_mut(key) {
            times.sort_unstable();
            let at = usize::try_from(drawn).unwrap_or_default() % times.len().max(1);
            return Pace {
                ready: times.get(at).copied(),
                observed: true,
            };
        }
        let hopeless = self.hopeless.get(key).copied().unwrap_or(0);
        if workload.replicas > 0 && hopeless > 0 {
            return Pace {
                ready: None,
                observed: true,
            };
        }
        Pace {
            ready: Some(around(wish.readiness, drawn)),
            observed: false,
        }
    }
}

fn is_istiod(key: &WorkloadKey) -> bool {
    key.name() == "istiod" || key.name().starts_with("istiod-")
}

/// Between half and one and a half of a time, in whole tenths of a second: nobody is as regular as a default.
fn around(time: Duration, drawn: u64) -> Duration {
    let tenths = u64::try_from(time.as_millis() / 100).unwrap_or(0);
    let spread = drawn % (tenths + 1);
    Duration::from_millis((tenths / 2 + spread) * 100)
}

/// Whether a pod is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// It is, since then.
    Since(Timestamp),
    /// It is, and does not tell since when.
    Untold,
    /// It is not.
    No,
}

pub(super) fn ready_condition(pod: &Value) -> Ready {
    let conditions = at(pod, "/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True");
    let since = |condition: &Value| text(condition, "/lastTransitionTime").parse();
    ready.map_or(Ready::No, |condition| {
        since(condition).map_or(Ready::Untold, Ready::Since)
    })
}

fn restarted(pod: &Value) -> bool {
    let statuses = at(pod, "/status/containerStatuses").and_then(Value::as_array);
    let mut statuses = statuses.into_iter().flatten();
    statuses.any(|status| status.get("restartCount").and_then(Value::as_i64).unwrap_or(0) > 0)
}
