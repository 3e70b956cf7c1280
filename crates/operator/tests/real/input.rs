//! A sample of invalid objects on a real API server.

use mainstay_testkit::Random;
use mainstay_testkit::suite::TestCase;

use crate::support::World;
use crate::support::invalid_input::try_all;
use crate::support::invalid_object;

pub(crate) const TEST_CASES: &[TestCase] = &[TestCase {
    name: "input::a_sample",
    start: || Box::pin(a_sample()),
}];

/// Sample sizes: objects sent to the server, and accepted objects that the operator reconciles.
const SENT: usize = 600;
const RECONCILED: usize = 12;

async fn a_sample() {
    let mut all = invalid_object::all();
    let mut random = Random::new(36);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.truncate(SENT);
    let world = World::real().await;
    let results = try_all(&world, &all, RECONCILED).await;
    world.end().await;
    results.conclude();
}
