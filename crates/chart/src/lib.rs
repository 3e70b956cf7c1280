//! Helm charts: load, coalesce values, render.
//!
//! ```text
//! bytes ──load_*()──▶ Chart ─┐
//!                            ├──prepare()──▶ Prepared ──render()──▶ text
//! -f, --set, … ─────▶ Value ─┘
//! ```

mod chart;
mod error;
mod generation;
mod go;
mod metadata;
mod prepare;
mod warning;

pub use chart::{Chart, Crd, File, Lock};
pub use error::{ArchiveError, ChartError};
pub use generation::Generation;
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use prepare::Prepared;
pub use warning::{ValuesWarning, Warning};
