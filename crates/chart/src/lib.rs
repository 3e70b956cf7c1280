//! Loads Helm charts, coalesces values and renders manifests, byte for byte as Helm 3 and Helm 4 do.
//!
//! ```text
//! bytes ──load_*()──▶ Chart ─┐
//!                            ├──prepare()──▶ Prepared ──render()──▶ Rendered ──sort_manifests()──▶ text
//! -f, --set, … ─────▶ Value ─┘
//! ```
//!
//! [`template`] performs all steps in one call. [`Dialect`] selects the Helm version.

mod budget;
mod chart;
mod coalesce;
pub mod confine;
mod dependencies;
mod dialect;
mod error;
mod functions;
mod go;
mod identity;
mod load;
mod manifest;
mod metadata;
mod objects;
mod prepare;
mod print;
mod render;
mod reproducible;
mod schema;
mod source;
mod strvals;
mod template;
mod tree;
mod values;
mod version;
mod warning;

pub use chart::{Chart, Crd, File, Lock};
pub use dialect::Dialect;
pub use error::{
    ArchiveError, CallbackError, ChartError, LayerError, SourceError, SourceLocation, ValuesError,
};
pub use identity::ObjectIdentity;
pub use load::fields::DecodeError;
pub use load::ignore::IgnoreError;
pub use load::{Loaded, load_archive, load_files, read_archive};
pub use manifest::{Head, Hook, HookEvent, Manifest, Manifests, sort_manifests};
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use objects::{Capabilities, HelmVersion, KubeVersion, KubeVersionError};
pub use prepare::{PrepareOptions, Prepared, prepare};
pub use print::{OutputFile, OutputKind, PostRenderer, PrintOptions};
pub use render::{Release, RenderOptions, Rendered, render};
pub use reproducible::{FixedHost, NotReproducible, render_reproducible};
pub use source::load_path;
pub use strvals::{Mode, ReadFile, SetError, set_values};
pub use template::{
    Output, RenderEnvironment, Request, release_name_from, template, template_files, write_template,
};
pub use values::{Layers, ReadValues, load_values, merge_maps};
pub use warning::{ValuesWarning, Warning};
