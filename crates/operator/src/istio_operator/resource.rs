//! Writes finalizer, status and events of `IstioOperator` resources.

use std::sync::Arc;

use http::Method;
use mainstay_api::istio_operator::{
    API_VERSION, FINALIZER, IstioOperator, IstioOperatorStatus, KIND, PLURAL,
};
use mainstay_cluster::connect::MANAGER;
use mainstay_cluster::event::NamespacedEvent;
use mainstay_cluster::write::{Body, WriteError, Writer};
use mainstay_manifest::controller::ControllerEvent;
use serde_json::{Value, json};

use super::shared::Shared;
use crate::delivery::Name;
use crate::object::{finalizer_operation, string_at, to_json_value};
use crate::report::Report;

/// Writer of finalizer, status and events of resources.
#[derive(Debug)]
pub(super) struct ResourceWriter {
    pub(super) writer: Writer,
    pub(super) shared: Arc<Shared>,
    pub(super) identity: String,
}

fn path(operator: &IstioOperator) -> String {
    let metadata = &operator.metadata;
    format!(
        "/apis/{API_VERSION}/namespaces/{}/{PLURAL}/{}",
        metadata.namespace, metadata.name
    )
}

impl ResourceWriter {
    /// Adds or removes the finalizer.
    pub(super) async fn set_finalizer(
        &self,
        operator: &IstioOperator,
        is_added: bool,
    ) -> Result<(), WriteError> {
        let change = finalizer_operation(&operator.metadata, FINALIZER, is_added);
        self.patch(operator, "", change).await?;
        let (action, reason) = (
            "finalizer",
            if is_added { "FinalizerMissing" } else { "CleanedUp" },
        );
        self.shared.observer.report(&Report::Written { action, reason });
        Ok(())
    }

    /// Replaces the status if it differs from the known one.
    pub(super) async fn set_status(
        &self,
        operator: &IstioOperator,
        status: &IstioOperatorStatus,
    ) -> Result<(), WriteError> {
        if operator.status == *status {
            return Ok(());
        }
        let change = json!({"op": "add", "path": "/status", "value": to_json_value(status)});
        self.patch(operator, "/status", change).await?;
        let (action, reason) = ("status", "StatusChanged");
        self.shared.observer.report(&Report::Written { action, reason });
        Ok(())
    }

    /// Patches a resource if it still has the known version, and stores the response. Reads the resource
    /// again after a conflict.
    async fn patch(
        &self,
        operator: &IstioOperator,
        subresource: &str,
        change: Value,
    ) -> Result<(), WriteError> {
        let metadata = &operator.metadata;
        let body = Body::for_version(&metadata.uid, &metadata.resource_version, [change]);
        let url = format!("{}{subresource}?fieldManager={MANAGER}", path(operator));
        match self.writer.call(Method::PATCH, &url, Some(body)).await {
            Ok(object) => {
                self.observe(object);
                Ok(())
            }
            Err(error) => {
                if error.is_stale() {
                    self.read_again(operator).await?;
                }
                Err(error)
            }
        }
    }

    async fn read_again(&self, operator: &IstioOperator) -> Result<(), WriteError> {
        let now = self.shared.now();
        match self.writer.call(Method::GET, &path(operator), None).await {
            Ok(object) => self.observe(object),
            Err(error) if error.is_not_found() => {
                let metadata = &operator.metadata;
                let name = Name::new(&metadata.namespace, &metadata.name);
                self.shared.with(|index| index.remove(&name, &metadata.uid, now));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stores a response. Removes the resource if it is being deleted and has no finalizers left.
    fn observe(&self, object: Value) {
        let now = self.shared.now();
        let is_deleting = object.pointer("/metadata/deletionTimestamp").is_some();
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let is_deleted = is_deleting && finalizers.is_none_or(Vec::is_empty);
        self.shared.with(|index| {
            if is_deleted {
                let uid = string_at(&object, "/metadata/uid");
                index.remove(&Name::from_object(&object), uid, now);
            } else {
                index.observe(object, now);
            }
        });
    }

    /// Sends an event. A failure is only logged.
    pub(super) async fn send_event(&self, operator: &IstioOperator, event: &ControllerEvent) {
        let metadata = &operator.metadata;
        let event = NamespacedEvent {
            api_version: API_VERSION,
            kind: KIND,
            namespace: &metadata.namespace,
            name: &metadata.name,
            uid: &metadata.uid,
            resource_version: &metadata.resource_version,
            reason: event.reason.name(),
            is_warning: event.is_warning,
            message: &event.message,
        };
        let (path, body) = event.request(&self.identity, self.shared.now());
        match self
            .writer
            .call(Method::POST, &path, Some(Body::Json(body)))
            .await
        {
            Ok(_) => {
                let (action, reason) = ("event", event.reason);
                self.shared.observer.report(&Report::Written { action, reason });
            }
            Err(error) => tracing::debug!(error = %error, "cannot send an event"),
        }
    }
}
