//! What `Chart.yaml` says: typed, cleaned and checked as Helm does it. Takes fields, gives the first complaint in Helm's words.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ChartError;
use crate::go::{is_print, quote};
use crate::version::is_version;

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

/// Metadata as read, before Helm's checks: entries of lists may still be null.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) metadata: Metadata,
    pub(crate) maintainers: Vec<Option<Maintainer>>,
    pub(crate) dependencies: Option<Vec<Option<Dependency>>>,
}

impl Draft {
    /// Cleans and checks, in Helm's order.
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
            .ok_or_else(|| invalid("maintainers must not contain empty or null nodes"))?;
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
            return Err(invalid("chart.metadata.apiVersion is required"));
        }
        if self.name.is_empty() {
            return Err(invalid("chart.metadata.name is required"));
        }
        if self.name == "." || self.name == ".." {
            return Err(invalid(format!(
                "chart.metadata.name {} is not allowed",
                quote(&self.name)
            )));
        }
        if self.name.contains('/') && self.name != "/" {
            return Err(invalid(format!(
                "chart.metadata.name {} is invalid",
                quote(&self.name)
            )));
        }
        if self.version.is_empty() {
            return Err(invalid("chart.metadata.version is required"));
        }
        if !is_version(&self.version) {
            return Err(invalid(format!(
                "chart.metadata.version {} is invalid",
                quote(&self.version)
            )));
        }
        if !["", "application", "library"].contains(&self.kind.as_str()) {
            return Err(invalid("chart.metadata.type must be application or library"));
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
            .ok_or_else(|| invalid("dependencies must not contain empty or null nodes"))?
            .sanitized();
        if !is_alias(&dependency.alias) {
            let name = quote(&dependency.name);
            return Err(invalid(format!(
                "dependency {name} has disallowed characters in the alias"
            )));
        }
        let key = if dependency.alias.is_empty() {
            &dependency.name
        } else {
            &dependency.alias
        };
        if !seen.insert(key.clone()) {
            return Err(invalid(format!(
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

fn invalid(text: impl Into<String>) -> ChartError {
    ChartError::Validation(text.into())
}

/// Blanks of any kind become spaces, what does not print goes.
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
