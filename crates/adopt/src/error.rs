//! Errors of this crate.

use mainstay_cluster::apply::ApplyError;
use mainstay_cluster::definitions::DefinitionsError;
use mainstay_cluster::write::WriteError;
use mainstay_mesh::ValuesError;
use mainstay_operator::RenderError;

/// Reason why a mesh cannot be adopted or converted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// A Secret of Helm has an unknown format.
    #[error("the Helm release in Secret {0} cannot be read")]
    Release(String),
    /// There is no unmanaged component.
    #[error("no unmanaged control plane found")]
    NothingFound,
    /// The version of a component is unknown.
    #[error("cannot determine the version of {0}")]
    NoVersion(String),
    /// The charts of a version are not available.
    #[error("{component} has version {version}, whose charts are not available")]
    NoCharts {
        /// Description of the component.
        component: String,
        /// Version of the component.
        version: String,
    },
    /// Values cannot be computed.
    #[error("the values of {component} cannot be computed")]
    Values {
        /// Description of the component.
        component: String,
        /// The cause.
        source: Box<ValuesError>,
    },
    /// A chart cannot be rendered with the derived values.
    #[error("{component} cannot be rendered")]
    Render {
        /// Description of the component.
        component: String,
        /// The cause.
        source: Box<RenderError>,
    },
    /// A chart of the installer flavour cannot be rendered.
    #[error("chart {chart} cannot be rendered")]
    Chart {
        /// Name of the chart.
        chart: String,
        /// The cause.
        source: Box<mainstay_chart::ChartError>,
    },
    /// Two renders of a chart differ.
    #[error(transparent)]
    NotReproducible(#[from] mainstay_chart::NotReproducible),
    /// Istio's definitions cannot be read.
    #[error("the definitions of Istio cannot be read")]
    Definitions(#[source] Box<DefinitionsError>),
    /// An API call of the apply engine failed.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// An API call failed.
    #[error("{what}: {source}")]
    Call {
        /// Failed operation, such as `cannot read the mesh`.
        what: String,
        /// Error of the API call.
        source: WriteError,
    },
    /// There is no record of an adoption.
    #[error("no record of an adoption found in namespace {0}")]
    NoRecord(String),
    /// A record has an unknown format.
    #[error("the record of the adoption in ConfigMap {0} cannot be read")]
    Record(String),
    /// A file of values cannot be read.
    #[error("{file} cannot be read as values of a chart")]
    File {
        /// Path of the file.
        file: String,
        /// Syntax error; `None` if the file is not a map.
        source: Option<mainstay_yaml::Error>,
    },
    /// A configuration that was derived from values is rejected.
    #[error("the converted configuration is rejected: {0}")]
    Converted(Box<mainstay_manifest::Diagnostics>),
    /// The conversion is not supported; contains the reason.
    #[error("{0}")]
    Unsupported(String),
}

impl AdoptError {
    /// Wraps the error of an API call.
    pub(crate) fn call(what: impl Into<String>) -> impl FnOnce(WriteError) -> Self {
        let what = what.into();
        move |source| Self::Call { what, source }
    }
}
