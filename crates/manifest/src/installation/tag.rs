//! Generates the objects of a revision tag, equal to those of `istioctl tag generate`.

use mainstay_yaml::{Map, Value};

use crate::component::{Component, ComponentName, Instance};
use crate::diagnostic::Diagnostics;
use crate::generate::generate;
use crate::merge::{map_at, put, text_at};
use crate::object::Object;
use crate::package::{Charts, Profiles};
use crate::path::Path;
use crate::render::Renderer;
use crate::request::{GatewayLists, Request};
use crate::values::ChartInput;

/// Tag of pods and namespaces that do not select a revision.
const DEFAULT: &str = "default";
/// Suffix of the names of injection webhooks.
const INJECTOR_SUFFIX: &str = "sidecar-injector.istio.io";
/// Substring of installer labels, which user-managed tags do not have.
const INSTALLER_LABEL: &str = "operator.istio.io";
/// Prefix of `ApplySet` labels. A tag is not a member of the revision's set.
const SET_LABEL: &str = "applyset.kubernetes.io/";
const TAG: &str = "istio.io/tag";

/// Component with the chart of the default revision's validator.
const DEFAULT_CHART: &Component = &Component {
    name: ComponentName::Pilot,
    key: "pilot",
    is_default: false,
    is_gateway: false,
    chart: "default",
    values_root: &[],
    flattens_values: false,
    workload_kind: "",
    workload: "",
    container: "",
};

/// Error of generating the objects of a tag.
#[derive(Debug, thiserror::Error)]
pub enum TagError {
    /// The revision's webhook configuration has no injection webhook.
    #[error("webhook configuration {0:?} has no injection webhook")]
    NoInjector(String),
    /// The revision's webhook configuration has no revision label.
    #[error("webhook configuration {0:?} has no label istio.io/rev")]
    NoRevision(String),
    /// The charts do not render the object.
    #[error("the charts render no {0} for the tag")]
    NotRendered(&'static str),
    /// The charts cannot be rendered.
    #[error("the charts cannot be rendered")]
    Render(Box<Diagnostics>),
}

/// Properties of a revision's webhook configuration that its tags inherit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CanonicalWebhook {
    revision: String,
    url: String,
    service: String,
    path: String,
    ca_bundle: Option<Value>,
    reinvocation: String,
    labels: Map,
    annotations: Map,
}

impl CanonicalWebhook {
    /// Parses a `MutatingWebhookConfiguration`.
    pub fn from_configuration(configuration: &Value) -> Result<Self, TagError> {
        let empty = Map::new();
        let map = configuration.as_map().unwrap_or(&empty);
        let name = text_at(map, &["metadata", "name"]);
        let revision = text_at(map, &["metadata", "labels", "istio.io/rev"]);
        if revision.is_empty() {
            return Err(TagError::NoRevision(name));
        }
        let hooks = configuration
            .get("webhooks")
            .and_then(Value::as_list)
            .unwrap_or_default();
        let is_injector = |hook: &&Map| text_at(hook, &["name"]).ends_with(INJECTOR_SUFFIX);
        let hook = hooks.iter().filter_map(Value::as_map).find(is_injector);
        let hook = hook.ok_or(TagError::NoInjector(name))?;
        let mut labels = map_at(map, &["metadata", "labels"]);
        labels.retain(|label, _| label != "app" && !label.starts_with(SET_LABEL));
        let client = map_at(hook, &["clientConfig"]);
        Ok(Self {
            revision,
            url: text_at(&client, &["url"]),
            service: text_at(&client, &["service", "name"]),
            path: text_at(&client, &["service", "path"]),
            ca_bundle: client
                .get("caBundle")
                .filter(|it| it.as_str() != Some(""))
                .cloned(),
            reinvocation: text_at(hook, &["reinvocationPolicy"]),
            labels,
            annotations: map_at(map, &["metadata", "annotations"]),
        })
    }

    /// Returns the revision in the form that charts expect: empty for the default revision.
    fn chart_revision(&self) -> &str {
        if self.revision == DEFAULT {
            ""
        } else {
            &self.revision
        }
    }
}

/// A tag to generate.
#[derive(Clone)]
pub struct TagRequest<'a> {
    /// Name of the tag.
    pub tag: &'a str,
    /// Namespace of the control plane.
    pub namespace: &'a str,
    /// Name of the webhook configuration, if it differs from the usual one.
    pub webhook_name: Option<&'a str>,
    /// Whether the default tag injects into all namespaces that do not opt out.
    pub injects_by_default: bool,
    /// Whether the tag is created by a user. User-managed tags have no labels of installers.
    pub is_user_managed: bool,
    /// Labels of the installation that the tag belongs to.
    pub labels: Map,
    /// Existing `istiod-default-validator`. Its failure policies are kept.
    pub validator: Option<&'a Value>,
    /// Source of charts.
    pub charts: &'a dyn Charts,
    /// Source of profiles.
    pub profiles: &'a dyn Profiles,
}

