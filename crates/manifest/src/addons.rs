//! Add-ons: the sample manifests of an Istio release, enabled by `spec.addonComponents`.

use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use crate::merge::{map_at, text_at, value_at};
use crate::object::Object;
use crate::package::{Charts, PackageError};
use crate::path::Path;
use crate::render::parse_objects;

/// Namespace of the objects in the samples.
const SAMPLE_NAMESPACE: &str = "istio-system";

/// Add-ons and their manifests, relative to `samples/addons` of a release.
const ADDONS: &[(&str, &str)] = &[
    ("grafana", "grafana"),
    ("kiali", "kiali"),
    ("prometheus", "prometheus"),
    ("prometheusOperator", "extras/prometheus-operator"),
    ("tracing", "jaeger"),
];

/// Add-ons that Istio removed. Validation reports them.
const REMOVED: &[&str] = &["istiocoredns"];

/// Manifest for tracing with Zipkin.
const ZIPKIN: &str = "extras/zipkin";

/// Error of loading the objects of an add-on.
#[derive(Debug, thiserror::Error)]
enum AddonError {
    #[error("{}", mainstay_gostd::error::chain(.0))]
    Package(#[from] PackageError),
    #[error("the manifest is not valid YAML: {0}")]
    Yaml(Box<mainstay_yaml::Error>),
}

/// Returns the objects of all enabled add-ons, and errors of add-ons that cannot be loaded.
pub(crate) fn addon_objects(operator: &Map, charts: &dyn Charts) -> (Vec<Object>, Diagnostics) {
    let (mut objects, mut found) = (Vec::new(), Diagnostics::default());
    for (name, block) in map_at(operator, &["spec", "addonComponents"]) {
        let path = Path::from_keys(&["spec", "addonComponents", &name]);
        let is_enabled = block.get("enabled").and_then(Value::as_bool) == Some(true);
        if !is_enabled || REMOVED.contains(&name.as_str()) {
            continue;
        }
        let Some((_, manifest)) = ADDONS.iter().find(|(known, _)| *known == name) else {
            found.push(unknown_addon(&name, path));
            continue;
        };
        let is_zipkin = block.at(&["spec", "provider"]).and_then(Value::as_str) == Some("zipkin");
        let manifest = if name == "tracing" && is_zipkin {
            ZIPKIN
        } else {
            manifest
        };
        match read_manifest(charts, manifest) {
            Ok(found) => objects.extend(
                found
                    .into_iter()
                    .map(|object| move_to_namespace(object, operator, &block)),
            ),
            Err(error) => found.push(Diagnostic::error(path, error.to_string()).hint(
                "use --manifests with the directory `manifests` of an Istio release, next to its `samples`",
            )),
        }
    }
    (objects, found)
}

fn unknown_addon(name: &str, path: Path) -> Diagnostic {
    let names = ADDONS.iter().map(|(name, _)| *name);
    let list: Vec<&str> = names.clone().collect();
    let hint = did_you_mean(name, names).unwrap_or_else(|| format!("there are {}", list.join(", ")));
    Diagnostic::error(path, "this add-on does not exist").hint(hint)
}

fn read_manifest(charts: &dyn Charts, manifest: &str) -> Result<Vec<Object>, AddonError> {
    let text = charts.addon(manifest)?;
    parse_objects(&text).map_err(AddonError::Yaml)
}

/// Moves an object from the namespace of the samples to that of the add-on.
fn move_to_namespace(mut object: Object, operator: &Map, block: &Value) -> Object {
    let own = block.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let default = text_at(operator, &["metadata", "namespace"]);
    let namespace = if own.is_empty() { default } else { own.to_owned() };
    if namespace.is_empty() || namespace == SAMPLE_NAMESPACE {
        return object;
    }
    if let Some(map) = object.0.as_map_mut() {
        replace_namespace(map.get_mut("metadata"), &namespace);
        if let Some(Value::List(subjects)) = map.get_mut("subjects") {
            for subject in subjects {
                replace_namespace(Some(subject), &namespace);
            }
        }
    }
    object
}

fn replace_namespace(node: Option<&mut Value>, namespace: &str) {
    let Some(map) = node.and_then(Value::as_map_mut) else {
        return;
    };
    if value_at(map, &["namespace"]).and_then(Value::as_str) == Some(SAMPLE_NAMESPACE) {
        map.insert("namespace".into(), namespace.into());
    }
}
