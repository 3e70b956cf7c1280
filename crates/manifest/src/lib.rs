//! Converts `IstioOperator` files and profiles to Kubernetes objects. Pure: the caller provides profiles
//! and charts; no files are read or written.
//!
//! ```text
//! files, --set ─┐
//!               ├─merge─▶ Merged ─translate─▶ Translated ─values─▶ ChartInput ─render─▶ objects
//! profile ──────┘
//! objects ─settings─▶ objects ─overlays─▶ Rendered
//! ```
//!
//! [`generate`] runs all stages. Problems are collected as [`Diagnostics`] with path, value, location and
//! hint.
#![allow(clippy::similar_names, reason = "patch and path are the established terms")]

mod addons;
mod component;
mod confine;
pub mod controller;
mod diagnostic;
mod features;
mod generate;
mod installation;
pub mod limits;
mod merge;
mod object;
mod overlay;
mod package;
mod path;
mod profile;
mod render;
mod request;
mod schema;
mod set;
mod settings;
mod source;
mod strategic;
mod translate;
mod validate;
mod values;

pub use component::ComponentName;
pub use diagnostic::{Diagnostic, Diagnostics, Location, Severity};
pub use generate::{ComponentObjects, Rendered, configuration, generate, translated_configuration};
pub use installation::{
    CanonicalWebhook, ChangedObject, ControlPlane, DefaultTag, DiffOptions, DiffOptionsError,
    EligibilityFinding, FieldDifference, InstallationPlan, LiveTag, Month, NetworkSettings, ObjectDifference,
    ObjectSelector, Overlap, Package, PlannedComponent, Schedule, SkippedComponent, TagError, TagRequest,
    UpgradeRequest, add_default_tag, check_network, check_upgrade, check_webhooks, compare_object_sets,
    compare_values, deactivate, decide_default_tag, find_overlaps, is_end_of_life, platform_file,
    tag_objects,
};
pub use merge::{install_package_path, select};
pub use object::{Object, compare_objects};
pub use package::{CatalogPackage, Charts, Minor, PackageError, Profiles};
pub use path::{Pair, Path, PathError, Segment, Selector};
pub use render::parse_objects as parse_manifest;
pub use request::{GatewayLists, Request};
pub use set::{SetError, SetExpression};
pub use source::InputFile;
