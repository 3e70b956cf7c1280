//! A chart that contains several charts of Istio. istioctl renders all components of a namespace with the
//! same release name, so a single Helm release must contain them.

use mainstay_api::Values;
use mainstay_catalog::derive::Files;
use serde_json::Value;

/// A subchart: its name, files and values.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Name of the chart.
    pub(crate) chart: &'static str,
    /// Files of the chart.
    pub(crate) files: Files,
    /// Values that the user set.
    pub(crate) values: Values,
}

/// Returns the files and values of a chart that contains all parts. A single part is returned unchanged.
pub(crate) fn combine(name: &str, version: &str, mut parts: Vec<Part>) -> (Files, Values) {
    if parts.len() == 1
        && let Some(part) = parts.pop()
    {
        return (part.files, part.values);
    }
    let version = version.trim_start_matches('v');
    let head = format!(
        "apiVersion: v2\nname: {name}\ndescription: The components of Istio in one namespace\nversion: {version}\nappVersion: {version}\n"
    );
    let mut files = Files::from([
        ("Chart.yaml".to_owned(), head.into_bytes()),
        ("values.yaml".to_owned(), b"{}\n".to_vec()),
    ]);
    let mut values = Values::new();
    for part in parts {
        let prefix = format!("charts/{}/", part.chart);
        files.extend(
            part.files
                .into_iter()
                .map(|(path, data)| (format!("{prefix}{path}"), data)),
        );
        values.insert(part.chart.to_owned(), Value::Object(part.values));
    }
    (files, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(chart: &'static str) -> Part {
        Part {
            chart,
            files: Files::from([("Chart.yaml".to_owned(), chart.as_bytes().to_vec())]),
            values: json!({"a": chart}).as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn one_part_is_its_own_chart() {
        let (files, values) = combine("istio", "v1.29.1", vec![part("istiod")]);
        assert_eq!(files.into_keys().collect::<Vec<_>>(), ["Chart.yaml"]);
        assert_eq!(json!(values), json!({"a": "istiod"}));
    }

    #[test]
    fn several_parts_are_subcharts() {
        let (files, values) = combine("istio", "v1.29.1", vec![part("istiod"), part("cni")]);
        let names: Vec<String> = files.into_keys().collect();
        let expected = [
            "Chart.yaml",
            "charts/cni/Chart.yaml",
            "charts/istiod/Chart.yaml",
            "values.yaml",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            json!(values),
            json!({"cni": {"a": "cni"}, "istiod": {"a": "istiod"}})
        );
    }
}
