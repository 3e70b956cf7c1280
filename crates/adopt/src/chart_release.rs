//! Renders a chart for a release as Helm does.

use mainstay_api::Values;
use mainstay_catalog::derive::Files;
use mainstay_chart::{
    Capabilities, Dialect, File, FixedHost, KubeVersion, ObjectIdentity, RenderEnvironment, Request,
    load_files, render_reproducible, template,
};
use serde_json::Value;

use crate::AdoptError;

/// Dialect for rendering. Helm 3 and 4 render the same objects, and Helm 3 can read what both write.
const DIALECT: Dialect = Dialect::Helm3;

/// A release to render.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChartRelease<'a> {
    /// Name of the chart, for messages.
    pub(crate) chart: &'a str,
    /// Name of the release.
    pub(crate) name: &'a str,
    /// Namespace of the release.
    pub(crate) namespace: &'a str,
    /// Values that the user set.
    pub(crate) values: &'a Values,
    /// Kubernetes version of the cluster.
    pub(crate) kube_version: &'a str,
    /// Whether the release exists already. Only the first installation sets fields that istiod owns
    /// later.
    pub(crate) is_upgrade: bool,
}

impl ChartRelease<'_> {
    /// Renders the files of the chart.
    pub(crate) fn render(&self, files: &Files) -> Result<String, AdoptError> {
        let failed = |error| AdoptError::Chart {
            chart: self.chart.to_owned(),
            source: Box::new(error),
        };
        let files = files.iter().map(|(name, data)| File::new(name, data)).collect();
        let loaded = load_files(files, DIALECT).map_err(failed)?;
        let mut request = Request::new(DIALECT);
        let values = self.values.iter();
        request.values = values.map(|(key, value)| (key.clone(), to_yaml(value))).collect();
        self.name.clone_into(&mut request.render.release.name);
        self.namespace.clone_into(&mut request.render.release.namespace);
        request.render.release.is_upgrade = self.is_upgrade;
        if let Ok(kube_version) = KubeVersion::parse(self.kube_version, DIALECT) {
            request.render.capabilities = Capabilities {
                kube_version,
                ..Capabilities::offline(DIALECT)
            };
        }
        let [mut first, mut second] = FixedHost::pair();
        let texts = render_reproducible(
            [&mut first, &mut second],
            |_| self.identity(),
            |host| {
                let environment = RenderEnvironment {
                    host,
                    warn: &mut |_| {},
                    post_renderer: None,
                };
                let output = template(&loaded, &request, environment).map_err(failed)?;
                Ok::<_, AdoptError>(vec![String::from_utf8_lossy(&output.text).into_owned()])
            },
        );
        Ok(texts?.concat())
    }

    /// Returns an identity for messages about the release as a whole.
    fn identity(&self) -> ObjectIdentity {
        ObjectIdentity {
            kind: "release".to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            ..ObjectIdentity::default()
        }
    }
}

/// Converts a value as Helm does. Helm passes values through JSON, so that every number becomes a float.
pub(crate) fn to_yaml(value: &Value) -> mainstay_yaml::Value {
    match value {
        Value::Null => mainstay_yaml::Value::Null,
        Value::Bool(value) => mainstay_yaml::Value::Bool(*value),
        Value::Number(number) => mainstay_yaml::Value::Float(number.as_f64().unwrap_or_default()),
        Value::String(text) => mainstay_yaml::Value::String(text.clone()),
        Value::Array(items) => mainstay_yaml::Value::List(items.iter().map(to_yaml).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), to_yaml(value)));
            mainstay_yaml::Value::Map(entries.collect())
        }
    }
}