/// Returns the objects of a tag: the webhook configuration, the Service, and for `default` the validator.
pub fn tag_objects(request: &TagRequest<'_>, canonical: &CanonicalWebhook) -> Result<Vec<Object>, TagError> {
    let rendered = render_pilot(request, canonical, canonical.chart_revision())?;
    let mut webhook = find_tag_object(&rendered, "MutatingWebhookConfiguration", request.tag)?;
    complete_webhook(&mut webhook, request, canonical);
    let mut objects = vec![Object(webhook)];
    if request.tag == DEFAULT {
        objects.push(Object(render_validator(request, canonical)?));
    }
    // The Service selects the default revision by name. There is no Service for tags in Istio 1.27 and
    // earlier.
    let rendered = render_pilot(request, canonical, &canonical.revision)?;
    if let Ok(mut service) = find_tag_object(&rendered, "Service", request.tag) {
        add_labels(&mut service, &Map::new(), request);
        objects.push(Object(service));
    }
    Ok(objects)
}

/// Changes a webhook configuration to match no objects, because a tag replaces it.
pub fn deactivate(configuration: &mut Value) {
    let never = Value::Map(Map::from([(
        "matchLabels".to_owned(),
        Value::Map(Map::from([(
            "istio.io/deactivated".to_owned(),
            "never-match".into(),
        )])),
    )]));
    for hook in hooks_mut(configuration) {
        hook.insert("namespaceSelector".into(), never.clone());
        hook.insert("objectSelector".into(), never.clone());
    }
}

fn render_pilot(
    request: &TagRequest<'_>,
    canonical: &CanonicalWebhook,
    revision: &str,
) -> Result<Vec<Object>, TagError> {
    let mut sets = vec![
        "profile=empty".to_owned(),
        "components.pilot.enabled=true".to_owned(),
        format!("revision={revision}"),
        format!("values.revisionTags.[0]={}", request.tag),
        format!(
            "values.sidecarInjectorWebhook.enableNamespacesByDefault={}",
            request.injects_by_default
        ),
        format!("values.istiodRemote.injectionURL={}", canonical.url),
        format!("values.global.istioNamespace={}", request.namespace),
    ];
    if !canonical.reinvocation.is_empty() {
        let policy = &canonical.reinvocation;
        sets.push(format!(
            "values.sidecarInjectorWebhook.reinvocationPolicy={policy}"
        ));
    }
    let rendered = generate(&Request {
        files: Vec::new(),
        sets,
        revision: None,
        force: false,
        gateway_lists: GatewayLists::default(),
        kube_version: None,
        is_confined: false,
        profiles: request.profiles,
        charts: request.charts,
    });
    let rendered = rendered.map_err(|problems| TagError::Render(Box::new(problems)))?;
    Ok(rendered
        .components
        .into_iter()
        .flat_map(|one| one.objects)
        .collect())
}

fn find_tag_object(objects: &[Object], kind: &'static str, tag: &str) -> Result<Value, TagError> {
    let is_tag = |object: &&Object| {
        let label = object.0.at(&["metadata", "labels", TAG]).and_then(Value::as_str);
        object.kind() == kind && label == Some(tag)
    };
    let found = objects.iter().find(is_tag);
    found
        .map(|object| object.0.clone())
        .ok_or(TagError::NotRendered(kind))
}

fn complete_webhook(webhook: &mut Value, request: &TagRequest<'_>, canonical: &CanonicalWebhook) {
    for hook in hooks_mut(webhook) {
        set_ca_bundle(hook, canonical);
        let has_service = hook
            .get("clientConfig")
            .and_then(|client| client.get("service"))
            .is_some();
        if has_service {
            put(
                hook,
                &["clientConfig", "service", "path"],
                canonical.path.as_str().into(),
            );
            put(
                hook,
                &["clientConfig", "service", "name"],
                canonical.service.as_str().into(),
            );
        }
    }
    add_labels(webhook, &canonical.labels, request);
    add_annotations(webhook, canonical);
    if let (Some(name), Some(map)) = (request.webhook_name, webhook.as_map_mut()) {
        put(map, &["metadata", "name"], name.into());
    }
}

