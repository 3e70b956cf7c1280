//! Revisions of an Application: rendering of built-in components, names, hashes and retention.

use std::collections::BTreeSet;

use mainstay_api::delivery::{
    Application, ApplicationRevision, Component, OAM_NAME_LABEL, REVISION_HASH_LABEL, RenderedComponent,
    RevisionSpec, component_type,
};
use serde_json::{Map, Value, json};

use crate::error::RenderError;
use crate::manifest::hash_value;

/// Default number of unreferenced revisions to keep.
pub const DEFAULT_REVISION_LIMIT: usize = 10;

/// Renders a component. Helm charts are rendered by the caller, because rendering requires the bytes of the
/// chart; the caller passes their manifests as `rendered`.
pub fn render_component(
    component: &Component,
    rendered: Option<Vec<Value>>,
) -> Result<RenderedComponent, RenderError> {
    let manifests = match (component.kind.as_str(), rendered) {
        (_, Some(manifests)) => manifests,
        (component_type::WEB_SERVICE, None) => vec![web_service(component)?],
        (component_type::OBJECTS, None) => objects(component)?,
        (component_type::HELM, None) => return Err(RenderError::NotRendered(component.name.clone())),
        (other, None) => return Err(invalid_properties(component, &format!("unknown type {other:?}"))),
    };
    Ok(RenderedComponent {
        name: component.name.clone(),
        manifests,
    })
}

fn invalid_properties(component: &Component, message: &str) -> RenderError {
    RenderError::Properties {
        component: component.name.clone(),
        message: message.to_owned(),
    }
}

fn objects(component: &Component) -> Result<Vec<Value>, RenderError> {
    let objects = component.properties.get("objects").and_then(Value::as_array);
    objects
        .cloned()
        .ok_or_else(|| invalid_properties(component, "properties.objects is not a list"))
}

/// Properties of a web service that are copied to its container, with the names of the container's fields.
const CONTAINER_FIELDS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("args", "args"),
    ("env", "env"),
    ("imagePullPolicy", "imagePullPolicy"),
    ("livenessProbe", "livenessProbe"),
    ("readinessProbe", "readinessProbe"),
];

/// Returns the Deployment of a web service. Supported properties: `image`, `port` or `ports`, `cmd`,
/// `args`, `env`, `cpu`, `memory`.
fn web_service(component: &Component) -> Result<Value, RenderError> {
    let properties = &component.properties;
    let image = properties.get("image").and_then(Value::as_str);
    let image = image.ok_or_else(|| invalid_properties(component, "properties.image is not set"))?;
    let mut container = Map::from_iter([
        ("name".to_owned(), json!(component.name)),
        ("image".to_owned(), json!(image)),
    ]);
    for (property, field) in CONTAINER_FIELDS {
        if let Some(value) = properties.get(*property) {
            container.insert((*field).to_owned(), value.clone());
        }
    }
    let ports = web_service_ports(component)?;
    if !ports.is_empty() {
        container.insert("ports".to_owned(), Value::Array(ports));
    }
    if let Some(resources) = resources(properties) {
        container.insert("resources".to_owned(), resources);
    }
    Ok(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": component.name},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }))
}

fn web_service_ports(component: &Component) -> Result<Vec<Value>, RenderError> {
    let port = |value: &Value| {
        let number = value.as_u64().filter(|number| (1..=65535).contains(number));
        let number =
            number.ok_or_else(|| invalid_properties(component, "a port is not between 1 and 65535"))?;
        Ok(json!({"containerPort": number}))
    };
    let one = component.properties.get("port").into_iter();
    let list = component
        .properties
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| entry.get("port").unwrap_or(entry));
    one.chain(list).map(port).collect()
}

fn resources(properties: &Value) -> Option<Value> {
    let limits: Map<String, Value> = ["cpu", "memory"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), properties.get(name)?.clone())))
        .collect();
    (!limits.is_empty()).then(|| json!({"limits": limits, "requests": limits}))
}

/// Result of recording a revision.
#[derive(Clone, Debug, PartialEq)]
pub enum RevisionChange {
    /// A revision with these components exists.
    Existing(String),
    /// A new revision must be created.
    Create(Box<ApplicationRevision>),
}

/// Returns the revision for the rendered components of an application. This is an existing revision with
/// the same hash, or a new one named `APPLICATION-vN`, where N is greater than the numbers of all existing
/// revisions.
#[must_use]
pub fn record_revision(
    application: &Application,
    components: Vec<RenderedComponent>,
    existing: &[ApplicationRevision],
) -> RevisionChange {
    let hash = revision_hash(&components);
    let mut own: Vec<&ApplicationRevision> = existing
        .iter()
        .filter(|revision| revision.spec.application_name == application.name())
        .collect();
    own.sort_by_key(|revision| revision.spec.revision);
    let equal = |revision: &&&ApplicationRevision| {
        revision.spec.hash == hash && revision.spec.components == components
    };
    if let Some(found) = own.iter().rev().find(equal) {
        return RevisionChange::Existing(found.name().to_owned());
    }
    let number = own.last().map_or(0, |revision| revision.spec.revision) + 1;
    let name = format!("{}-v{number}", application.name());
    let spec = RevisionSpec {
        application_name: application.name().to_owned(),
        revision: number,
        hash: hash.clone(),
        components,
    };
    let mut revision = ApplicationRevision::new(application.namespace(), &name, spec);
    revision.metadata.labels.extend([
        (OAM_NAME_LABEL.to_owned(), application.name().to_owned()),
        (REVISION_HASH_LABEL.to_owned(), hash),
    ]);
    revision
        .metadata
        .owner_references
        .push(application.owner_reference());
    RevisionChange::Create(Box::new(revision))
}

