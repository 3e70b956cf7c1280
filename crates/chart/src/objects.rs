//! Objects that are visible in templates: `.Chart`, `.Files`, `.Capabilities`, and the type of `.Values`.

mod capabilities;
mod chart;
mod files;
mod glob;
mod values;
mod versions;

pub use capabilities::{Capabilities, HelmVersion, KubeVersion, KubeVersionError};

pub(crate) use capabilities::object as capabilities;
pub(crate) use capabilities::{HELM3_VERSION_SET, HELM4_VERSION_SET};
pub(crate) use chart::object as chart;
pub(crate) use files::Files;
pub(crate) use values::{HELM3_VALUES, HELM4_VALUES};
