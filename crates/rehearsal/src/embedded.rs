//! The upgrade on the embedded cluster: takes an input and a plot, lets the operator do it in virtual time, gives the recording. Every
//! write goes through the API, and its controllers make every pod.

mod witness;

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

use crate::error::RehearsalError;
use crate::input::{Input, text};
use crate::limits::Limits;
use crate::recording::Recording;
use crate::scene::Scene;
use crate::wish::Plot;
use mainstay_harness::{ClusterOptions, SimulatedCluster};
use witness::Witness;

/// Between two looks at whether it is over.
const STEP: Duration = Duration::from_secs(5);
/// A full pass of the operator comes at least this often.
const FULL_PASS: Duration = Duration::from_mins(11);

/// The copy of an embedded cluster draws other identities than the cluster itself drew from the same seed.
const OWN_CHANCE: u64 = 0x7265_6865_6172_7365;

/// What is recorded, shared by whoever hears of something.
pub(crate) type Tape = Arc<Mutex<Recording>>;

/// The recording, whoever panicked with it.
pub(crate) fn lock(tape: &Tape) -> MutexGuard<'_, Recording> {
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays it.
pub(crate) fn play(
    catalog: Arc<Catalog>,
    input: &Input,
    (scene, plot, limits): (&Scene, &Plot, &Limits),
    seed: u64,
) -> Result<Recording, RehearsalError> {
    let start = limits.start;
    let options = ClusterOptions {
        seed: seed ^ OWN_CHANCE,
        start,
        ..ClusterOptions::default()
    };
    SimulatedCluster::run(catalog, &options, async |stage| {
        let later = set(&stage, input, (scene, plot)).await?;
        run(&stage, later, (scene, plot, limits)).await
    })
}

/// Puts everything on the stage, pods that were ready being so at once; gives what must wait for the present control plane.
async fn set(
    stage: &SimulatedCluster,
    input: &Input,
    (scene, plot): (&Scene, &Plot),
) -> Result<Vec<Value>, RehearsalError> {
    let present = scene.present();
    direct(stage, scene, |key, pace| {
        present.get(key).copied().unwrap_or(pace)
    });
    let mut objects = input.objects.clone();
    for object in &mut objects {
        let is_meant = object.pointer("/kind") == Some(&Value::from("Istio"))
            && object.pointer("/metadata/name").and_then(Value::as_str) == Some(plot.istio.name());
        if let (true, Value::Object(fields)) = (is_meant, object) {
            fields.insert("spec".into(), plot.before.clone());
        }
    }
    let absent = scene.absent();
    let waits = |object: &Value| key_of(object).is_some_and(|key| absent.contains(&key));
    let (later, now): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(waits);
    stage.sim().with(|state| load(state, now));
    stage.sim().settle();
    if !plot.wanted.spec.namespace.is_empty() {
        stage
            .create_namespace(&plot.wanted.spec.namespace, Value::Null)
            .await?;
    }
    stage.sleep(STEP).await;
    Ok(later)
}

/// Which workload an object is.
fn key_of(object: &Value) -> Option<WorkloadKey> {
    Some(WorkloadKey::new(
        text(object, "/metadata/namespace"),
        WorkloadKind::from_name(text(object, "/kind"))?,
        text(object, "/metadata/name"),
    ))
}

/// Tells pods that get their node from now on how long to take.
fn direct(
    stage: &SimulatedCluster,
    scene: &Scene,
    pace: impl Fn(&WorkloadKey, Option<Duration>) -> Option<Duration>,
) {
    stage.sim().with(|state| {
        state.scripts.clear();
        state
            .scripts
            .set_default(Script::ready_after(scene.control_plane));
        for (key, workload) in &scene.workloads {
            let ready = pace(key, workload.pace.ready);
            let script = ready.map_or_else(Script::never_ready, Script::ready_after);
            state.scripts.add_workload(key.namespace(), key.name(), script);
        }
    });
}

async fn run(
    stage: &SimulatedCluster,
    later: Vec<Value>,
    (scene, plot, limits): (&Scene, &Plot, &Limits),
) -> Result<Recording, RehearsalError> {
    let tape: Tape = Arc::new(Mutex::new(Recording::new(plot.istio.name())));
    stage.sim().add_controller(Box::new(Witness::new(tape.clone())));
    let operator = stage.start_operator(Settings::default(), options(&tape, stage));
    rest(stage, &tape, limits.warm_up).await;
    if !later.is_empty() {
        stage.sim().with(|state| load(state, later));
        stage.sim().settle();
        stage.sleep(STEP).await;
        rest(stage, &tape, limits.warm_up).await;
    }
    direct(stage, scene, |_, pace| pace);
    lock(&tape).begin(stage.now());
    stage.sim().settle();
    replace_spec(stage, plot).await?;
    lock(&tape).rested = false;
    let end = stage.now().saturating_add(limits.most).unwrap_or(Timestamp::MAX);
    let rested = loop {
        stage.sleep(STEP).await;
        let last = lock(&tape).last.unwrap_or(stage.now());
        let quiet = Duration::try_from(stage.now().duration_since(last)).unwrap_or_default();
        if quiet >= limits.quiet {
            break true;
        }
        if stage.now() >= end {
            break false;
        }
    };
    let mut recording = {
        let mut tape = lock(&tape);
        tape.rested = rested;
        tape.clone()
    };
    // The last look at everything gives the finale.
    stage.sleep(FULL_PASS).await;
    recording.finale = lock(&tape).finale.clone();
    operator.stop().await?;
    Ok(recording)
}

/// Waits until the operator has nothing to do.
async fn rest(stage: &SimulatedCluster, tape: &Tape, most: Duration) {
    let end = stage.now().saturating_add(most).unwrap_or(Timestamp::MAX);
    loop {
        lock(tape).rested = true;
        stage.sleep(STEP).await;
        if lock(tape).rested || stage.now() >= end {
            return;
        }
    }
}

async fn replace_spec(stage: &SimulatedCluster, plot: &Plot) -> Result<(), RehearsalError> {
    let path = format!("/apis/sailoperator.io/v1/istios/{}", plot.istio.name());
    let mut object = stage.get(&path).await?.ok_or(RehearsalError::NoIstio)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("spec".into(), plot.after.clone());
    }
    stage.replace(&path, &object).await?;
    Ok(())
}

fn options(tape: &Tape, stage: &SimulatedCluster) -> Options {
    let inspected = tape.clone();
    Options {
        observer: Arc::new(Ear {
            tape: tape.clone(),
            clock: stage.clock(),
        }),
        inspect: Some(Arc::new(move |snapshot, plan| {
            let mut tape = lock(&inspected);
            if !plan.is_empty() {
                tape.rested = false;
            }
            if tape.began.is_none() {
                tape.note_revisions(snapshot);
            }
            tape.inspect(snapshot, plan);
            if plan.subject == Subject::istio(&tape.istio) && plan.is_empty() {
                tape.close(snapshot);
            }
        })),
        ..Options::default()
    }
}

/// Hears what the operator did.
struct Ear {
    tape: Tape,
    clock: mainstay_operator::Clock,
}

impl Observer for Ear {
    fn report(&self, report: &Report<'_>) {
        if let Report::Reconciled { plan, outcome, .. } = report {
            match outcome {
                Outcome::Done => lock(&self.tape).carried_out(plan, self.clock.now()),
                Outcome::Failed(why) => lock(&self.tape).refused(plan, why),
                _ => {}
            }
        }
    }
}
