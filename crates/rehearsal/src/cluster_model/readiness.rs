//! Readiness time of each workload: requested, sampled from its observed pods, or the default.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use mainstay_mesh::workload::WorkloadKey;
use mainstay_sim::Random;
use serde_json::Value;

use super::{ClusterModel, Pod, Workload};
use crate::input::{at, text};
use crate::request::RehearsalRequest;

/// Age from which a pod that is not ready counts as never ready.
const NEVER_READY_AGE: Duration = Duration::from_mins(5);

/// Readiness of a workload's pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// Time from creation until a pod is ready. `None` if the pod never becomes ready.
    pub(crate) ready: Option<Duration>,
    /// Whether the time was observed.
    pub(crate) observed: bool,
}

/// Readiness times observed in the input's pods.
pub(super) struct Observed {
    taken: Option<Timestamp>,
    times: BTreeMap<WorkloadKey, Vec<Duration>>,
    never_ready: BTreeMap<WorkloadKey, usize>,
}

impl Observed {
    pub(super) fn new(taken: Option<Timestamp>) -> Self {
        Self {
            taken,
            times: BTreeMap::new(),
            never_ready: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, pod: &Pod, object: &Value) {
        let Some(key) = pod
            .workload
            .as_ref()
            .filter(|_| !pod.finished && !pod.terminating)
        else {
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
                *self.never_ready.entry(key.clone()).or_default() += 1;
            }
            Ready::Since(_) | Ready::SinceUnknown | Ready::No => {}
        }
    }

    fn is_old(&self, created: Timestamp) -> bool {
        let age = self.taken.map(|taken| taken.duration_since(created));
        age.and_then(|age| Duration::try_from(age).ok())
            .is_some_and(|age| age >= NEVER_READY_AGE)
    }

    /// Assigns a readiness time to every workload. Random numbers are drawn in a fixed order.
    pub(super) fn assign(mut self, model: &mut ClusterModel, request: &RehearsalRequest) {
        let mut random = Random::new(request.seed);
        for (key, workload) in &mut model.workloads {
            let drawn = random.next_u64();
            workload.readiness = self.readiness(key, workload, request, drawn);
        }
        let istiods = model.workloads.iter().filter(|(key, _)| is_istiod(key));
        let times = istiods
            .filter_map(|(_, workload)| workload.readiness.ready.filter(|_| workload.readiness.observed));
        model.control_plane = times.max().unwrap_or(request.readiness);
    }

    fn readiness(
        &mut self,
        key: &WorkloadKey,
        workload: &Workload,
        request: &RehearsalRequest,
        drawn: u64,
    ) -> Readiness {
        if let Some(requested) =
            request
                .readiness_overrides
                .get(&format!("{}/{}", key.namespace(), key.name()))
        {
            return Readiness {
                ready: *requested,
                observed: false,
            };
        }
        if let Some(times) = self.times.get_mut(key) {
            times.sort_unstable();
            let at = usize::try_from(drawn).unwrap_or_default() % times.len().max(1);
            return Readiness {
                ready: times.get(at).copied(),
                observed: true,
            };
        }
        let never_ready = self.never_ready.get(key).copied().unwrap_or(0);
        if workload.replicas > 0 && never_ready > 0 {
            return Readiness {
                ready: None,
                observed: true,
            };
        }
        Readiness {
            ready: Some(jittered(request.readiness, drawn)),
            observed: false,
        }
    }
}

fn is_istiod(key: &WorkloadKey) -> bool {
    key.name() == "istiod" || key.name().starts_with("istiod-")
}

/// Returns a time between 50 % and 150 % of `time` with a resolution of a tenth of a second, so that pods
/// without an observed time differ.
fn jittered(time: Duration, drawn: u64) -> Duration {
    let tenths = u64::try_from(time.as_millis() / 100).unwrap_or(0);
    let spread = drawn % (tenths + 1);
    Duration::from_millis((tenths / 2 + spread) * 100)
}

/// Readiness of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// Ready since this time.
    Since(Timestamp),
    /// Ready since an unknown time.
    SinceUnknown,
    /// Not ready.
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
        since(condition).map_or(Ready::SinceUnknown, Ready::Since)
    })
}

fn restarted(pod: &Value) -> bool {
    let statuses = at(pod, "/status/containerStatuses").and_then(Value::as_array);
    let mut statuses = statuses.into_iter().flatten();
    statuses.any(|status| status.get("restartCount").and_then(Value::as_i64).unwrap_or(0) > 0)
}
