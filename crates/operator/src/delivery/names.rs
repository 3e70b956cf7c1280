//! Keys for objects, subjects, clusters and kinds of the delivery controllers.

use std::fmt;

use serde_json::Value;

use crate::object::string_at;

/// Namespace and name of an object in the host cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl Name {
    /// Creates a name.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns namespace and name of an object.
    pub(crate) fn from_object(object: &Value) -> Self {
        Self::new(
            string_at(object, "/metadata/namespace"),
            string_at(object, "/metadata/name"),
        )
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that is reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The health of a Cluster.
    Cluster(Name),
    /// The revisions of an Application.
    Application(Name),
    /// The objects of an `ApplicationDeployment` in all clusters.
    Deployment(Name),
}

impl Subject {
    /// Returns the kind of the object.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "Cluster",
            Self::Application(_) => "Application",
            Self::Deployment(_) => "ApplicationDeployment",
        }
    }

    /// Returns namespace and name of the object.
    #[must_use]
    pub fn name(&self) -> &Name {
        let (Self::Cluster(name) | Self::Application(name) | Self::Deployment(name)) = self;
        name
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.name())
    }
}

/// Key of a cluster in which objects are applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterKey {
    /// The cluster in which the controllers run.
    Host,
    /// The cluster that a Cluster object describes.
    Remote(Name),
}

impl ClusterKey {
    /// Returns the key of the cluster that deployments in `namespace` refer to as `name`. An empty name
    /// refers to the host cluster.
    #[must_use]
    pub fn for_name(namespace: &str, name: &str) -> Self {
        if name.is_empty() {
            Self::Host
        } else {
            Self::Remote(Name::new(namespace, name))
        }
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Remote(name) => name.fmt(f),
        }
    }
}

/// Group, version and kind of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectType {
    /// Group and version, as in `apiVersion`.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
}

impl ObjectType {
    /// Creates a type.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Returns the URL path of the group and version.
    #[must_use]
    pub fn root(&self) -> String {
        if self.api_version.contains('/') {
            format!("/apis/{}", self.api_version)
        } else {
            format!("/api/{}", self.api_version)
        }
    }
}

impl From<&mainstay_rollout::manifest::ObjectKey> for ObjectType {
    fn from(key: &mainstay_rollout::manifest::ObjectKey) -> Self {
        Self::new(&key.api_version, &key.kind)
    }
}
