//! Releases of the real charts on the simulator: installed twice, over one another, and removed.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

mod support;

use kube::Client;
use mainstay_sim::Cluster;
use mainstay_testkit::case_count;
use support::Fixture;

#[path = "support/drift.rs"]
mod drift;
#[path = "support/twice.rs"]
mod twice;

#[tokio::test]
async fn the_second_time_nothing_is_written() {
    let mut fixture = Fixture::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let counts = twice::run(&mut fixture, case_count(20), 5).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

#[tokio::test]
async fn what_others_do_is_undone_or_left() {
    let mut fixture = Fixture::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let counts = drift::run(&mut fixture).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}
