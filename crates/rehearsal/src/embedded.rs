//! Runs the upgrade with the operator on an embedded cluster in virtual time. All writes use the API, and
//! the cluster's controllers create the pods.

mod pod_observer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mainstay_catalog::Catalog;
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use mainstay_mesh::{Settings, Subject};
use mainstay_operator::{Observer, Options, Outcome, Report};
use mainstay_sim::script::Script;
use mainstay_sim::snapshot::load;
use serde_json::Value;

use crate::cluster_model::ClusterModel;
use crate::error::RehearsalError;
use crate::input::text;
use crate::recording::Recording;
use crate::rehearse::Simulation;
use crate::request::PlannedUpgrade;
use mainstay_harness::{ClusterOptions, SimulatedCluster};
use pod_observer::PodObserver;

/// Interval between checks for completion.
const STEP: Duration = Duration::from_secs(5);
/// Upper bound of the operator's resync interval.
const FULL_PASS: Duration = Duration::from_mins(11);

/// Constant that is combined with the seed. If the input was taken from an embedded cluster with the same
/// seed, UIDs must differ.
const SEED_SALT: u64 = 0x7265_6865_6172_7365;

/// Recording shared by the observers.
pub(crate) type SharedRecording = Arc<Mutex<Recording>>;

/// Locks the recording, even if it is poisoned.
pub(crate) fn lock(recording: &SharedRecording) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the rehearsal and returns its recording.
pub(crate) fn run(
    catalog: Arc<Catalog>,
    simulation: Simulation<'_>,
    seed: u64,
) -> Result<Recording, RehearsalError> {
    let start = simulation.limits.start;
    let options = ClusterOptions {
        seed: seed ^ SEED_SALT,
        start,
        // Concurrent renders finish in any order, but a report must be reproducible.
        max_concurrent: 1,
        ..ClusterOptions::default()
    };
    SimulatedCluster::run(catalog, &options, async |cluster| {
        let deferred = load_input(&cluster, simulation).await?;
        upgrade(&cluster, deferred, simulation).await
    })
}

/// Loads the input. Pods that were ready become ready immediately. Returns the objects to create once the
/// current control plane is running.
async fn load_input(
    cluster: &SimulatedCluster,
    simulation: Simulation<'_>,
) -> Result<Vec<Value>, RehearsalError> {
    let Simulation {
        input,
        model,
        planned,
        ..
    } = simulation;
    let present = model.current_readiness();
    set_readiness(cluster, model, |key, readiness| {
        present.get(key).copied().unwrap_or(readiness)
    });
    let mut objects: Vec<Value> = input.all().collect();
    for object in &mut objects {
        let is_target = object.pointer("/kind") == Some(&Value::from("Istio"))
            && object.pointer("/metadata/name").and_then(Value::as_str) == Some(planned.istio.name());
        if let (true, Value::Object(fields)) = (is_target, object) {
            fields.insert("spec".into(), planned.before.clone());
        }
    }
    let absent = model.workloads_without_pods();
    let is_deferred = |object: &Value| key_of(object).is_some_and(|key| absent.contains(&key));
    let (deferred, now): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_deferred);
    cluster.sim().with(|state| load(state, now));
    cluster.sim().settle();
    if !planned.target.spec.namespace.is_empty() {
        cluster
            .create_namespace(&planned.target.spec.namespace, Value::Null)
            .await?;
    }
    cluster.sleep(STEP).await;
    Ok(deferred)
}

fn key_of(object: &Value) -> Option<WorkloadKey> {
    Some(WorkloadKey::new(
        text(object, "/metadata/namespace"),
        WorkloadKind::from_name(text(object, "/kind"))?,
        text(object, "/metadata/name"),
    ))
}

/// Sets the readiness times of pods that are scheduled from now on.
fn set_readiness(
    cluster: &SimulatedCluster,
    model: &ClusterModel,
    readiness: impl Fn(&WorkloadKey, Option<Duration>) -> Option<Duration>,
) {
    cluster.sim().with(|state| {
        state.scripts.clear();
        state
            .scripts
            .set_default(Script::ready_after(model.control_plane));
        for (key, workload) in &model.workloads {
            let ready = readiness(key, workload.readiness.ready);
            let script = ready.map_or_else(Script::never_ready, Script::ready_after);
            state.scripts.add_workload(key.namespace(), key.name(), script);
        }
    });
}

