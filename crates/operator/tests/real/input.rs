//! Tests a sample of invalid objects on a real API server.

use mainstay_testkit::Random;
use mainstay_testkit::suite::TestCase;

use crate::support::World;
use crate::support::invalid_input::test_invalid_objects;
use crate::support::invalid_object;

pub(crate) const TEST_CASES: &[TestCase] = &[TestCase {
    name: "input::sampled_invalid_objects",
    start: || Box::pin(sampled_invalid_objects()),
}];

/// Sample sizes: number of objects sent to the server, and number of accepted objects that the operator
/// reconciles.
const SENT_OBJECTS: usize = 600;
const RECONCILED_OBJECTS: usize = 12;

async fn sampled_invalid_objects() {
    let mut all = invalid_object::all_invalid_objects();
    let mut random = Random::new(36);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.truncate(SENT_OBJECTS);
    let world = World::real().await;
    let results = test_invalid_objects(&world, &all, RECONCILED_OBJECTS).await;
    world.end().await;
    results.print_and_check();
}
