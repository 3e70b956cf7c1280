//! Metadata of a chart (`Chart.yaml`), sanitized and validated as in Helm.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_gostd::quote::quote;
use mainstay_gostd::unicode::is_print;

use crate::error::ChartError;
use crate::version::is_version;

/// Contents of `Chart.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Chart name.
    pub name: String,
    /// Project page.
    pub home: String,
    /// URLs of the source code.
    pub sources: Vec<String>,
    /// Semantic version of the chart.
    pub version: String,
    /// One-sentence description.
    pub description: String,
    /// Search keywords.
    pub keywords: Vec<String>,
    /// People or organizations that maintain the chart.
    pub maintainers: Vec<Maintainer>,
    /// Icon URL.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// Condition of Helm 2. Not used.
    pub condition: String,
    /// Tags of Helm 2. Not used.
    pub tags: String,
    /// Version of the application.
    pub app_version: String,
    /// Whether the chart is deprecated.
    pub deprecated: bool,
    /// Free-form annotations.
    pub annotations: BTreeMap<String, String>,
    /// Constraint on the Kubernetes version.
    pub kube_version: String,
    /// Dependencies. `None` corresponds to Go's nil: in this case, the conditions of subcharts are not
    /// processed. For an empty list they are.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or empty.
    pub kind: String,
}

/// A maintainer of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// Name of the person or organization.
    pub name: String,
    /// E-mail address.
    pub email: String,
    /// Web page.
    pub url: String,
}

/// An entry of `dependencies`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// Chart name. After dependencies are processed, this is the alias if there is one.
    pub name: String,
    /// Version constraint.
    pub version: String,
    /// Repository URL.
    pub repository: String,
    /// Comma-separated value paths. The first one with a boolean value decides.
    pub condition: String,
    /// Tags that enable or disable the dependency.
    pub tags: Vec<String>,
    /// Whether the dependency is enabled. Set when dependencies are processed.
    pub enabled: bool,
    /// Values to import into the parent.
    pub import_values: Vec<ImportValue>,
    /// Name under which the chart is used instead of `name`; empty if there is no alias.
    pub alias: String,
}

/// An entry of `import-values`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportValue {
    /// A name in the child's `exports`.
    Export(String),
    /// A table of the child and its path in the parent.
    Table {
        /// Path in the child.
        child: String,
        /// Path in the parent; `.` is the parent's root.
        parent: String,
    },
    /// An entry of another type, which Helm ignores.
    Other,
}

/// Decoded metadata before validation. Entries of lists may be null.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) metadata: Metadata,
    pub(crate) maintainers: Vec<Option<Maintainer>>,
    pub(crate) dependencies: Option<Vec<Option<Dependency>>>,
}

impl Draft {
    /// Sanitizes and validates the metadata in Helm's order.
    pub(crate) fn finish(self) -> Result<Metadata, ChartError> {
        let Self {
            mut metadata,
            maintainers,
            dependencies,
        } = self;
        metadata.sanitize();
        metadata.check()?;
        metadata.maintainers = maintainers
            .into_iter()
            .map(|maintainer| maintainer.map(Maintainer::sanitized))
            .collect::<Option<_>>()
            .ok_or_else(|| validation_error("maintainers must not contain empty or null nodes"))?;
        metadata.dependencies = dependencies.map(check_dependencies).transpose()?;
        Ok(metadata)
    }
}

impl Metadata {
    fn sanitize(&mut self) {
        for field in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(field);
        }
        self.sources
            .iter_mut()
            .chain(&mut self.keywords)
            .for_each(sanitize);
    }

    fn check(&self) -> Result<(), ChartError> {
        if self.api_version.is_empty() {
            return Err(validation_error("chart.metadata.apiVersion is required"));
        }
        if self.name.is_empty() {
            return Err(validation_error("chart.metadata.name is required"));
        }
        if self.name == "." || self.name == ".." {
            return Err(validation_error(format!(
                "chart.metadata.name {} is not allowed",
                quote(&self.name)
            )));
        }
        if self.name.contains('/') && self.name != "/" {
            return Err(validation_error(format!(
                "chart.metadata.name {} is invalid",
                quote(&self.name)
            )));
        }
        if self.version.is_empty() {
            return Err(validation_error("chart.metadata.version is required"));
        }
        if !is_version(&self.version) {
            return Err(validation_error(format!(
                "chart.metadata.version {} is invalid",
                quote(&self.version)
            )));
        }
        if !["", "application", "library"].contains(&self.kind.as_str()) {
            return Err(validation_error(
                "chart.metadata.type must be application or library",
            ));
        }
        Ok(())
    }
}

impl Maintainer {
    fn sanitized(mut self) -> Self {
        [&mut self.name, &mut self.email, &mut self.url]
            .into_iter()
            .for_each(sanitize);
        self
    }
}

fn check_dependencies(dependencies: Vec<Option<Dependency>>) -> Result<Vec<Dependency>, ChartError> {
    let mut seen = BTreeSet::new();
    let mut checked = Vec::with_capacity(dependencies.len());
    for dependency in dependencies {
        let dependency = dependency
            .ok_or_else(|| validation_error("dependencies must not contain empty or null nodes"))?
            .sanitized();
        if !is_alias(&dependency.alias) {
            let name = quote(&dependency.name);
            return Err(validation_error(format!(
                "dependency {name} has disallowed characters in the alias"
            )));
        }
        let key = if dependency.alias.is_empty() {
            &dependency.name
        } else {
            &dependency.alias
        };
        if !seen.insert(key.clone()) {
            return Err(validation_error(format!(
                "more than one dependency with name or alias {}",
                quote(key)
            )));
        }
        checked.push(dependency);
    }
    Ok(checked)
}

impl Dependency {
    fn sanitized(mut self) -> Self {
        let fields = [
            &mut self.name,
            &mut self.version,
            &mut self.repository,
            &mut self.condition,
        ];
        fields.into_iter().chain(&mut self.tags).for_each(sanitize);
        self
    }
}

fn is_alias(alias: &str) -> bool {
    alias
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn validation_error(text: impl Into<String>) -> ChartError {
    ChartError::Validation(text.into())
}

/// Replaces white space with spaces and removes non-printable characters.
fn sanitize(text: &mut String) {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return;
    }
    *text = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| is_print(*c))
        .collect();
}
