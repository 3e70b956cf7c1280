//! Tests the controller for `IstioOperator`s and its webhook on a simulated cluster in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and values become parts of objects"
)]

mod confinement;
mod definition;
mod faults;
#[path = "../support/final_state.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod final_state;
#[path = "../support/path.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod path;
mod scenarios;
#[path = "../support/sim_faults.rs"]
#[allow(dead_code, unreachable_pub, reason = "each test program uses a part")]
mod sim_faults;
mod simulated;
#[path = "../support/virtual_time.rs"]
#[allow(unreachable_pub, reason = "a module of each test program, not a crate")]
mod virtual_time;
mod webhook;
mod world;
