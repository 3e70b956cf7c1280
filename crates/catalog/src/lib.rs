//! Installable Istio versions and their charts. Does not access clusters, networks or the environment, and
//! does not render.
//!
//! ```text
//! source module ──derive_installer()──▶ release ──derive_operator()──▶ operator  (fetching charts)
//! embedded pack + directories ──Catalog──▶ versions, aliases, charts, profiles     (at run time)
//! ```
//!
//! ```
//! # fn main() -> Result<(), mainstay_catalog::CatalogError> {
//! use mainstay_catalog::{Catalog, Flavour};
//! let catalog = Catalog::embedded()?;
//! if let Ok(version) = catalog.resolve("v1.29-latest") {
//!     let files = catalog.chart(&version, Flavour::Installer, "istiod")?;
//!     assert!(files.contains_key("Chart.yaml"));
//! }
//! # Ok(())
//! # }
//! ```

mod catalog;
pub mod derive;
mod directory;
mod error;
mod flavour;
mod lock;
mod names;
pub mod pack;
mod store;
mod version;

pub use catalog::{AliasChange, Catalog, Installable, Origin};
pub use derive::{derive_installer, derive_operator, release_from_charts};
pub use error::CatalogError;
pub use flavour::Flavour;
pub use lock::{Pin, parse_lock};
pub use names::{VersionName, VersionState};
pub use store::{Note, write_version};
pub use version::Version;
