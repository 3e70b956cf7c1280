//! Scripted sessions of the workload controllers, compared with stored transcripts. `BLESS=1` updates the
//! stored transcripts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

mod bounds;
mod deployments;
mod others;
mod services;
mod steps;
mod transcript;

use mainstay_sim::clock::Instant;
use serde_json::json;

use steps::{cluster, deploy, seconds, set_image};
use transcript::transcript;

#[test]
fn the_same_seed_produces_the_same_trace() {
    let run = |seed| {
        let cluster = cluster(seed);
        deploy(&cluster, &json!({"replicas": 5}));
        cluster.advance(seconds(7));
        set_image(&cluster, "v2");
        cluster.advance(seconds(20));
        let dump = transcript(&cluster, &["deployments.apps", "replicasets.apps", "pods"]);
        (cluster.trace(), dump, cluster.now())
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1).0, run(2).0);
    assert!(run(1).2 > Instant::default());
}
