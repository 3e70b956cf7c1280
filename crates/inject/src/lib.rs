//! Initializer and service mesh into manifests: takes YAML or JSON text, gives the same text with only the
//! needed lines added. Knows nothing of files, clusters or terminals.
//!
//! ```text
//! text ──documents──▶ workloads ──select──▶ plan ──edits──▶ text, reports
//! ```
//!
//! *Laws:* injecting twice is injecting once; [`Mode::Uninject`] gives the original bytes back; changing an
//! annotation or a flag and running again gives what a fresh run over the original would; what is not edited
//! is byte-identical. *Absent on purpose:* a typed round trip. Unknown fields and kinds pass because nobody
//! looks at them.

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
mod refusal;
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
