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
mod load;
mod metadata;
mod prepare;
mod strvals;
mod values;
mod version;
mod warning;

pub use chart::{Chart, Crd, File, Lock};
pub use error::{ArchiveError, ChartError, LayerError, ValuesError};
pub use generation::Generation;
pub use load::{Loaded, load_archive, load_files};
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use prepare::Prepared;
pub use strvals::{Mode, SetError, set_values};
pub use values::{Layers, load_values, merge_maps};
pub use warning::{ValuesWarning, Warning};
