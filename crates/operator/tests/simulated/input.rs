//! Every field of every kind with something wrong in it, on the simulator.

use crate::faults::run;
use crate::support::World;
use crate::support::bad;
use crate::support::input::try_all;

/// All of them are shown to the server; the operator sees all that it accepts (`MAINSTAY_INPUT=whole`), or so many.
#[test]
fn every_field() {
    let most = match std::env::var("MAINSTAY_INPUT").ok().as_deref() {
        Some("whole") => usize::MAX,
        Some(text) => text.parse().unwrap(),
        None => 30,
    };
    run(async {
        let world = World::simulated().await;
        let fate = try_all(&world, &bad::all(), most).await;
        world.end().await;
        fate.conclude();
    });
}
