//! Add-ons: the sample manifests of an Istio release as a table, enabled by `spec.addonComponents`.

use mainstay_chart::ObjectIdentity;
use mainstay_yaml::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean};
use crate::limits::Steps;
use crate::merge::{map_at, text_at, value_at};
use crate::object::Object;
use crate::overlay::{Naming, apply_overlays};
use crate::package::{Charts, PackageError};
use crate::path::Path;
use crate::render::parse_objects;
use crate::settings::{Customization, Workload, apply_settings};

/// Namespace of the objects in the samples.
const SAMPLE_NAMESPACE: &str = "istio-system";

/// A row of the table of add-ons.
#[derive(Debug)]
struct Addon {
    /// Key below `spec.addonComponents`.
    name: &'static str,
    /// Value of `spec.provider`; empty if there is only one.
    provider: &'static str,
    /// Manifest, relative to `samples/addons` of a release.
    manifest: &'static str,
    /// Workload that `k8s` settings change.
    workload: Workload<'static>,
}

const fn deployment(name: &'static str, container: &'static str) -> Workload<'static> {
    Workload {
        kind: "Deployment",
        name,
        container,
        service: name,
    }
}

const fn addon(name: &'static str, manifest: &'static str, workload: Workload<'static>) -> Addon {
    Addon {
        name,
        provider: "",
        manifest,
        workload,
    }
}

const fn tracing(provider: &'static str, manifest: &'static str) -> Addon {
    Addon {
        name: "tracing",
        provider,
        manifest,
        workload: Workload {
            service: "tracing",
            ..deployment(provider, provider)
        },
    }
}

/// All add-ons. The first row of a name is its default.
const ADDONS: &[Addon] = &[
    addon("grafana", "grafana", deployment("grafana", "grafana")),
    addon("kiali", "kiali", deployment("kiali", "kiali")),
    addon(
        "prometheus",
        "prometheus",
        deployment("prometheus", "prometheus-server"),
    ),
    addon(
        "prometheusOperator",
        "extras/prometheus-operator",
        Workload {
            kind: "",
            ..deployment("", "")
        },
    ),
    tracing("jaeger", "jaeger"),
    tracing("zipkin", "extras/zipkin"),
];

/// Add-ons that Istio removed. Validation reports them.
const REMOVED: &[&str] = &["istiocoredns"];

/// Error of loading the objects of an add-on.
#[derive(Debug, thiserror::Error)]
enum AddonError {
    #[error("{}", mainstay_gostd::error::chain(.0))]
    Package(#[from] PackageError),
    #[error("the manifest is not valid YAML: {0}")]
    Yaml(Box<mainstay_yaml::Error>),
}

/// Returns the objects of all enabled add-ons, and errors of add-ons that cannot be loaded or customized.
pub(crate) fn addon_objects(
    operator: &Map,
    charts: &dyn Charts,
    steps: &mut Steps,
) -> (Vec<Object>, Diagnostics) {
    let (mut all, mut found) = (Vec::new(), Diagnostics::default());
    for (name, block) in map_at(operator, &["spec", "addonComponents"]) {
        let path = Path::from_keys(&["spec", "addonComponents", &name]);
        let is_enabled = block.get("enabled").and_then(Value::as_bool) == Some(true);
        if !is_enabled || REMOVED.contains(&name.as_str()) {
            continue;
        }
        let addon = match find_addon(&name, &block, &path) {
            Ok(addon) => addon,
            Err(error) => {
                found.push(*error);
                continue;
            }
        };
        match read_manifest(charts, addon.manifest) {
            Ok(objects) => {
                let objects = objects.into_iter();
                let mut objects: Vec<Object> = objects
                    .map(|object| move_to_namespace(object, operator, &block))
                    .collect();
                if let Some(settings) = block.get("k8s").and_then(Value::as_map) {
                    let customization = Customization {
                        path: &path,
                        settings,
                        workload: addon.workload,
                        is_gateway: false,
                    };
                    found.append(customize(&customization, &mut objects, steps));
                }
                all.extend(objects);
            }
            Err(error) => found.push(Diagnostic::error(path, error.to_string()).hint(
                "use --manifests with the directory `manifests` of an Istio release, next to its `samples`",
            )),
        }
    }
    (all, found)
}

/// Returns the row of an add-on and its provider.
fn find_addon(name: &str, block: &Value, path: &Path) -> Result<&'static Addon, Box<Diagnostic>> {
    let rows: Vec<&Addon> = ADDONS.iter().filter(|row| row.name == name).collect();
    let Some(default) = rows.first().copied() else {
        return Err(Box::new(unknown_addon(name, path.clone())));
    };
    let provider = block.at(&["spec", "provider"]).and_then(Value::as_str);
    let Some(provider) = provider.filter(|_| !default.provider.is_empty()) else {
        return Ok(default);
    };
    let found = rows.iter().find(|row| row.provider == provider);
    found.copied().ok_or_else(|| {
        let names = rows.iter().map(|row| row.provider);
        let list: Vec<&str> = names.clone().collect();
        let message = format!("expected one of {}", list.join(", "));
        let path = path.key("spec").key("provider");
        let result = Diagnostic::error(path, message).value(provider);
        Box::new(match did_you_mean(provider, names) {
            Some(hint) => result.hint(hint),
            None => result,
        })
    })
}

fn unknown_addon(name: &str, path: Path) -> Diagnostic {
    let mut list: Vec<&str> = ADDONS.iter().map(|row| row.name).collect();
    list.dedup();
    let hint = did_you_mean(name, list.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("there are {}", list.join(", ")));
    Diagnostic::error(path, "this add-on does not exist").hint(hint)
}

fn read_manifest(charts: &dyn Charts, manifest: &str) -> Result<Vec<Object>, AddonError> {
    let text = charts.addon(manifest)?;
    parse_objects(&text).map_err(AddonError::Yaml)
}

/// Applies the settings and overlays of an add-on to its objects. Overlays cannot change the kind or the
/// namespace of an object.
fn customize(customization: &Customization<'_>, objects: &mut [Object], steps: &mut Steps) -> Diagnostics {
    let before: Vec<ObjectIdentity> = objects.iter().map(Object::identity).collect();
    let mut found = apply_settings(customization, objects, steps);
    // The names of add-ons do not depend on the revision.
    let naming = Naming {
        revision: "",
        namespace: "",
    };
    found.append(apply_overlays(customization, naming, objects, steps));
    for (before, object) in before.iter().zip(objects) {
        let after = object.identity();
        if (before.group(), &before.kind, &before.namespace) != (after.group(), &after.kind, &after.namespace)
        {
            let message = format!(
                "an overlay changes {before} to {after}: the kind and the namespace of an object cannot change"
            );
            found.push(Diagnostic::fatal(customization.path.clone(), message));
        }
    }
    found
}

/// Whether `spec.FIELD` of an add-on has an effect.
pub(crate) fn has_spec_field(addon: &str, field: &str) -> bool {
    let mut rows = ADDONS.iter().filter(|row| row.name == addon);
    field == "provider" && rows.any(|row| !row.provider.is_empty())
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
