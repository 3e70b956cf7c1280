//! Lists, sets and removes revision tags in the cluster.

use std::collections::BTreeMap;

use http::Method;
use mainstay_manifest::{LiveTag, Object, deactivate};
use mainstay_yaml::{Budget, Numbers, parse_json};
use serde_json::{Map, Value, json};

use super::components::set_error;
use super::error::InstallError;
use super::sets::{InstalledSet, SetName, installed_sets};
use super::{Installer, api, member};
use crate::connect::MANAGER;
use crate::desired::{Desired, Inventory, ObjectId, set_id};
use crate::live::Known;
use crate::write::Body;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const SERVICES: &str = "/api/v1/services";

/// A revision tag.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LiveRevisionTag {
    /// Name of the tag.
    pub tag: String,
    /// Revision that the tag points to.
    pub revision: String,
    /// Namespaces that use the tag.
    pub namespaces: Vec<String>,
    /// Name of the webhook configuration or Service of the tag.
    #[serde(skip)]
    pub webhook: String,
    /// Whether an installation created the tag.
    #[serde(skip)]
    pub is_installed: bool,
}

impl Installer {
    /// Returns all tags, sorted by name and revision.
    pub async fn tags(&self) -> Result<Vec<LiveRevisionTag>, InstallError> {
        let mut found = api::list(&self.client, MUTATING, "istio.io/tag").await?;
        found.extend(api::list(&self.client, SERVICES, "istio.io/tag,app=istiod").await?);
        let namespaces = api::list(&self.client, "/api/v1/namespaces", "").await?;
        let revisions = installed_sets(&self.client).await?;
        let mut tags = BTreeMap::new();
        for object in found {
            let tag = LiveRevisionTag {
                tag: label(&object, "istio.io/tag"),
                revision: label(&object, "istio.io/rev"),
                webhook: text(&object, "/metadata/name"),
                is_installed: is_installed(&object, &revisions),
                namespaces: namespaces_using(&namespaces, &label(&object, "istio.io/tag")),
            };
            tags.entry((tag.tag.clone(), tag.revision.clone())).or_insert(tag);
        }
        Ok(tags.into_values().collect())
    }

    /// Returns the default tag, or `None` if there is none.
    pub async fn default_tag(&self) -> Result<Option<LiveTag>, InstallError> {
        let found = api::list(
            &self.client,
            MUTATING,
            "app=sidecar-injector,istio.io/tag=default",
        )
        .await?;
        let sets = installed_sets(&self.client).await?;
        Ok(found.first().map(|object| LiveTag {
            revision: label(object, "istio.io/rev"),
            is_installed: is_installed(object, &sets),
        }))
    }

    /// Returns the webhook configurations that inject for a revision, without those of tags.
    pub async fn injectors(&self, revision: &str) -> Result<Vec<Value>, InstallError> {
        let selector = format!("istio.io/rev={revision},!istio.io/tag");
        api::list(&self.client, MUTATING, &selector).await
    }

    /// Returns the live validator of the default revision.
    pub async fn default_validator(&self) -> Result<Option<Value>, InstallError> {
        api::get(&self.client, &format!("{VALIDATING}/istiod-default-validator")).await
    }

    /// Applies the objects of a tag as members of the set of tags. Returns the number of objects written.
    pub async fn set_tag(&self, namespace: &str, objects: &[Object]) -> Result<usize, InstallError> {
        let key = SetName::Tags.key(namespace);
        let sets = installed_sets(&self.client).await?;
        let bodies = member::to_json(objects)?;
        let mut inventory = Inventory::for_set(&key, Map::new());
        bodies
            .iter()
            .filter_map(|body| ObjectId::from_object(body).ok())
            .for_each(|id| inventory.add(&id));
        if let Some(live) = sets.iter().find(|set| set.key == key) {
            inventory.add_listed(&live.live);
        }
        let recorded = self
            .engine
            .write_inventory(&Desired::for_inventory(key.clone(), inventory))
            .await;
        recorded.map_err(|partial| set_error(&key, partial))?;
        let failed = |error| InstallError::Set {
            set: key.to_string(),
            error: Box::new(error),
        };
        let desired = self
            .engine
            .desired(key.clone(), None, bodies)
            .await
            .map_err(failed)?;
        let desired = desired.with_accepted_sets(sets.iter().map(|set| set_id(&set.key)).collect());
        let changes = self.engine.install(&desired, Known::default()).await;
        let changes = changes.map_err(|partial| set_error(&key, partial))?;
        Ok(changes.iter().filter(|change| change.kind.is_write()).count())
    }

