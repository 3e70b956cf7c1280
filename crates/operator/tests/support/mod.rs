//! A world to try the operator in: one set of steps and questions, two things behind it (the simulator, a real API server).
//!
//! ```text
//! scenario ──steps──▶ World ──▶ Sim (paused time, virtual clock, trace)  or  Real (processes, wall clock, audit log)
//!                       ▲                     ▲
//!                       └──── questions       └──── the operator, a task of this program
//! ```

#![allow(dead_code, reason = "every test program uses its own share")]
#![allow(unreachable_pub, reason = "it is a room of each test, not a crate")]

pub mod at;
pub mod bad;
pub mod calls;
pub mod diary;
pub mod hazard;
pub mod history;
pub mod injectors;
pub mod input;
pub mod judge;
pub mod made;
pub mod movers;
pub mod operator;
pub mod plays;
pub mod real;
pub mod scale;
pub mod world;

pub use world::World;
