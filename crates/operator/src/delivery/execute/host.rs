//! Steps in the host cluster: writes objects of the delivery kinds and events, and takes measurements.

use std::collections::BTreeMap;

use futures::future::join_all;
use http::Method;
use mainstay_api::delivery::{
    API_VERSION, ApplicationDeployment, FINALIZER, InventoryGroup, InventorySpec, ResourceInventory,
};
use mainstay_cluster::connect::MANAGER;
use mainstay_cluster::event::NamespacedEvent;
use mainstay_cluster::write::{Body, WriteError};
use mainstay_rollout::plan::{Action, InventoryWrite, Step};
use mainstay_rollout::snapshot::{Measurement, Version};
use serde_json::{Value, json};

use super::Executor;
use super::objects::{delete_options, get};
use crate::delivery::index::HostKind;
use crate::delivery::names::Name;
use crate::delivery::observed::metadata_version;
use crate::object::{finalizer_operation, to_json_value};

/// Returns the URL path of an object in the host cluster.
pub(crate) fn host_path(kind: HostKind, name: &Name) -> String {
    format!("{}/{}", collection_path(kind, &name.namespace), name.name)
}

fn collection_path(kind: HostKind, namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/{}", kind.plural())
}

/// An object in the host cluster, and the version that a write requires.
pub(crate) struct HostObject<'a> {
    pub(crate) kind: HostKind,
    pub(crate) name: &'a Name,
    pub(crate) precondition: &'a Version,
}

impl Executor {
    /// Runs a step in the host cluster.
    pub(super) async fn run_host_step(
        &self,
        deployment: &ApplicationDeployment,
        step: &Step,
    ) -> Result<(), WriteError> {
        let name = Name::new(deployment.namespace(), deployment.name());
        let object = |precondition| HostObject {
            kind: HostKind::Deployment,
            name: &name,
            precondition,
        };
        match &step.action {
            Action::AddFinalizer(precondition) => {
                let change = finalizer_operation(&deployment.metadata, FINALIZER, true);
                self.patch_host(object(precondition), "", change).await?;
            }
            Action::RemoveFinalizer(precondition) => {
                let change = finalizer_operation(&deployment.metadata, FINALIZER, false);
                self.patch_host(object(precondition), "", change).await?;
            }
            Action::WriteInventory(write) => self.write_inventory(deployment, write).await?,
            Action::WriteStatus(precondition, status) => {
                self.write_status(object(precondition), to_json_value(status))
                    .await?;
            }
            Action::CompleteAction {
                name: action,
                version,
                status,
            } => {
                let action = Name::new(deployment.namespace(), action);
                let object = HostObject {
                    kind: HostKind::Action,
                    name: &action,
                    precondition: version,
                };
                self.write_status(object, to_json_value(status)).await?;
            }
            Action::Measure(request) => {
                let results = join_all([self.metrics.query(request)]).await;
                let now = self.shared.now();
                for result in results {
                    let measurement = Measurement {
                        key: request.key.clone(),
                        at: now,
                        value: result.value,
                        samples: result.samples,
                    };
                    self.shared
                        .with(|index| index.add_measurement(&name, measurement));
                }
            }
            Action::Event { is_warning, message } => {
                let about = EventSubject::for_deployment(deployment);
                self.send_event(&about, step.reason.name(), *is_warning, message)
                    .await;
            }
            Action::EnsureNamespace(_)
            | Action::Apply(_)
            | Action::Scale(_)
            | Action::Delete(_)
            | Action::Release(_) => {}
        }
        self.report_written(step);
        Ok(())
    }

    /// Replaces the status of an object.
    pub(crate) async fn write_status(&self, object: HostObject<'_>, status: Value) -> Result<(), WriteError> {
        let change = json!({"op": "add", "path": "/status", "value": status});
        self.patch_host(object, "/status", change).await
    }

    /// Patches an object if it has the expected version, and stores the response.
    pub(crate) async fn patch_host(
        &self,
        object: HostObject<'_>,
        subresource: &str,
        change: Value,
    ) -> Result<(), WriteError> {
        let HostObject {
            kind,
            name,
            precondition,
        } = object;
        let body = Body::for_version(&precondition.uid, &precondition.resource_version, [change]);
        let path = format!("{}{subresource}?fieldManager={MANAGER}", host_path(kind, name));
        match self.host.call(Method::PATCH, &path, Some(body)).await {
            Ok(object) => {
                self.shared.with(|index| index.observe_host(kind, object));
                Ok(())
            }
            Err(error) => self.read_host_again(kind, name, precondition, error).await,
        }
    }

    /// Reads an object again after a conflict. Always returns an error: that of the write, or that of the
    /// read.
    async fn read_host_again(
        &self,
        kind: HostKind,
        name: &Name,
        precondition: &Version,
        error: WriteError,
    ) -> Result<(), WriteError> {
        if error.is_stale() {
            let found = get(&self.host, &host_path(kind, name)).await?;
            self.shared.with(|index| match found {
                Some(object) => index.observe_host(kind, object),
                None => index.remove_host(kind, &deleted_object(name, &precondition.uid)),
            });
        }
        Err(error)
    }

