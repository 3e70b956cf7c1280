//! Converts a rendered `IstioOperator` to custom resources and values of gateways. Pure.

use std::sync::Arc;

use mainstay_api::names;
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::installer::text;
use mainstay_manifest::{ComponentName, ComponentObjects, Rendered};
use serde_json::Value;

use crate::AdoptError;
use crate::derive::Derived;
use crate::found::{Component, ComponentKind, Installer, shared_values};
use crate::migrate::comments::KeyPath;
use crate::migrate::compare::{Objects, index_objects};
use crate::migrate::gateways::Gateways;
use crate::migrate::resources::{OperatorCharts, Resources};
use crate::migrate::{Comments, Migration, revision_tags};

/// Converts a rendered `IstioOperator`. `version` is its Istio version, `files` the texts from which it
/// was read.
pub fn to_resources(
    rendered: &Rendered,
    catalog: &Arc<Catalog>,
    version: &Version,
    files: &[String],
) -> Result<Migration, AdoptError> {
    let charts = OperatorCharts::new(catalog);
    let converter = Converter {
        operator: rendered.configuration.clone().into(),
        user: rendered.user_configuration.clone().into(),
        resources: Resources {
            charts: &charts,
            catalog,
            version,
        },
    };
    let mut migration = Migration::default();
    let mut planes = Vec::new();
    for component in &rendered.components {
        planes.extend(converter.convert(component, &mut migration)?);
    }
    let mut components = rendered.components.iter();
    let base = components.find(|one| one.component == ComponentName::Base);
    let base = base.map(index_component).unwrap_or_default();
    converter.resources.compare_base(&planes, &base, &mut migration)?;
    converter.report_overlays(&mut migration);
    for file in files {
        move_comments(&Comments::read(file), &mut migration);
    }
    Ok(migration)
}

/// Fields of `spec`, and their paths in resources.
const PLACES: &[(&str, &[&str])] = &[
    ("profile", &["spec", "profile"]),
    ("hub", &["spec", "values", "global", "hub"]),
    ("tag", &["spec", "values", "global", "tag"]),
    ("meshConfig", &["spec", "values", "meshConfig"]),
    ("values", &["spec", "values"]),
    ("unvalidatedValues", &["spec", "values"]),
];

/// Adds each comment to the first resource that contains its entry.
fn move_comments(comments: &Comments, migration: &mut Migration) {
    let mut rest = comments.clone();
    for (resource, own) in migration.resources.iter().zip(&mut migration.comments) {
        let new_path = |path: &[String]| resource_path(path).filter(|place| is_present(resource, place));
        let (taken, left) = rest.split(new_path);
        own.extend(taken);
        rest = left;
    }
}

fn resource_path(path: &[String]) -> Option<KeyPath> {
    let (spec, rest) = path.split_first()?;
    let (field, rest) = rest.split_first()?;
    let (_, place) = PLACES
        .iter()
        .find(|(known, _)| spec == "spec" && known == field)?;
    let place = place.iter().map(|key| (*key).to_owned());
    Some(place.chain(rest.iter().cloned()).collect())
}

/// Whether a document contains an entry.
pub(super) fn is_present(document: &Value, path: &[String]) -> bool {
    let step = |value: &'_ Value, key: &String| -> Option<Value> {
        match value {
            Value::Array(items) => {
                let index = key.trim_start_matches('[').trim_end_matches(']');
                items.get(index.parse::<usize>().ok()?).cloned()
            }
            _ => value.get(key).cloned(),
        }
    };
    let mut value = document.clone();
    path.iter().all(|key| match step(&value, key) {
        Some(next) => {
            value = next;
            true
        }
        None => false,
    })
}

/// Indexes the rendered objects of a component.
pub(super) fn index_component(component: &ComponentObjects) -> Objects {
    let objects = component.objects.iter();
    index_objects(objects.map(|object| Value::from(object.0.clone())))
}

struct Converter<'a> {
    operator: Value,
    user: Value,
    resources: Resources<'a>,
}

impl Converter<'_> {
    /// Converts a component. Returns the derived resources of a control plane.
    fn convert(
        &self,
        component: &ComponentObjects,
        migration: &mut Migration,
    ) -> Result<Option<Derived>, AdoptError> {
        let kind = match component.component {
            ComponentName::Pilot => ComponentKind::Istiod,
            ComponentName::Cni => ComponentKind::Cni,
            ComponentName::Ztunnel => ComponentKind::Ztunnel,
            ComponentName::Base => {
                migration.drop_field(
                    "components.base",
                    "run `mainstay crds install` for the definitions",
                );
                return Ok(None);
            }
            ComponentName::Addons => {
                migration.drop_field("addonComponents", "add-ons are not part of the operator");
                return Ok(None);
            }
            ComponentName::IngressGateways | ComponentName::EgressGateways => {
                self.gateways().convert(component, migration);
                return Ok(None);
            }
        };
        let before = index_component(component);
        let derived = self.resources.add(&self.component(kind), &before, migration)?;
        Ok(derived.filter(|_| kind == ComponentKind::Istiod))
    }

    fn gateways(&self) -> Gateways<'_> {
        Gateways {
            operator: &self.operator,
            user: &self.user,
            catalog: self.resources.catalog,
            version: self.resources.version,
        }
    }

    /// Returns the component in the form in which it would be detected in a cluster.
    fn component(&self, kind: ComponentKind) -> Component {
        let operator = &self.operator;
        let values = operator.pointer("/spec/values").and_then(Value::as_object);
        let values = values.cloned().unwrap_or_default();
        let namespace = |key: &str| match text(operator, &format!("/spec/components/{key}/namespace")) {
            "" => text(operator, "/spec/values/global/istioNamespace"),
            namespace => namespace,
        };
        let (namespace, values) = match kind {
            ComponentKind::Cni => (namespace("cni"), shared_values(&values, kind)),
            ComponentKind::Ztunnel => (namespace("ztunnel"), shared_values(&values, kind)),
            _ => (namespace("pilot"), values),
        };
        let revision = match text(operator, "/spec/values/revision") {
            "" => names::DEFAULT_REVISION,
            revision => revision,
        };
        let tags = match kind {
            ComponentKind::Istiod => revision_tags(&values),
            _ => Vec::new(),
        };
        Component {
            kind,
            namespace: namespace.to_owned(),
            workload: String::new(),
            revision: revision.to_owned(),
            versions: Vec::new(),
            installer: Installer::Unknown,
            values,
            values_from: String::new(),
            tags,
            instance: String::new(),
        }
    }

    fn report_overlays(&self, migration: &mut Migration) {
        for key in ["pilot", "cni", "ztunnel", "base"] {
            let overlays = self
                .operator
                .pointer(&format!("/spec/components/{key}/k8s/overlays"));
            if overlays
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
            {
                migration.drop_field(
                    format!("components.{key}.k8s.overlays"),
                    "resources have no overlays; the differences show their effect",
                );
            }
        }
    }
}
