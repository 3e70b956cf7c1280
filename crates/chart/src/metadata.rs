//! What `Chart.yaml` says: typed, cleaned and checked as Helm does it. Takes fields, gives the first complaint in Helm's words.

use std::collections::BTreeMap;

/// The contents of `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The chart's name.
    pub name: String,
    /// A project page.
    pub home: String,
    /// Where its sources are.
    pub sources: Vec<String>,
    /// Its version, a semantic one.
    pub version: String,
    /// One sentence about it.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Who looks after it.
    pub maintainers: Vec<Maintainer>,
    /// The URL of an icon.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// A condition of Helm 2; nothing reads it.
    pub condition: String,
    /// Tags of Helm 2; nothing reads them.
    pub tags: String,
    /// The version of what it installs.
    pub app_version: String,
    /// Whether it should no longer be used.
    pub deprecated: bool,
    /// Free-form annotations.
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes versions it needs, as a constraint.
    pub kube_version: String,
    /// What it depends on. `None` is Go's nil: a chart that declares nothing does not process its subcharts' conditions,
    /// one that declares an empty list does.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or nothing.
    pub kind: String,
}

/// Who looks after a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// A name.
    pub name: String,
    /// An address.
    pub email: String,
    /// A page.
    pub url: String,
}

/// One entry of `dependencies`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The chart's name; the alias, once dependencies are processed.
    pub name: String,
    /// The versions wanted, as a constraint.
    pub version: String,
    /// Where to fetch it.
    pub repository: String,
    /// Paths into the values, separated by commas: the first that is a boolean decides.
    pub condition: String,
    /// Groups under which it can be switched.
    pub tags: Vec<String>,
    /// Whether it takes part; decided when dependencies are processed.
    pub enabled: bool,
    /// What of its values goes to the parent.
    pub import_values: Vec<ImportValue>,
    /// Another name for it.
    pub alias: String,
}

/// One entry of `import-values`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportValue {
    /// A name under the child's `exports`.
    Export(String),
    /// A table of the child and where it goes in the parent.
    Table {
        /// A path in the child.
        child: String,
        /// A path in the parent; `.` is its root.
        parent: String,
    },
    /// Anything else, which Helm passes over.
    Other,
}