    /// Changes the injector of the default revision so that it matches no pod, because a tag replaces it.
    pub async fn deactivate_default_injector(&self) -> Result<(), InstallError> {
        for configuration in self.injectors("default").await? {
            let mut changed = parse_json(configuration.to_string(), Numbers::Exact, &Budget::default())
                .map_err(|error| InstallError::Object(Box::new(error)))?;
            deactivate(&mut changed);
            let [changed] = member::to_json(&[Object(changed)])?
                .try_into()
                .unwrap_or_default();
            let hooks = changed.get("webhooks");
            if hooks == configuration.get("webhooks") {
                continue;
            }
            let version = configuration.pointer("/metadata/resourceVersion");
            let body = json!({"metadata": {"resourceVersion": version}, "webhooks": hooks});
            let path = format!(
                "{MUTATING}/{}?fieldManager={MANAGER}",
                text(&configuration, "/metadata/name")
            );
            let sent = api::send(&self.client, Method::PATCH, &path, Body::Merge(body)).await;
            sent.map_err(|error| InstallError::Write { what: path, error })?;
        }
        Ok(())
    }

    /// Deletes all objects of a tag, regardless of the tool that created them, and the inventory of the last
    /// tag. Returns the number of objects of the tag.
    pub async fn remove_tag(&self, tag: &str) -> Result<usize, InstallError> {
        let selector = format!("istio.io/tag={tag}");
        let mut count = 0;
        for collection in [MUTATING, VALIDATING, SERVICES] {
            for object in api::list(&self.client, collection, &selector).await? {
                self.delete(collection, &object).await?;
                count += 1;
            }
        }
        self.delete_empty_inventories().await?;
        Ok(count)
    }

    async fn delete_empty_inventories(&self) -> Result<(), InstallError> {
        let sets = installed_sets(&self.client).await?;
        for set in sets.iter().filter(|set| set.name == SetName::Tags) {
            if member::members(&self.client, set).await?.is_empty() {
                self.delete_inventory(set).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, collection: &str, object: &Value) -> Result<(), InstallError> {
        let (namespace, name) = (
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
        );
        let path = if namespace.is_empty() {
            format!("{collection}/{name}")
        } else {
            collection.replace("/v1/", &format!("/v1/namespaces/{namespace}/")) + "/" + &name
        };
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": object.pointer("/metadata/uid")},
        });
        match api::send(&self.client, Method::DELETE, &path, Body::Json(body)).await {
            Err(error) if !error.is_not_found() => Err(InstallError::Write { what: path, error }),
            _ => Ok(()),
        }
    }
}

/// Whether an object is a member of a revision's set.
fn is_installed(object: &Value, sets: &[InstalledSet]) -> bool {
    let part = label(object, crate::desired::APPLY_SET_PART);
    let revisions = sets.iter().filter(|set| matches!(set.name, SetName::Revision(_)));
    revisions.into_iter().any(|set| set_id(&set.key) == part)
}

/// Returns the namespaces that use a tag by the label `istio.io/rev`, or the default tag by
/// `istio-injection`.
fn namespaces_using(namespaces: &[Value], tag: &str) -> Vec<String> {
    let uses = |namespace: &&Value| {
        let revision = label(namespace, "istio.io/rev");
        revision == tag || (tag == "default" && label(namespace, "istio-injection") == "enabled")
    };
    namespaces
        .iter()
        .filter(uses)
        .map(|one| text(one, "/metadata/name"))
        .collect()
}

fn label(object: &Value, name: &str) -> String {
    let labels = object.pointer("/metadata/labels");
    let label = labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
    label.unwrap_or_default().to_owned()
}

fn text(object: &Value, at: &str) -> String {
    object
        .pointer(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
