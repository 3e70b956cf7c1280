//! Injects the Contrast initializer and service mesh into YAML or JSON text by adding only the necessary
//! lines. Does not depend on files, clusters or terminals.
//!
//! ```text
//! text ──documents──▶ workloads ──select──▶ plan ──edits──▶ text, reports
//! ```
//!
//! *Laws:* injecting twice is injecting once; [`Mode::Uninject`] restores the original bytes of block YAML,
//! and the same objects in flow style and JSON (module `record`); changing an annotation or a flag and
//! running again equals a fresh run over the original; text that is not edited keeps its bytes. Out of scope:
//! a typed round trip. Unknown fields and kinds pass unchanged.

mod advice;
mod ask;
mod conflict;
mod document;
mod editor;
mod error;
pub mod grammar;
mod images;
mod item;
mod lines;
mod locate;
mod mark;
mod options;
mod plan;
mod profile;
mod record;
mod rejection;
mod report;
mod run;
mod select;
mod semantic;
mod splice;
mod split;
mod tree;
mod undo;
mod workload;
mod write;

pub use error::InjectError;
pub use images::{ImageError, ImageProblem, Images};
pub use options::{Mode, Options, PodTemplatePath};
pub use profile::{LATER, Level, Profile, RFC, Role, Skip};
pub use report::{Action, Code, Finding, Outcome, Place, Reason, Report, Severity};
pub use run::run;
