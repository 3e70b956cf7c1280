//! Input of a generation.

use std::fmt;

use crate::package::{Charts, Profiles};
use crate::source::InputFile;

/// Rule for combining the lists of gateways of two layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayLists {
    /// Gateways with the same name are merged; others are added.
    #[default]
    MergeByName,
    /// The later list replaces the earlier one, as in istioctl 1.24 and later.
    Replace,
}

/// All inputs that determine the generated objects.
#[derive(Clone)]
pub struct Request<'a> {
    /// `-f` files, in order.
    pub files: Vec<InputFile>,
    /// `--set` expressions, in order; they override the files.
    pub sets: Vec<String>,
    /// `--revision`; `default` counts as unset.
    pub revision: Option<String>,
    /// Whether validation errors become warnings.
    pub force: bool,
    /// Rule for combining lists of gateways.
    pub gateway_lists: GatewayLists,
    /// Kubernetes version of the cluster, such as `v1.32.1`. If `None`, the oldest supported version.
    pub kube_version: Option<String>,
    /// Whether objects that a value adds, and objects outside the namespaces of their component, are errors.
    /// A controller sets this, because it writes objects with its own permissions.
    pub is_confined: bool,
    /// Source of profiles.
    pub profiles: &'a dyn Profiles,
    /// Source of charts.
    pub charts: &'a dyn Charts,
}

impl<'a> Request<'a> {
    /// Creates a request for the default profile from one source.
    #[must_use]
    pub fn new<P: Profiles + Charts>(package: &'a P) -> Self {
        Self {
            files: Vec::new(),
            sets: Vec::new(),
            revision: None,
            force: false,
            gateway_lists: GatewayLists::default(),
            kube_version: None,
            is_confined: false,
            profiles: package,
            charts: package,
        }
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("files", &self.files)
            .field("sets", &self.sets)
            .field("revision", &self.revision)
            .field("force", &self.force)
            .field("gateway_lists", &self.gateway_lists)
            .field("kube_version", &self.kube_version)
            .field("is_confined", &self.is_confined)
            .finish_non_exhaustive()
    }
}
