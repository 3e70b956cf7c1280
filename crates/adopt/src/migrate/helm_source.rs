//! Istio charts with the values of a user, from values files, umbrella charts and releases.

use mainstay_api::{Values, names};
use mainstay_catalog::{Catalog, Flavour, Version};
use mainstay_cluster::installer::text;
use serde_json::Value;

use crate::AdoptError;
use crate::chart_release::ChartRelease;
use crate::helm::HelmRelease;
use crate::migrate::{Comments, KUBE_VERSION};

/// A chart of an Istio release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelmChart {
    /// The custom resource definitions.
    Base,
    /// A control plane.
    Istiod,
    /// The CNI plugin.
    Cni,
    /// The node proxy of ambient mode.
    Ztunnel,
    /// A gateway.
    Gateway,
}

impl HelmChart {
    /// All charts.
    pub const ALL: [Self; 5] = [Self::Base, Self::Istiod, Self::Cni, Self::Ztunnel, Self::Gateway];

    /// Returns the name of the chart in `Chart.yaml`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => names::BASE_CHART,
            Self::Istiod => names::ISTIOD_CHART,
            Self::Cni => names::CNI_CHART,
            Self::Ztunnel => names::ZTUNNEL_CHART,
            Self::Gateway => "gateway",
        }
    }

    /// Returns the chart with this name in `Chart.yaml`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|chart| chart.name() == name)
    }

    /// Returns the name of the release in Istio's installation instructions.
    fn release(self) -> &'static str {
        match self {
            Self::Base => "istio-base",
            Self::Istiod => "istiod",
            Self::Cni => "istio-cni",
            Self::Ztunnel => "ztunnel",
            Self::Gateway => "istio-ingress",
        }
    }
}

/// A file that is part of the configuration of a chart.
#[derive(Clone, Copy, Debug)]
pub struct SourceFile<'a> {
    /// Name for messages.
    pub name: &'a str,
    /// Content of the file.
    pub text: &'a [u8],
}

/// A chart with its release and values.
#[derive(Clone, Debug)]
pub struct HelmSource {
    /// The chart.
    pub chart: HelmChart,
    /// Name of the release.
    pub release: String,
    /// Namespace of the release.
    pub namespace: String,
    /// Version of the chart.
    pub version: Version,
    /// Values that the user set.
    pub values: Values,
    /// File or Secret that contains the values.
    pub origin: String,
    /// Comments of the file.
    pub comments: Comments,
    /// Objects in the manifest of a release; `None` if they must be rendered.
    manifest: Option<Vec<Value>>,
}

impl HelmSource {
    /// Parses a values file. Release and namespace are those in Istio's installation instructions.
    pub fn from_values(
        chart: HelmChart,
        version: &Version,
        file: SourceFile<'_>,
    ) -> Result<Self, AdoptError> {
        Ok(Self {
            origin: file.name.to_owned(),
            comments: file.comments(),
            ..Self::with_values(chart, version, file.values()?)
        })
    }

    /// Creates a source with the release and namespace in Istio's installation instructions.
    #[must_use]
    pub fn with_values(chart: HelmChart, version: &Version, values: Values) -> Self {
        let global = values
            .get("global")
            .and_then(|global| global.get("istioNamespace"));
        let system = global.and_then(Value::as_str).unwrap_or(names::ISTIO_SYSTEM);
        let revision = values.get("revision").and_then(Value::as_str).unwrap_or_default();
        Self {
            release: match (chart, revision) {
                (HelmChart::Istiod, revision) if !revision.is_empty() => format!("istiod-{revision}"),
                _ => chart.release().to_owned(),
            },
            namespace: match chart {
                HelmChart::Gateway => "istio-ingress".to_owned(),
                _ => system.to_owned(),
            },
            version: version.clone(),
            chart,
            values,
            origin: chart.name().to_owned(),
            comments: Comments::default(),
            manifest: None,
        }
    }

    /// Creates a source from a stored release; `None` if its chart is not an Istio chart.
    pub fn from_release(release: &HelmRelease, catalog: &Catalog) -> Result<Option<Self>, AdoptError> {
        let Some(chart) = HelmChart::from_name(release.chart()) else {
            return Ok(None);
        };
        let name = release.chart_version();
        let version = catalog.resolve(name).map_err(|_| AdoptError::NoCharts {
            component: format!("Helm release {}/{}", release.namespace, release.name),
            version: name.to_owned(),
        })?;
        Ok(Some(Self {
            release: release.name.clone(),
            namespace: release.namespace.clone(),
            origin: format!("Secret {}/{}", release.namespace, release.secret),
            manifest: Some(release.objects()?),
            ..Self::with_values(chart, &version, release.values())
        }))
    }

