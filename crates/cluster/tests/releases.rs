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
use support::Scene;

#[path = "support/drift.rs"]
mod drift;
#[path = "support/twice.rs"]
mod twice;

#[tokio::test]
async fn the_second_time_nothing_is_written() {
    let mut scene = Scene::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let tally = twice::run(&mut scene, case_count(20), 5).await;
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}

#[tokio::test]
async fn what_others_do_is_undone_or_left() {
    let mut scene = Scene::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let tally = drift::run(&mut scene).await;
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
}
