//! Test clusters: one set of steps and checks for the simulator and for a real API server.
//!
//! ```text
//! scenario ──steps──▶ World ──▶ SimulatedCluster (virtual time, trace)
//!                       │       or RealCluster (processes, wall clock, audit log)
//!                       └─────▶ the operator, a task of this program
//! ```

#![allow(dead_code, reason = "each test program uses a part")]
#![allow(unreachable_pub, reason = "a module of each test program, not a crate")]

pub mod availability_log;
pub mod calls;
pub mod fault_scenarios;
pub mod faulty_client;
pub mod final_state;
pub mod fixtures;
pub mod history;
pub mod injector_history;
pub mod invalid_input;
pub mod invalid_object;
pub mod migration_checks;
pub mod path;
pub mod plan_checks;
pub mod real_cluster;
pub mod scale;
pub mod virtual_time;
pub mod world;

pub use world::World;
