//! Names, variables and paths of each Contrast generation.

/// Every name that differs between generations of Contrast.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// What `--profile` calls it.
    pub name: &'static str,
    /// Where annotations are read; the earlier one wins.
    pub levels: &'static [Level],
    /// What makes `skip-initializer` skip.
    pub skip: Skip,
    /// Where the role `coordinator` is written in the pod template.
    pub role: Role,
    /// The volume that holds certificates.
    pub volume: &'static str,
    /// Where it is mounted.
    pub mount_path: &'static str,
    /// The medium of the volume, if not the node's own.
    pub volume_medium: Option<&'static str>,
    /// Whether the user's init containers get the mount as well.
    pub mount_in_init_containers: bool,
    /// Whether the user's containers get it read-only.
    pub mount_read_only: bool,
    /// What the environment variables of the service mesh start with.
    pub env_prefix: &'static str,
    /// The address of the coordinator; `{namespace}` stands for its namespace.
    pub coordinator_host: &'static str,
    /// The later generation's extras: probes, limits, capabilities of the initializer.
    pub extended: bool,
}

/// A place for annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `metadata` of the pod template (of the Pod itself for a Pod).
    Template,
    /// `metadata` of the object.
    Object,
}

/// What makes `skip-initializer` skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Being there; only `false` does not.
    Present,
    /// The word `true`.
    True,
}

/// Where a pod template says that it is the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// In its annotations.
    Annotation,
    /// In its labels.
    Label,
}

/// The spelling of RFC 005; the default.
pub static RFC: Profile = Profile {
    name: "rfc",
    levels: &[Level::Template, Level::Object],
    skip: Skip::Present,
    role: Role::Annotation,
    volume: "contrast-tls-certs",
    mount_path: "/tls-config",
    volume_medium: None,
    mount_in_init_containers: false,
    mount_read_only: false,
    env_prefix: "EDG_",
    coordinator_host: "coordinator",
    extended: false,
};

/// The spelling of later releases of Contrast.
pub static LATER: Profile = Profile {
    name: "later",
    levels: &[Level::Template],
    skip: Skip::True,
    role: Role::Label,
    volume: "contrast-secrets",
    mount_path: "/contrast",
    volume_medium: Some("Memory"),
    mount_in_init_containers: true,
    mount_read_only: true,
    env_prefix: "CONTRAST_",
    coordinator_host: "coordinator-ready.{namespace}",
    extended: true,
};

impl Profile {
    /// Every profile.
    pub const ALL: [&'static Profile; 2] = [&RFC, &LATER];

    /// The profile called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }
}

/// What every annotation of ours starts with.
pub(crate) const ANNOTATION_PREFIX: &str = "contrast.edgeless.systems/";
/// Opts a pod out of the initializer.
pub(crate) const SKIP_INITIALIZER: &str = "contrast.edgeless.systems/skip-initializer";
/// Ingress configuration; its presence asks for the service mesh.
pub(crate) const INGRESS: &str = "contrast.edgeless.systems/servicemesh-ingress";
/// Egress configuration; its presence asks for the service mesh.
pub(crate) const EGRESS: &str = "contrast.edgeless.systems/servicemesh-egress";
/// Port of Envoy's admin interface; its presence asks for the service mesh.
pub(crate) const ADMIN_PORT: &str = "contrast.edgeless.systems/servicemesh-admin-interface-port";
/// The role of a pod; `coordinator` exempts it.
pub(crate) const POD_ROLE: &str = "contrast.edgeless.systems/pod-role";
/// Pods of a runtime class that starts with this are ours to inject.
pub(crate) const RUNTIME_CLASS_PREFIX: &str = "contrast-cc";
/// The name of the initializer container.
pub(crate) const INITIALIZER: &str = "contrast-initializer";
/// The name of the service mesh container.
pub(crate) const SERVICE_MESH: &str = "contrast-service-mesh";
/// The initializer's image before replacement.
pub(crate) const INITIALIZER_IMAGE: &str = "ghcr.io/edgelesssys/contrast/initializer:latest";
/// The service mesh's image before replacement.
pub(crate) const SERVICE_MESH_IMAGE: &str = "ghcr.io/edgelesssys/contrast/service-mesh-proxy:latest";