    /// Splits the values of an umbrella chart into those of its dependencies that are Istio charts, as
    /// Helm does.
    pub fn from_umbrella(
        chart: SourceFile<'_>,
        values: SourceFile<'_>,
        version: &Version,
    ) -> Result<Vec<Self>, AdoptError> {
        let (metadata, all) = (chart.values()?, values.values()?);
        let comments = values.comments();
        let dependencies = metadata.get("dependencies").and_then(Value::as_array);
        let mut sources = Vec::new();
        for dependency in dependencies.into_iter().flatten() {
            let Some(chart) = HelmChart::from_name(text(dependency, "/name")) else {
                continue;
            };
            let key = match text(dependency, "/alias") {
                "" => chart.name(),
                alias => alias,
            };
            let mut own = all
                .get(key)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            if let Some(Value::Object(global)) = all.get("global") {
                let mut merged = Values::new();
                merged.insert("global".to_owned(), Value::Object(global.clone()));
                crate::derive::merge(&mut own, merged);
            }
            let mut source = Self::with_values(chart, version, own);
            source.origin = format!("{}: {key}", values.name);
            source.comments = comments.below(key);
            sources.push(source);
        }
        Ok(sources)
    }

    /// Returns the objects that Helm installs: those in the manifest of the release, or else rendered
    /// ones.
    pub(crate) fn objects(&self, catalog: &Catalog) -> Result<Vec<Value>, AdoptError> {
        if let Some(manifest) = &self.manifest {
            return Ok(manifest.clone());
        }
        let files = catalog.chart(&self.version, Flavour::Installer, self.chart.name());
        let files = files.map_err(|_| AdoptError::NoVersion(self.version.name()))?;
        let release = ChartRelease {
            chart: self.chart.name(),
            name: &self.release,
            namespace: &self.namespace,
            values: &self.values,
            kube_version: KUBE_VERSION,
            is_upgrade: false,
        };
        let manifest = release.render(&files)?;
        crate::text::parse_documents(&manifest).map_err(|_| AdoptError::Release(self.origin.clone()))
    }

    /// Returns a description of the source for messages.
    pub(crate) fn describe(&self) -> String {
        format!("chart {} ({})", self.chart.name(), self.origin)
    }
}

impl SourceFile<'_> {
    /// Parses the file as a map. An empty file has no values.
    fn values(&self) -> Result<Values, AdoptError> {
        let failed = |source| AdoptError::File {
            file: self.name.to_owned(),
            source,
        };
        match crate::text::parse_document(self.text).map_err(|error| failed(Some(error)))? {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Values::new()),
            _ => Err(failed(None)),
        }
    }

    fn comments(&self) -> Comments {
        Comments::read(&String::from_utf8_lossy(self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_umbrella_chart_is_split_by_alias() {
        let version: Version = "1.29.1".parse().unwrap();
        let chart =
            b"name: mesh\ndependencies:\n- {name: istiod, alias: plane}\n- {name: cni}\n- {name: other}\n";
        let values = b"global: {hub: a}\nplane:\n  # two\n  autoscaleMin: 2\n";
        let chart = SourceFile {
            name: "Chart.yaml",
            text: chart,
        };
        let values = SourceFile {
            name: "values.yaml",
            text: values,
        };
        let sources = HelmSource::from_umbrella(chart, values, &version).unwrap();
        let found: Vec<_> = sources.iter().map(|one| (one.chart, json!(one.values))).collect();
        let global = json!({"hub": "a"});
        assert_eq!(
            found,
            [
                (HelmChart::Istiod, json!({"autoscaleMin": 2, "global": global})),
                (HelmChart::Cni, json!({"global": global})),
            ]
        );
        assert_eq!(
            sources[0].comments.write("autoscaleMin: 2\n"),
            "# two\nautoscaleMin: 2\n"
        );
    }

    #[test]
    fn a_file_without_a_map_is_an_error() {
        let version: Version = "1.29.1".parse().unwrap();
        let file = SourceFile {
            name: "v.yaml",
            text: b"- a",
        };
        let error = HelmSource::from_values(HelmChart::Istiod, &version, file).unwrap_err();
        assert_eq!(error.to_string(), "v.yaml cannot be read as values of a chart");
    }
}