fn render_validator(request: &TagRequest<'_>, canonical: &CanonicalWebhook) -> Result<Value, TagError> {
    let mut values = Map::new();
    put(&mut values, &["revision"], canonical.chart_revision().into());
    put(
        &mut values,
        &["base", "validationURL"],
        validation_url(&canonical.url).into(),
    );
    put(
        &mut values,
        &["global", "istioNamespace"],
        request.namespace.into(),
    );
    let input = ChartInput {
        instance: Instance {
            component: DEFAULT_CHART,
            path: Path::default(),
            gateway: String::new(),
            namespace: request.namespace.to_owned(),
            block: Map::new(),
        },
        values,
    };
    let failed = |problem: Box<crate::Diagnostic>| TagError::Render(Box::new((*problem).into()));
    let mut renderer = Renderer::new(request.charts, "v1.32.0").map_err(failed)?;
    let objects = renderer
        .render(&input, &mut Diagnostics::default())
        .map_err(failed)?;
    let found = objects
        .into_iter()
        .find(|object| object.kind() == "ValidatingWebhookConfiguration");
    let mut found = found
        .ok_or(TagError::NotRendered("ValidatingWebhookConfiguration"))?
        .0;
    for hook in hooks_mut(&mut found) {
        set_ca_bundle(hook, canonical);
        keep_policy(hook, request.validator);
    }
    add_labels(&mut found, &canonical.labels, request);
    add_annotations(&mut found, canonical);
    Ok(found)
}

/// Keeps the failure policy of the existing webhook, because istiod makes it stricter. The policy `Fail` is
/// kept by omitting the field.
fn keep_policy(hook: &mut Map, live: Option<&Value>) {
    let hooks = live
        .and_then(|live| live.get("webhooks")?.as_list())
        .unwrap_or_default();
    let Some(same) = hooks.iter().find(|one| one.get("name") == hook.get("name")) else {
        return;
    };
    match same.get("failurePolicy") {
        Some(policy) if policy.as_str() != Some("Fail") => {
            hook.insert("failurePolicy".into(), policy.clone());
        }
        _ => {
            hook.remove("failurePolicy");
        }
    }
}

/// Returns the URL of the validation webhook: the injection URL with another path.
fn validation_url(injection: &str) -> String {
    let Some((scheme, rest)) = injection.split_once("://") else {
        return injection.to_owned();
    };
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    format!("{scheme}://{host}/validate")
}

fn set_ca_bundle(hook: &mut Map, canonical: &CanonicalWebhook) {
    match &canonical.ca_bundle {
        Some(bundle) => put(hook, &["clientConfig", "caBundle"], bundle.clone()),
        None => {
            if let Some(client) = hook.get_mut("clientConfig").and_then(Value::as_map_mut) {
                client.remove("caBundle");
            }
        }
    }
}

fn add_labels(object: &mut Value, more: &Map, request: &TagRequest<'_>) {
    let Some(map) = object.as_map_mut() else { return };
    let mut labels = map_at(map, &["metadata", "labels"]);
    labels.extend(more.clone());
    labels.extend(request.labels.clone());
    if request.is_user_managed {
        labels.retain(|label, _| !label.contains(INSTALLER_LABEL));
    }
    put(map, &["metadata", "labels"], Value::Map(labels));
}

fn add_annotations(object: &mut Value, canonical: &CanonicalWebhook) {
    if canonical.annotations.is_empty() {
        return;
    }
    let Some(map) = object.as_map_mut() else { return };
    let mut annotations = map_at(map, &["metadata", "annotations"]);
    annotations.extend(canonical.annotations.clone());
    put(map, &["metadata", "annotations"], Value::Map(annotations));
}

fn hooks_mut(configuration: &mut Value) -> impl Iterator<Item = &mut Map> {
    let hooks = configuration.as_map_mut().and_then(|map| map.get_mut("webhooks"));
    let hooks = match hooks {
        Some(Value::List(hooks)) => Some(hooks),
        _ => None,
    };
    hooks.into_iter().flatten().filter_map(Value::as_map_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_validation_url_is_replaced() {
        let check = |url: &str, expected: &str| assert_eq!(validation_url(url), expected);
        check(
            "https://istiod.example:15017/inject",
            "https://istiod.example:15017/validate",
        );
        check("https://istiod.example", "https://istiod.example/validate");
        check("", "");
    }

    #[test]
    fn a_configuration_without_injection_webhook_is_rejected() {
        let read = |text: &str| {
            let value = mainstay_yaml::parse(text.as_bytes(), &mainstay_yaml::Budget::default());
            CanonicalWebhook::from_configuration(&value.unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(
            read("metadata: {name: x}"),
            Err("webhook configuration \"x\" has no label istio.io/rev".into())
        );
        assert_eq!(
            read("metadata: {name: x, labels: {istio.io/rev: a}}\nwebhooks: [{name: other}]"),
            Err("webhook configuration \"x\" has no injection webhook".into())
        );
    }
}
