//! Helm charts: load, coalesce values, render.
//!
//! ```text
//! bytes ──load_*()──▶ Chart ─┐
//!                            ├──prepare()──▶ Prepared ──render()──▶ text
//! -f, --set, … ─────▶ Value ─┘
//! ```

mod chart;
mod coalesce;
mod dependencies;
mod error;
mod generation;
mod go;
mod load;
mod metadata;
mod prepare;
mod schema;
mod source;
mod strvals;
mod tree;
mod values;
mod version;
mod warning;

pub use chart::{Chart, Crd, File, Lock};
pub use error::{ArchiveError, ChartError, LayerError, SourceError, ValuesError};
pub use generation::Generation;
pub use load::ignore::IgnoreError;
pub use load::{Loaded, load_archive, load_files};
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use prepare::{PrepareOptions, Prepared, prepare};
pub use source::load_path;
pub use strvals::{Mode, ReadFile, SetError, set_values};
pub use values::{Layers, ReadValues, load_values, merge_maps};
pub use warning::{ValuesWarning, Warning};
