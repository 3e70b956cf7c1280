//! What templates find beside `.Values`: `.Chart`, `.Files`, `.Capabilities`, `.Release`. Takes plain data, gives values.

mod capabilities;
mod chart;
mod files;
mod glob;
mod versions;

pub use capabilities::{Capabilities, HelmVersion, KubeVersion};

pub(crate) use capabilities::object as capabilities;
pub(crate) use chart::object as chart;
pub(crate) use files::Files;
