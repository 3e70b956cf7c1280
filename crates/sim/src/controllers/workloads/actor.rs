//! Writes of controllers. They are admitted and validated like the writes of clients.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::events::{self, NewEvent};
use crate::object::Object;
use crate::resource::Resource;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::write::{self, DeleteOptions, Propagation, Target};

/// Maximum number of pods: the largest cluster that Kubernetes supports. It limits the memory that a typo in
/// `replicas` can use.
const MAX_PODS: usize = 150_000;

/// A resource in its preferred version.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupResource {
    group: &'static str,
    plural: &'static str,
}

impl GroupResource {
    pub(super) const PODS: Self = Self::new("", "pods");

    pub(super) const fn new(group: &'static str, plural: &'static str) -> Self {
        Self { group, plural }
    }
}

/// Name of a controller, with methods for its writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor(pub(super) &'static str);

impl Actor {
    fn context(self) -> Context {
        let mut context = Context::for_controller(self.0);
        "kube-controller-manager".clone_into(&mut context.manager);
        context
    }

    /// Adds a line to the trace.
    pub(super) fn trace(self, state: &mut State, what: std::fmt::Arguments<'_>) {
        if state.trace.is_recorded() {
            let now = state.now();
            state.trace.line(now, &format!("{}: {what}", self.0));
        }
    }

    /// Records an event and adds a line to the trace.
    pub(super) fn record_and_trace(self, state: &mut State, about: &Value, reason: &str, text: &str) {
        self.trace(state, format_args!("{text}"));
        events::record(state, &NewEvent::normal(self.0, about, reason, text));
    }

    /// Records an event.
    pub(super) fn record(self, state: &mut State, about: &Value, reason: &str, text: &str) {
        events::record(state, &NewEvent::normal(self.0, about, reason, text));
    }

    /// Records a warning event.
    pub(super) fn warn(self, state: &mut State, about: &Value, reason: &str, text: &str) {
        events::record(state, &NewEvent::warning(self.0, about, reason, text));
    }

    /// Creates an object.
    pub(super) fn create(
        self,
        state: &mut State,
        resource: GroupResource,
        namespace: &str,
        value: Value,
    ) -> Result<Arc<Object>> {
        let resource = find_resource(state, resource)?;
        if resource.is("", "pods") && state.store.count("pods") >= MAX_PODS {
            let text = format!("pods is forbidden: the cluster already has {MAX_PODS} pods");
            return Err(Status::new(403, "Forbidden", text));
        }
        let target = Target {
            resource: &resource,
            namespace,
            name: "",
        };
        let mut context = self.context();
        let value = write::decode(state, &resource, value, &mut context)?;
        write::create(state, &target, value, &mut context)
    }

    /// Updates an object. `subresource` is empty or `status`.
    pub(super) fn update(
        self,
        state: &mut State,
        resource: GroupResource,
        value: &Value,
        subresource: &str,
    ) -> Result<Arc<Object>> {
        let resource = find_resource(state, resource)?;
        let target = Target {
            resource: &resource,
            namespace: tree::text(value, &["metadata", "namespace"]),
            name: tree::text(value, &["metadata", "name"]),
        };
        let mut context = self.context();
        subresource.clone_into(&mut context.subresource);
        let written = write::update(state, &target, &mut context, false, &mut |_, _, _| {
            Ok(value.clone())
        })?;
        Ok(written.object)
    }

    /// Deletes an object if its uid is unchanged.
    pub(super) fn delete(self, state: &mut State, resource: GroupResource, object: &Object) -> Result<()> {
        let resource = find_resource(state, resource)?;
        let meta = object.meta();
        let target = Target {
            resource: &resource,
            namespace: &meta.namespace,
            name: &meta.name,
        };
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            uid: Some(meta.uid.to_string()),
            ..DeleteOptions::default()
        };
        write::delete(state, &target, &options, &mut self.context()).map(drop)
    }
}

fn find_resource(state: &State, GroupResource { group, plural }: GroupResource) -> Result<Arc<Resource>> {
    let found = state.resources.preferred(group, plural).cloned();
    found.ok_or_else(|| Status::internal(&format!("{plural} are not served")))
}

/// Returns an owner reference to the controller of an object.
pub(super) fn controller_reference(api_version: &str, kind: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "name": tree::text(owner, &["metadata", "name"]), "uid": tree::text(owner, &["metadata", "uid"]),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Returns a pod with this template and owner reference. Its name is generated if `name` ends with a dash.
pub(super) fn pod_from_template(template: &Value, name: &str, owner: &Value) -> Value {
    let mut meta = json!({"ownerReferences": [owner]});
    let field = if name.ends_with('-') {
        "generateName"
    } else {
        "name"
    };
    tree::set(&mut meta, &[field], name);
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = tree::get(template, &["metadata", field]).filter(|value| !value.is_null()) {
            tree::set(&mut meta, &[field], value.clone());
        }
    }
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
}

/// Returns the stored object and its value in packed form.
pub(super) fn load(state: &State, table: &str, key: &str) -> Option<(Arc<Object>, Value)> {
    let object = Arc::clone(state.store.get(table, key)?);
    let value = object.packed();
    Some((object, value))
}
