//! Initializer and service mesh into manifests: takes YAML or JSON text, gives the same text with only the needed
//! lines added. Knows nothing of files, clusters or terminals.
//!
//! ```text
//! text ──documents──▶ workloads ──select──▶ plan ──edits──▶ text, reports
//! ```
//!
//! *Laws:* injecting twice is injecting once; [`Mode::Uninject`] gives the original bytes back; changing an annotation
//! or a flag and running again gives what a fresh run over the original would; what is not edited is byte-identical.
//! *Absent on purpose:* a typed round trip. Unknown fields and kinds pass because nobody looks at them.

mod advice;
mod error;
pub mod grammar;
mod images;
mod locate;
mod options;
mod profile;
mod report;
mod run;
mod workload;

pub use error::InjectError;
pub use images::{ImageError, ImageProblem, Images};
pub use options::{Mode, Options, PodTemplatePath};
pub use profile::{LATER, Level, Profile, RFC, Role, Skip};
pub use report::{Action, Code, Finding, Outcome, Place, Reason, Report, Severity};
pub use run::run;
