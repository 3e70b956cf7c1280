//! Errors of rendering revisions.

/// Error of rendering a revision for a deployment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A manifest lacks `apiVersion`, `kind` or `metadata.name`.
    #[error("component {component:?}: manifest {index} has no {field}")]
    MissingField {
        /// Name of the component.
        component: String,
        /// Index of the manifest, starting at 0.
        index: usize,
        /// Missing field.
        field: &'static str,
    },
    /// A manifest is cluster-scoped.
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
        /// Description of the problem.
        message: String,
    },
    /// The component cannot be rendered by this crate.
    #[error("component {0:?} is a Helm chart, which is rendered before")]
    NotRendered(String),
}
