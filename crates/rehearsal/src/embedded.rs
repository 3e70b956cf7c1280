//! Runs the upgrade with the operator on an embedded cluster in virtual time. Every write uses the
//! API, and the cluster's controllers create every pod.

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

/// Combined with the seed: an input taken from an embedded cluster of the same seed must not get the same
/// UIDs.
const SEED_SALT: u64 = 0x7265_6865_6172_7365;

/// Recording shared by the observers.
pub(crate) type SharedRecording = Arc<Mutex<Recording>>;

/// Locks the recording, even if it is poisoned.
pub(crate) fn lock(recording: &SharedRecording) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the rehearsal.
pub(crate) fn run(
    catalog: Arc<Catalog>,
    simulation: Simulation<'_>,
    seed: u64,
) -> Result<Recording, RehearsalError> {
    let start = simulation.limits.start;
    let options = ClusterOptions {
        seed: seed ^ SEED_SALT,
        start,
        // Concurrent renders finish in any order; a report must be reproducible.
        max_concurrent: 1,
        ..ClusterOptions::default()
    };
    SimulatedCluster::run(catalog, &options, async |stage| {
        let deferred = load_input(&stage, simulation).await?;
        upgrade(&stage, deferred, simulation).await
    })
}

/// Loads the input; pods that were ready are ready at once. Returns the objects that must be created after
/// the current control plane is running.
async fn load_input(
    stage: &SimulatedCluster,
    simulation: Simulation<'_>,
) -> Result<Vec<Value>, RehearsalError> {
    let Simulation {
        input,
        model,
        planned,
        ..
    } = simulation;
    let present = model.current_readiness();
    set_readiness(stage, model, |key, pace| {
        present.get(key).copied().unwrap_or(pace)
    });
    let mut objects = input.objects.clone();
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
    stage.sim().with(|state| load(state, now));
    stage.sim().settle();
    if !planned.wanted.spec.namespace.is_empty() {
        stage
            .create_namespace(&planned.wanted.spec.namespace, Value::Null)
            .await?;
    }
    stage.sleep(STEP).await;
    Ok(deferred)
}

fn key_of(object: &Value) -> Option<WorkloadKey> {
    Some(WorkloadKey::new(
        text(object, "/metadata/namespace"),
        WorkloadKind::from_name(text(object, "/kind"))?,
        text(object, "/metadata/name"),
    ))
}

/// Sets the readiness time of pods that are scheduled from now on.
fn set_readiness(
    stage: &SimulatedCluster,
    model: &ClusterModel,
    pace: impl Fn(&WorkloadKey, Option<Duration>) -> Option<Duration>,
) {
    stage.sim().with(|state| {
        state.scripts.clear();
        state
            .scripts
            .set_default(Script::ready_after(model.control_plane));
        for (key, workload) in &model.workloads {
            let ready = pace(key, workload.readiness.ready);
            let script = ready.map_or_else(Script::never_ready, Script::ready_after);
            state.scripts.add_workload(key.namespace(), key.name(), script);
        }
    });
}

async fn upgrade(
    stage: &SimulatedCluster,
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
    stage
        .sim()
        .add_controller(Box::new(PodObserver::new(recording.clone())));
    let operator = stage.start_operator(Settings::default(), options(&recording, stage));
    wait_idle(stage, &recording, limits.warm_up).await;
    if !deferred.is_empty() {
        stage.sim().with(|state| load(state, deferred));
        stage.sim().settle();
        stage.sleep(STEP).await;
        wait_idle(stage, &recording, limits.warm_up).await;
    }
    set_readiness(stage, model, |_, pace| pace);
    lock(&recording).begin(stage.now());
    stage.sim().settle();
    replace_spec(stage, planned).await?;
    lock(&recording).settled = false;
    let end = stage.now().saturating_add(limits.max).unwrap_or(Timestamp::MAX);
    let settled = loop {
        stage.sleep(STEP).await;
        let last = lock(&recording).last.unwrap_or(stage.now());
        let quiet = Duration::try_from(stage.now().duration_since(last)).unwrap_or_default();
        if quiet >= limits.quiet {
            break true;
        }
        if stage.now() >= end {
            break false;
        }
    };
    let mut result = {
        let mut recording = lock(&recording);
        recording.settled = settled;
        recording.clone()
    };
    // The final state is recorded when the operator plans the Istio at its next resync.
    stage.sleep(FULL_PASS).await;
    result.final_state = lock(&recording).final_state.clone();
    operator.stop().await?;
    Ok(result)
}

/// Waits until the operator is idle.
async fn wait_idle(stage: &SimulatedCluster, recording: &SharedRecording, max: Duration) {
    let end = stage.now().saturating_add(max).unwrap_or(Timestamp::MAX);
    loop {
        lock(recording).settled = true;
        stage.sleep(STEP).await;
        if lock(recording).settled || stage.now() >= end {
            return;
        }
    }
}

async fn replace_spec(stage: &SimulatedCluster, planned: &PlannedUpgrade) -> Result<(), RehearsalError> {
    let path = format!("/apis/sailoperator.io/v1/istios/{}", planned.istio.name());
    let mut object = stage.get(&path).await?.ok_or(RehearsalError::NoIstio)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("spec".into(), planned.after.clone());
    }
    stage.replace(&path, &object).await?;
    Ok(())
}

fn options(recording: &SharedRecording, stage: &SimulatedCluster) -> Options {
    let inspected = recording.clone();
    Options {
        observer: Arc::new(PlanRecorder {
            recording: recording.clone(),
            clock: stage.clock(),
        }),
        inspect: Some(Arc::new(move |snapshot, plan| {
            let mut recording = lock(&inspected);
            if !plan.is_empty() {
                recording.settled = false;
            }
            if recording.started_at.is_none() {
                recording.note_revisions(snapshot);
            }
            recording.inspect(snapshot, plan);
            if plan.subject == Subject::istio(&recording.istio) && plan.is_empty() {
                recording.close(snapshot);
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
