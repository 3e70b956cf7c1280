//! Which Istio versions can be installed, and the chart bytes of each. Knows no cluster and renders nothing.

pub mod derive;
mod error;
mod flavour;
mod lock;
mod version;

pub use derive::{derive_installer, derive_operator};
pub use error::CatalogError;
pub use flavour::Flavour;
pub use lock::{Pin, parse_lock};
pub use version::Version;
