//! Injects the Contrast initializer and service mesh into YAML or JSON text by adding only the necessary
//! lines. Does not depend on files, clusters or terminals.
//!
//! ```text
//! text ──split──▶ documents ──select──▶ pod templates ──plan──▶ edits ──splice──▶ text, reports
//! ```
//!
//! *Properties:* injection is idempotent; [`Mode::Uninject`] restores the original bytes of block YAML, and
//! the same objects in flow style and JSON (module `record`); a run after a change of an annotation or a flag
//! has the same result as a run over the original with that change; text that is not edited keeps its bytes.
//! Out of scope: typed (de)serialization of objects. Unknown fields and kinds are left unchanged.

mod advice;
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
mod request;
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
