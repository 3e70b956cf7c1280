//! The objects that templates see besides `.Values`: `.Chart`, `.Files` and `.Capabilities`.

mod capabilities;
mod chart;
mod files;
mod glob;
mod versions;

pub use capabilities::{Capabilities, HelmVersion, KubeVersion, KubeVersionError};

pub(crate) use capabilities::object as capabilities;
pub(crate) use chart::object as chart;
pub(crate) use files::Files;
