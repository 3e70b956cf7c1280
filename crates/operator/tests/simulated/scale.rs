//! Tests duration and writes of the migration of a large mesh on the simulator.

use std::time::Duration;

use crate::support::scale::{Size, upgrade};
use crate::support::virtual_time::run;

/// The scale test of the proposal.
#[test]
fn two_hundred_workloads_in_a_hundred_namespaces() {
    let size = Size {
        namespaces: 100,
        workloads: 200,
        batch: 10,
        readiness: Duration::from_secs(10),
        delay: Duration::from_secs(30),
    };
    let figures = run(upgrade(&size));
    println!("migration scale 200: {}", figures.summary());
    figures.check();
}