async fn upgrade(
    cluster: &SimulatedCluster,
    deferred: Vec<Value>,
    simulation: Simulation<'_>,
) -> Result<Recording, RehearsalError> {
    let Simulation {
        model,
        planned,
        limits,
        ..
    } = simulation;
    let recording: SharedRecording = Arc::new(Mutex::new(Recording::new(planned.istio.name())));
    cluster
        .sim()
        .add_controller(Box::new(PodObserver::new(recording.clone())));
    let operator = cluster.start_operator(Settings::default(), options(&recording, cluster));
    wait_idle(cluster, &recording, limits.warm_up).await;
    if !deferred.is_empty() {
        cluster.sim().with(|state| load(state, deferred));
        cluster.sim().settle();
        cluster.sleep(STEP).await;
        wait_idle(cluster, &recording, limits.warm_up).await;
    }
    set_readiness(cluster, model, |_, readiness| readiness);
    lock(&recording).start(cluster.now());
    cluster.sim().settle();
    let generation = replace_spec(cluster, planned).await?;
    lock(&recording).expect_generation(generation);
    lock(&recording).settled = false;
    let end = cluster.now().saturating_add(limits.max).unwrap_or(Timestamp::MAX);
    let settled = loop {
        cluster.sleep(STEP).await;
        let last = lock(&recording).last.unwrap_or(cluster.now());
        let idle = Duration::try_from(cluster.now().duration_since(last)).unwrap_or_default();
        if idle >= limits.idle {
            break true;
        }
        if cluster.now() >= end {
            break false;
        }
    };
    let mut result = {
        let mut recording = lock(&recording);
        recording.settled = settled;
        recording.clone()
    };
    // The final state is recorded when the operator plans the Istio at its next resync.
    cluster.sleep(FULL_PASS).await;
    result.final_state = lock(&recording).final_state.clone();
    operator.stop().await?;
    Ok(result)
}

/// Waits until the operator is idle, but at most `max`.
async fn wait_idle(cluster: &SimulatedCluster, recording: &SharedRecording, max: Duration) {
    let end = cluster.now().saturating_add(max).unwrap_or(Timestamp::MAX);
    loop {
        lock(recording).settled = true;
        cluster.sleep(STEP).await;
        if lock(recording).settled || cluster.now() >= end {
            return;
        }
    }
}

/// Writes the new spec; returns the generation of the Istio.
async fn replace_spec(cluster: &SimulatedCluster, planned: &PlannedUpgrade) -> Result<i64, RehearsalError> {
    let path = format!("/apis/sailoperator.io/v1/istios/{}", planned.istio.name());
    let mut object = cluster.get(&path).await?.ok_or(RehearsalError::NoIstio)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("spec".into(), planned.after.clone());
    }
    let written = cluster.replace(&path, &object).await?;
    let generation = written.pointer("/metadata/generation");
    Ok(generation.and_then(Value::as_i64).unwrap_or_default())
}

fn options(recording: &SharedRecording, cluster: &SimulatedCluster) -> Options {
    let inspected = recording.clone();
    Options {
        observer: Arc::new(PlanRecorder {
            recording: recording.clone(),
            clock: cluster.clock(),
        }),
        inspect: Some(Arc::new(move |snapshot, plan| {
            let mut recording = lock(&inspected);
            if !plan.is_empty() {
                recording.settled = false;
            }
            if recording.started_at.is_none() {
                recording.record_revisions(snapshot);
            }
            recording.inspect(snapshot, plan);
            if plan.subject == Subject::istio(&recording.istio) && plan.is_empty() {
                recording.record_final_state(snapshot);
            }
        })),
        ..Options::default()
    }
}

/// Records the operator's actions.
struct PlanRecorder {
    recording: SharedRecording,
    clock: mainstay_operator::Clock,
}

impl Observer for PlanRecorder {
    fn report(&self, report: &Report<'_>) {
        if let Report::Reconciled { plan, outcome, .. } = report {
            match outcome {
                Outcome::Succeeded => lock(&self.recording).record_plan(plan, self.clock.now()),
                Outcome::Failed(why) => lock(&self.recording).record_rejection(plan, why),
                _ => {}
            }
        }
    }
}