    /// Creates an object and stores the response. If the object already exists, it is read, and the
    /// conflict is returned.
    pub(crate) async fn create_host(
        &self,
        kind: HostKind,
        namespace: &str,
        body: Value,
    ) -> Result<(), WriteError> {
        let name = body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name = Name::new(namespace, name);
        let path = format!("{}?fieldManager={MANAGER}", collection_path(kind, namespace));
        match self.host.call(Method::POST, &path, Some(Body::Json(body))).await {
            Ok(object) => {
                self.shared.with(|index| index.observe_host(kind, object));
                Ok(())
            }
            Err(error) => {
                self.read_host_again(kind, &name, &Version::default(), error)
                    .await
            }
        }
    }

    /// Deletes an object if it has the expected version. Succeeds if the object does not exist.
    pub(crate) async fn delete_host(&self, object: HostObject<'_>) -> Result<(), WriteError> {
        let HostObject {
            kind,
            name,
            precondition,
        } = object;
        let body = Body::Json(delete_options(precondition));
        match self
            .host
            .call(Method::DELETE, &host_path(kind, name), Some(body))
            .await
        {
            Ok(_) => {
                let deleted = deleted_object(name, &precondition.uid);
                self.shared.with(|index| index.remove_host(kind, &deleted));
                Ok(())
            }
            Err(error) if error.is_not_found() => self
                .read_host_again(kind, name, precondition, error)
                .await
                .or(Ok(())),
            Err(error) => self.read_host_again(kind, name, precondition, error).await,
        }
    }

    async fn write_inventory(
        &self,
        deployment: &ApplicationDeployment,
        write: &InventoryWrite,
    ) -> Result<(), WriteError> {
        let name = Name::new(deployment.namespace(), &write.name);
        let kind = HostKind::Inventory;
        let spec = inventory_spec(deployment, write);
        match &write.precondition {
            Some(precondition) if write.objects.is_empty() => {
                self.delete_host(HostObject {
                    kind,
                    name: &name,
                    precondition,
                })
                .await
            }
            None if write.objects.is_empty() => Ok(()),
            Some(precondition) => {
                let change = json!({"op": "add", "path": "/spec", "value": spec});
                self.patch_host(
                    HostObject {
                        kind,
                        name: &name,
                        precondition,
                    },
                    "",
                    change,
                )
                .await
            }
            None => {
                let mut inventory = ResourceInventory::new(&name.namespace, &name.name, spec);
                inventory
                    .metadata
                    .owner_references
                    .push(deployment.owner_reference());
                self.create_host(kind, &name.namespace, to_json_value(&inventory))
                    .await
            }
        }
    }

    /// Sends an event. A failure does not fail the plan.
    pub(crate) async fn send_event(
        &self,
        about: &EventSubject<'_>,
        reason: &str,
        is_warning: bool,
        message: &str,
    ) {
        let event = NamespacedEvent {
            api_version: API_VERSION,
            kind: about.kind,
            namespace: &about.name.namespace,
            name: &about.name.name,
            uid: &about.version.uid,
            resource_version: &about.version.resource_version,
            reason,
            is_warning,
            message,
        };
        let (path, body) = event.request(&self.identity, self.shared.now());
        if let Err(error) = self.host.call(Method::POST, &path, Some(Body::Json(body))).await {
            tracing::debug!(error = %error, "cannot send an event");
        }
    }
}

/// Object that an event is about.
pub(crate) struct EventSubject<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: Name,
    pub(crate) version: Version,
}

impl EventSubject<'_> {
    fn for_deployment(deployment: &ApplicationDeployment) -> Self {
        Self {
            kind: "ApplicationDeployment",
            name: Name::new(deployment.namespace(), deployment.name()),
            version: metadata_version(&deployment.metadata),
        }
    }
}

fn deleted_object(name: &Name, uid: &str) -> Value {
    json!({"metadata": {"namespace": name.namespace, "name": name.name, "uid": uid}})
}

fn inventory_spec(deployment: &ApplicationDeployment, write: &InventoryWrite) -> InventorySpec {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<String>> = BTreeMap::new();
    for key in &write.objects {
        let group = (
            key.api_version.as_str(),
            key.kind.as_str(),
            key.namespace.as_str(),
        );
        groups.entry(group).or_default().push(key.name.clone());
    }
    let group = |((api_version, kind, namespace), mut names): ((&str, &str, &str), Vec<String>)| {
        names.sort();
        InventoryGroup {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            names,
        }
    };
    InventorySpec {
        deployment_name: deployment.name().to_owned(),
        cluster_name: write.cluster.clone(),
        objects: groups.into_iter().map(group).collect(),
    }
}
