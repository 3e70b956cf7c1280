//! The namespace into which an object installs.

/// A spec with the namespace into which its object installs.
pub(super) trait InstallNamespace {
    /// Returns the namespace.
    fn namespace(&self) -> &str;
}

impl InstallNamespace for mainstay_api::RevisionSpec {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl InstallNamespace for mainstay_api::CniSpec {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl InstallNamespace for mainstay_api::ZTunnelSpec {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}
