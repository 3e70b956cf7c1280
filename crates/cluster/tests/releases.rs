//! Installs releases of the real charts on the simulator: twice, over each other, and after edits of
//! other clients.

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
#[path = "support/reinstall.rs"]
mod reinstall;

#[tokio::test]
async fn a_second_install_writes_nothing() {
    let mut fixture = Fixture::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let counts = reinstall::run(&mut fixture, case_count(20), 5).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

#[tokio::test]
async fn edits_of_other_clients_are_reverted_or_kept() {
    let mut fixture = Fixture::new(Client::new(Cluster::default().connect("mainstay"), "default")).await;
    let counts = drift::run(&mut fixture).await;
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}
