//! A sample of the matrix on a real API server: takes a play of it, a call and a fault, runs it, and compares with the run in which nothing went wrong.
//! What only a simulator can do (stale reads, events that never come) is left to it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mainstay_testkit::Random;
use mainstay_testkit::trial::Trial;
use serde_json::Value;

use crate::support::World;
use crate::support::at::{At, INSTALLED_KINDS, MESH_KINDS};
use crate::support::calls::{Call, OPERATOR, Sort, writes};
use crate::support::hazard::{Hazard, Strike, faults_of};
use crate::support::judge::{End, masked};
use crate::support::plays::{KNOWN, PLAYS, Play, each_play};
use crate::support::world::{Backing, named};

/// A trial per play.
macro_rules! trials {
    ($($name:ident),+ $(,)?) => {
        &[$(Trial {
            name: concat!("faults::", stringify!($name)),
            begin: || Box::pin(check(stringify!($name))),
        }),+]
    };
}

pub(crate) const TRIALS: &[Trial] = each_play!(trials);

/// Faults per play unless `MAINSTAY_MATRIX` says otherwise; the whole would take days.
const FEW: usize = 1;
const MANY: usize = 6;

fn share() -> usize {
    match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => MANY,
        Some(text) => text.parse().unwrap(),
        None => FEW,
    }
}

async fn check(name: &str) {
    let play = PLAYS.iter().find(|play| play.name == name).unwrap();
    let twin = perform(play, None).await;
    assert_eq!(twin.restless, [""; 0], "not quiet, without any fault");
    let mut wrong = Vec::new();
    let strikes = strikes(&twin.calls, name);
    for strike in &strikes {
        let run = perform(play, Some(*strike)).await;
        let complaint = complaint(&twin, &run);
        wrong.extend(complaint.map(|complaint| format!("{name} × {strike:?}: {complaint}")));
    }
    let (calls, runs) = (twin.calls.len(), strikes.len());
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Drawn by lot, the same for every run of this program: writes as often as all other calls together.
fn strikes(calls: &[Call], name: &str) -> Vec<Strike> {
    let seed = name
        .bytes()
        .fold(8, |sum: u64, byte| sum * 31 % 65_537 + u64::from(byte));
    let mut random = Random::new(seed);
    let count = |sort| calls.iter().filter(|call| call.sort == sort).count();
    let draw = |turn: usize| {
        let sort = match turn % 4 {
            0 | 2 => Sort::Write,
            1 => Sort::Read,
            _ => Sort::Watch,
        };
        let sort = if count(sort) == 0 { Sort::Write } else { sort };
        let faults = faults_of(sort);
        Strike {
            sort,
            number: 1 + random.below(count(sort)),
            fault: faults[random.below(faults.len())],
        }
    };
    (0..share()).map(draw).collect()
}

/// What one run came to.
struct Outcome {
    end: End,
    calls: Vec<Call>,
    /// Writes after all had come to rest.
    restless: Vec<String>,
    broken: Vec<String>,
    is_struck: bool,
}

/// One run; the operator is replaced when it dies.
async fn perform(play: &Play, strike: Option<Strike>) -> Outcome {
    let world = World::real().await;
    (play.before)(&world).await;
    world.settle().await;
    world.stop_operator().await;
    disguise(&world, play).await;
    let mark = world.mark();
    let mut is_struck = true;
    let steps = async {
        (play.act)(&world).await;
        world.rest().await;
    };
    match strike {
        None => {
            world.start_operator().await;
            steps.await;
        }
        Some(strike) => {
            let Backing::Real(real) = &world.backing else {
                panic!("no server")
            };
            let (client, struck) = Hazard::client(real.client(OPERATOR), strike);
            world.start_operator_with(client);
            tokio::pin!(steps);
            loop {
                tokio::select! {
                    () = &mut steps => break,
                    () = struck.died.notified() => world.restart_operator().await,
                }
            }
            is_struck = struck.happened.load(Ordering::Relaxed);
        }
    }
    let calls = world.calls(&mark);
    let mark = world.mark();
    world.pass(Duration::from_secs(1)).await;
    let after = world.calls(&mark);
    let outcome = Outcome {
        end: masked(objects(&world).await),
        calls,
        restless: writes(&after).into_iter().map(str::to_owned).collect(),
        broken: world.promises.broken(),
        is_struck,
    };
    if world.get(&At::cluster("Namespace", KNOWN)).await.is_some() {
        world.label(KNOWN, "istio.io/rev=").await;
    }
    world.end().await;
    outcome
}

fn complaint(twin: &Outcome, run: &Outcome) -> Option<String> {
    if !run.is_struck {
        return Some("that call was never made".into());
    }
    if !run.broken.is_empty() {
        return Some(format!("promises broken: {}", run.broken.join("; ")));
    }
    if let Some(difference) = twin.end.difference(&run.end) {
        return Some(format!("another end: {difference}"));
    }
    (!run.restless.is_empty()).then(|| format!("not quiet: {:?}", run.restless))
}

/// What there is of the mesh.
async fn objects(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for kind in MESH_KINDS {
        let found = world.list(kind, "").await;
        all.extend(found.into_iter().map(|object| named(kind, object)));
    }
    for kind in INSTALLED_KINDS {
        let found = world.list(kind, "managed-by=sail-operator").await;
        all.extend(found.into_iter().map(|object| named(kind, object)));
    }
    all
}

/// Makes what is installed look as the play wants it: nothing else may write what it replaces.
async fn disguise(world: &World, play: &Play) {
    for kind in INSTALLED_KINDS {
        for object in world.list(kind, "managed-by=sail-operator").await {
            let object = named(kind, object);
            let at = At::of(&object);
            match (play.disguise)(vec![object.clone()]).pop() {
                None => world.delete(&at).await,
                Some(other) if other != object => {
                    let (code, body) = world
                        .call("PUT", &at.path(), "application/json", Some(other))
                        .await;
                    assert_eq!(code, 200, "{at}: {body}");
                }
                Some(_) => {}
            }
        }
    }
}
