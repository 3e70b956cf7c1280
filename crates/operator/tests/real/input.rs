//! A sample of the bad objects on a real API server.

use mainstay_testkit::Random;
use mainstay_testkit::suite::TestCase;

use crate::support::World;
use crate::support::bad;
use crate::support::input::try_all;

pub(crate) const TEST_CASES: &[TestCase] = &[TestCase {
    name: "input::a_sample",
    start: || Box::pin(a_sample()),
}];

/// How many the server is asked about, and how many of those it accepts the operator sees.
const ASKED: usize = 600;
const SEEN: usize = 12;

async fn a_sample() {
    let mut all = bad::all();
    let mut random = Random::new(36);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.truncate(ASKED);
    let world = World::real().await;
    let fate = try_all(&world, &all, SEEN).await;
    world.end().await;
    fate.conclude();
}
