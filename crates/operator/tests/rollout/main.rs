//! Tests the delivery controllers on several simulated clusters in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a panic is how a test fails, and files to compare with"
)]

mod backoff;
mod cluster_changes;
mod end_state;
mod faults;
#[path = "../support/final_state.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod final_state;
mod fleet;
mod gateway;
#[path = "../support/gateway_api.rs"]
#[allow(unreachable_pub, reason = "a module of each test program, not a crate")]
mod gateway_api;
mod golden;
mod ingress;
mod objects;
mod outage;
#[path = "../support/path.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod path;
mod revisions;
mod scenarios;
#[path = "../support/sim_faults.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod sim_faults;
mod simulation;
#[path = "../support/virtual_time.rs"]
#[allow(unreachable_pub, reason = "a module of each test program, not a crate")]
mod virtual_time;
