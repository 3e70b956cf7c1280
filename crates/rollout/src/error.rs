//! Errors of rendering revisions and of reading documents.

/// Reason that a revision cannot be rendered for a deployment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A manifest has no `apiVersion`, `kind` or `metadata.name`.
    #[error("component {component:?}: manifest {index} has no {field}")]
    MissingField {
        /// Name of the component.
        component: String,
        /// Number of the manifest, from 0.
        index: usize,
        /// The missing field.
        field: &'static str,
    },
    /// A manifest is not an object of a namespace.
    #[error(
        "component {component:?}: {kind} {name:?} is cluster-scoped; revisions contain namespaced objects only"
    )]
    ClusterScoped {
        /// Name of the component.
        component: String,
        /// Kind of the manifest.
        kind: String,
        /// Name of the manifest.
        name: String,
    },
    /// The properties of a component are invalid.
    #[error("component {component:?}: {message}")]
    Properties {
        /// Name of the component.
        component: String,
        /// What is wrong.
        message: String,
    },
    /// The component is rendered outside this crate.
    #[error("component {0:?} is a Helm chart, which is rendered before")]
    NotRendered(String),
}