/// Returns the hash of rendered components.
#[must_use]
pub fn revision_hash(components: &[RenderedComponent]) -> String {
    let list: Vec<Value> = components
        .iter()
        .map(|component| json!([component.name, component.manifests]))
        .collect();
    hash_value(&Value::Array(list))
}

/// Returns the names of revisions to delete: the oldest revisions that are not in `referenced`, beyond the
/// limit. The latest revision is always kept. `referenced` must contain every revision in the spec or
/// status of a deployment.
#[must_use]
pub fn obsolete_revisions(
    application: &Application,
    existing: &[ApplicationRevision],
    referenced: &BTreeSet<String>,
) -> Vec<String> {
    let limit = application.spec.revision_history_limit;
    let limit = limit.map_or(DEFAULT_REVISION_LIMIT, |limit| limit as usize);
    let mut own: Vec<&ApplicationRevision> = existing
        .iter()
        .filter(|revision| revision.spec.application_name == application.name())
        .collect();
    own.sort_by_key(|revision| revision.spec.revision);
    let latest = own.pop();
    let unused: Vec<&str> = own
        .into_iter()
        .map(ApplicationRevision::name)
        .filter(|name| !referenced.contains(*name) && latest.is_none_or(|latest| latest.name() != *name))
        .collect();
    let surplus = unused.len().saturating_sub(limit);
    unused.into_iter().take(surplus).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(kind: &str, properties: Value) -> Component {
        Component {
            name: "web".into(),
            kind: kind.into(),
            properties,
        }
    }

    fn application() -> Application {
        Application::new(
            "shop",
            "example-app",
            mainstay_api::delivery::ApplicationSpec::default(),
        )
    }

    fn record(existing: &mut Vec<ApplicationRevision>, image: &str) -> String {
        let component = component("webservice", json!({"image": image}));
        let rendered = vec![render_component(&component, None).unwrap()];
        match record_revision(&application(), rendered, existing) {
            RevisionChange::Existing(name) => name,
            RevisionChange::Create(revision) => {
                existing.push(*revision.clone());
                revision.name().to_owned()
            }
        }
    }

    #[test]
    fn revisions_are_numbered_and_equal_ones_are_reused() {
        let mut existing = Vec::new();
        assert_eq!(record(&mut existing, "a:1"), "example-app-v1");
        assert_eq!(record(&mut existing, "a:2"), "example-app-v2");
        assert_eq!(record(&mut existing, "a:1"), "example-app-v1");
        existing.remove(0);
        assert_eq!(record(&mut existing, "a:1"), "example-app-v3");
    }

    #[test]
    fn referenced_revisions_are_not_collected() {
        let mut existing = Vec::new();
        for number in 0..6 {
            record(&mut existing, &format!("a:{number}"));
        }
        let mut application = application();
        application.spec.revision_history_limit = Some(2);
        let referenced = BTreeSet::from(["example-app-v1".to_owned()]);
        let obsolete = obsolete_revisions(&application, &existing, &referenced);
        assert_eq!(obsolete, ["example-app-v2", "example-app-v3"]);
    }

    #[test]
    fn a_web_service_becomes_a_deployment() {
        let properties = json!({"image": "a:1", "port": 8000, "cmd": ["run"], "cpu": "1"});
        let rendered = render_component(&component("webservice", properties), None).unwrap();
        let container = &rendered.manifests[0]["spec"]["template"]["spec"]["containers"][0];
        let expected = json!({
            "name": "web", "image": "a:1", "command": ["run"], "ports": [{"containerPort": 8000}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        });
        assert_eq!(container, &expected);
    }

    #[test]
    fn invalid_components_are_rejected() {
        let error = |kind: &str, properties| {
            render_component(&component(kind, properties), None)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("webservice", json!({})),
            "component \"web\": properties.image is not set"
        );
        assert_eq!(
            error("webservice", json!({"image": "a", "port": 0})),
            "component \"web\": a port is not between 1 and 65535"
        );
        assert_eq!(
            error("k8s-objects", json!({})),
            "component \"web\": properties.objects is not a list"
        );
        assert_eq!(
            error("helm", json!({})),
            "component \"web\" is a Helm chart, which is rendered before"
        );
        assert_eq!(error("x", json!({})), "component \"web\": unknown type \"x\"");
    }

    #[test]
    fn only_the_value_true_records_without_replacing() {
        let mut application = application();
        let annotation = mainstay_api::delivery::ROLLOUT_TEMPLATE;
        assert!(!application.is_revision_only());
        application
            .metadata
            .annotations
            .insert(annotation.into(), "yes".into());
        assert!(!application.is_revision_only());
        assert_eq!(application.ignored_annotations(), [annotation]);
        application
            .metadata
            .annotations
            .insert(annotation.into(), "true".into());
        assert!(application.is_revision_only());
    }
}
