//! Profiles: names, variables and paths of each Contrast generation.

/// Names and settings that differ between Contrast generations.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Value of `--profile`.
    pub name: &'static str,
    /// Levels at which annotations are read, in order of precedence.
    pub levels: &'static [Level],
    /// Values of `skip-initializer` that opt out.
    pub skip: Skip,
    /// Location of the role `coordinator` in the pod template.
    pub role: Role,
    /// Name of the shared volume, which contains the certificates.
    pub volume: &'static str,
    /// Path at which the shared volume is mounted.
    pub mount_path: &'static str,
    /// Medium of the shared volume; `None` for the default medium of the node.
    pub volume_medium: Option<&'static str>,
    /// Whether the shared volume is also mounted in the user's init containers.
    pub mount_in_init_containers: bool,
    /// Whether the mounts in the user's containers are read-only.
    pub mount_read_only: bool,
    /// Prefix of the environment variables of the service mesh.
    pub env_prefix: &'static str,
    /// Address of the coordinator; `{namespace}` is replaced by its namespace.
    pub coordinator_host: &'static str,
    /// Whether containers have the additions of the later generation: probes, limits, capabilities of the
    /// initializer.
    pub extended: bool,
}

/// A level at which annotations are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `metadata` of the pod template, or of the Pod itself.
    Template,
    /// `metadata` of the object.
    Object,
}

/// Values of `skip-initializer` that opt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// Opts out if the key is present with any value other than `false`.
    Present,
    /// Opts out if the value is `true`.
    True,
}

/// Location of the role in a pod template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// In an annotation.
    Annotation,
    /// In a label.
    Label,
}

/// Profile of RFC 005; the default.
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

/// Profile of later releases of Contrast.
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
    /// All profiles.
    pub const ALL: [&'static Profile; 2] = [&RFC, &LATER];

    /// Returns the profile with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }
}

/// Prefix of all Contrast annotations.
pub(crate) const ANNOTATION_PREFIX: &str = "contrast.edgeless.systems/";
/// Annotation that opts a pod out of the initializer.
pub(crate) const SKIP_INITIALIZER: &str = "contrast.edgeless.systems/skip-initializer";
/// Annotation with the ingress configuration; its presence requests the service mesh.
pub(crate) const INGRESS: &str = "contrast.edgeless.systems/servicemesh-ingress";
/// Annotation with the egress configuration; its presence requests the service mesh.
pub(crate) const EGRESS: &str = "contrast.edgeless.systems/servicemesh-egress";
/// Annotation with the port of Envoy's admin interface; its presence requests the service mesh.
pub(crate) const ADMIN_PORT: &str = "contrast.edgeless.systems/servicemesh-admin-interface-port";
/// Annotation or label with the role of a pod; nothing is injected into a `coordinator`.
pub(crate) const POD_ROLE: &str = "contrast.edgeless.systems/pod-role";
/// Prefix of the runtime classes of Contrast pods, into which the initializer is injected.
pub(crate) const RUNTIME_CLASS_PREFIX: &str = "contrast-cc";
/// Name of the initializer container.
pub(crate) const INITIALIZER: &str = "contrast-initializer";
/// Name of the service mesh container.
pub(crate) const SERVICE_MESH: &str = "contrast-service-mesh";
/// Image of the initializer before replacement.
pub(crate) const INITIALIZER_IMAGE: &str = "ghcr.io/edgelesssys/contrast/initializer:latest";
/// Image of the service mesh before replacement.
pub(crate) const SERVICE_MESH_IMAGE: &str = "ghcr.io/edgelesssys/contrast/service-mesh-proxy:latest";
