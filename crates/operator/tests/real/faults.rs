//! A sample of the matrix on a real API server: takes a play of it, a call and a fault, runs it, and compares with the run in which nothing went wrong.
//! Every fault at every call is left to the simulator.

mod control;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use mainstay_testkit::Random;
use mainstay_testkit::suite::TestCase;
use serde_json::Value;

use crate::support::World;
use crate::support::at::{At, INSTALLED_KINDS, MESH_KINDS};
use crate::support::calls::{Call, writes};
use crate::support::diary::Diary;
use crate::support::hazard::{Hazard, KINDS, Strike};
use crate::support::judge::{End, by_type, masked, text_of};
use crate::support::plays::{Play, each_move, each_play, play};
use crate::support::world::named;

/// A trial per play.
macro_rules! test_cases {
    ($($name:ident),+ $(,)?) => {
        &[$(TestCase {
            name: concat!("faults::", stringify!($name)),
            start: || Box::pin(check(stringify!($name))),
        }),+]
    };
}

pub(crate) const TEST_CASES: &[TestCase] = each_play!(test_cases);

/// Those in which workloads move: real istiods inject.
pub(crate) const MOVES: &[TestCase] = each_move!(test_cases);

/// Whether broken promises would be seen.
pub(crate) const CONTROL: &[TestCase] = &[TestCase {
    name: "faults::moves_that_break_promises_are_seen",
    start: || Box::pin(control::moves_that_break_promises_are_seen()),
}];

/// Faults per play unless `MAINSTAY_MATRIX` says otherwise; the whole would take days.
const FEW: usize = 1;
const MANY: usize = KINDS.len();

fn share() -> usize {
    match std::env::var("MAINSTAY_MATRIX").ok().as_deref() {
        Some("whole") => MANY,
        Some(text) => text.parse().unwrap(),
        None => FEW,
    }
}

/// Plays it without faults and then with each.
async fn check(name: &str) {
    let play = play(name);
    let twin = perform(play, None).await;
    assert_eq!(twin.broken, [""; 0], "{name}, without any fault");
    assert_eq!(twin.restless, [""; 0], "{name}, without any fault, is not quiet");
    let mut wrong = Vec::new();
    let draws = draws(&twin.calls, name);
    for draw in &draws {
        let complaint = strike_one(play, &twin, draw).await;
        wrong.extend(complaint.map(|complaint| format!("{name} × {complaint}")));
    }
    let (calls, runs) = (twin.calls.len(), draws.len());
    println!(
        "matrix {name}: {calls} calls, {runs} runs, {} as without faults",
        runs - wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The first of these that happens: a call that one run makes, another may do without. Gives what is wrong with the run.
async fn strike_one(play: &Play, twin: &Outcome, draw: &[Strike]) -> Option<String> {
    for strike in draw {
        println!("{} × {strike:?}", play.name);
        let run = AssertUnwindSafe(perform_struck(play, *strike));
        let complaint = match run.catch_unwind().await {
            Ok(run) if run.is_struck => complaint(twin, &run),
            Ok(_) => continue,
            Err(panic) => Some(format!("never got there: {}", text_of(&*panic))),
        };
        return complaint.map(|complaint| format!("{strike:?}: {complaint}"));
    }
    Some(format!("none of these calls was ever made: {draw:?}"))
}

/// Drawn by lot, the same for every run of this program: kind by kind, and of each a fault and a call; after it what to try if that call is never made,
/// at last a crash.
fn draws(calls: &[Call], name: &str) -> Vec<Vec<Strike>> {
    let seed = name
        .bytes()
        .fold(8, |sum: u64, byte| sum * 31 % 65_537 + u64::from(byte));
    let mut random = Random::new(seed);
    let first = random.below(KINDS.len());
    let count = |sort| calls.iter().filter(|call| call.sort == sort).count();
    let draw = |turn: usize| {
        // What is never read cannot be stale.
        let possible = KINDS[(first + turn) % KINDS.len()].iter();
        let mut possible: Vec<_> = possible.filter(|(sort, _)| count(*sort) > 0).collect();
        let drawn = random.below(possible.len().max(1));
        possible.rotate_left(drawn);
        let all = possible.into_iter().chain(&KINDS[0][..1]);
        let strikes = all.map(|(sort, fault)| Strike {
            sort: *sort,
            number: 1 + random.below(count(*sort)),
            fault: *fault,
        });
        strikes.collect()
    };
    (0..share()).map(draw).collect()
}

/// A run in which it strikes. One that ends before it comes to that call (what is told twice in one is told at once in another) is none of
/// those: then an earlier call is struck.
async fn perform_struck(play: &Play, mut strike: Strike) -> Outcome {
    loop {
        let run = perform(play, Some(strike)).await;
        if run.is_struck || strike.number == 1 {
            return run;
        }
        strike.number -= strike.number.div_ceil(8);
    }
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

/// One run.
async fn perform(play: &Play, strike: Option<Strike>) -> Outcome {
    let world = if play.moves {
        World::real_injecting().await
    } else {
        World::real().await
    };
    (play.before)(&world).await;
    world.settle().await;
    world.stop_operator().await;
    disguise(&world, play).await;
    let diary = Diary::begin(&world).await;
    let mark = world.mark();
    let is_struck = act(&world, play, strike).await;
    let calls = world.calls(&mark);
    let mark = world.mark();
    world.pass(Duration::from_secs(1)).await;
    let after = world.calls(&mark);
    let history = diary.close_unjudged(&world).await;
    let mut broken = [world.promises.broken(), history.broken_moves()].concat();
    if !play.destroys {
        broken.extend(history.lost_injectors());
    }
    let outcome = Outcome {
        end: masked(objects(&world).await),
        calls,
        restless: writes(&after).into_iter().map(str::to_owned).collect(),
        broken,
        is_struck,
    };
    world.end().await;
    outcome
}

/// The operator starts, somebody acts, all comes to rest; an operator that dies is replaced. Gives whether the strike happened.
async fn act(world: &World, play: &Play, strike: Option<Strike>) -> bool {
    let steps = async {
        (play.act)(world).await;
        world.rest().await;
    };
    let Some(strike) = strike else {
        world.start_operator().await;
        steps.await;
        return false;
    };
    let (client, struck) = Hazard::client(world.operator_client(), strike);
    world.start_operator_with(client);
    tokio::pin!(steps);
    loop {
        tokio::select! {
            () = &mut steps => return struck.happened.load(Ordering::Relaxed),
            () = struck.died.notified() => world.restart_operator().await,
        }
    }
}

fn complaint(twin: &Outcome, run: &Outcome) -> Option<String> {
    if !run.broken.is_empty() {
        return Some(format!("promises broken: {}", run.broken.join("; ")));
    }
    if let Some(difference) = twin.end.difference(&run.end) {
        return Some(format!("another end: {difference}"));
    }
    (!run.restless.is_empty()).then(|| format!("not quiet: {:?}", run.restless))
}

/// What there is of the mesh, and of the workloads of this play.
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
    let spaces = world.known_namespaces();
    for space in &spaces {
        all.extend(world.get(&At::cluster("Namespace", space)).await);
    }
    let apps = world.list("Deployment", "").await.into_iter();
    let apps = apps.filter(|app| spaces.iter().any(|space| app["metadata"]["namespace"] == **space));
    all.extend(apps.map(|app| named("Deployment", app)));
    all.iter().map(|object| by_type(world.anywhere(object))).collect()
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
