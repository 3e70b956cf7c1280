//! Validated writes: the steps that all kinds share. Behavior that differs by kind is in `strategy`,
//! `defaults` and `validation`.

use std::sync::Arc;

use serde_json::Value;

use crate::context::{Context, FieldValidation};
use crate::object::Object;
use crate::resource::{Resource, Shape};
use crate::schema::Decoded;
use crate::selector;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;

mod create;
mod delete;
mod update;

pub use create::create;
pub use delete::{DeleteOptions, Deleted, Propagation, delete, delete_now};
pub use update::{Change, Updated, update};

/// Target of a write.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Resource of the object.
    pub resource: &'a Arc<Resource>,
    /// Namespace of the request, empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name in the request, empty for a create.
    pub name: &'a str,
}

impl Target<'_> {
    /// Returns the key of the object in the store.
    #[must_use]
    pub fn key(&self) -> String {
        crate::object::key(self.namespace, self.name)
    }

    /// Returns the error for an object that does not exist.
    #[must_use]
    pub fn not_found(&self) -> Status {
        Status::not_found(self.resource.qualified(), self.name)
    }
}

/// Decodes an object as its kind: checks kind and version, drops or rejects unknown fields, and converts the
/// object to its packed form.
pub fn decode(state: &State, resource: &Resource, mut value: Value, context: &mut Context) -> Result<Value> {
    context.resets_owners = crate::apply::resets_ownership(&value);
    crate::apply::pack(&mut value);
    let api_version = resource.api_version();
    let (sent_version, sent_kind) = (tree::text(&value, &["apiVersion"]), tree::text(&value, &["kind"]));
    if !sent_kind.is_empty() && sent_kind != &*resource.kind {
        let name = tree::text(&value, &["metadata", "name"]);
        return Err(wrong_kind_error(resource, sent_version, sent_kind, name));
    }
    if !sent_version.is_empty() && sent_version != api_version {
        if let Shape::Builtin(_) = resource.shape
            && !is_registered(state, resource, sent_version)
        {
            let kind = &resource.kind;
            let version = sent_version.rsplit('/').next().unwrap_or(sent_version);
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version {sent_version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        return Err(Status::bad_request(format!(
            "the API version in the data ({sent_version}) does not match the expected API version ({api_version})"
        )));
    }
    let mut decoded = decode_fields(state, resource, value)?;
    report_unknown_fields(resource, &decoded.unknown, context)?;
    tree::set(&mut decoded.value, &["apiVersion"], api_version);
    tree::set(&mut decoded.value, &["kind"], &*resource.kind);
    Ok(decoded.value)
}

/// Returns whether the API server has a type for the kind in this version. Served versions have types, and
/// beta versions of the group are treated as registered although they are not served.
fn is_registered(state: &State, resource: &Resource, api_version: &str) -> bool {
    let old = api_version
        .strip_prefix(&*resource.group)
        .is_some_and(|version| version.contains("beta"));
    old || state.resources.find_kind(api_version, &resource.kind).is_some()
}

fn wrong_kind_error(resource: &Resource, sent_version: &str, sent_kind: &str, name: &str) -> Status {
    if let Shape::Custom(_) = resource.shape {
        let kind = Qualified {
            group: &resource.group,
            name: sent_kind,
        };
        let mut errors = crate::field::FieldErrors::new();
        let detail = format!("must be {}", resource.kind);
        errors.invalid(&crate::field::Path::new("kind"), sent_kind, detail);
        return Status::invalid(kind, name, &errors);
    }
    let version = sent_version.rsplit('/').next().unwrap_or(sent_version);
    let package = if resource.group.is_empty() {
        "core"
    } else {
        resource.group.split('.').next().unwrap_or("")
    };
    Status::bad_request(format!(
        "{sent_kind} in version {version:?} cannot be handled as a {kind}: converting (v1.{sent_kind}) to ({package}.{kind}): unknown conversion",
        kind = resource.kind
    ))
}

fn decode_fields(state: &State, resource: &Resource, value: Value) -> Result<Decoded> {
    match &resource.shape {
        Shape::Builtin(Some(id)) => state.schema.decode(*id, value).map_err(|error| {
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {error}",
                kind = resource.kind,
                version = resource.version
            ))
        }),
        Shape::Builtin(None) => Ok(Decoded {
            value,
            unknown: Vec::new(),
        }),
        Shape::Custom(custom) => crate::crd::decode(state, custom, &resource.kind, &resource.version, value),
    }
}

fn report_unknown_fields(resource: &Resource, unknown: &[String], context: &mut Context) -> Result<()> {
    match context.field_validation {
        FieldValidation::Ignore => Ok(()),
        _ if unknown.is_empty() => Ok(()),
        FieldValidation::Warn => {
            for path in unknown {
                context.warn(format!("unknown field {path:?}"));
            }
            Ok(())
        }
        FieldValidation::Strict => {
            let all: Vec<_> = unknown
                .iter()
                .map(|path| format!("unknown field {path:?}"))
                .collect();
            let kind = &resource.kind;
            let shown = all.join(", ");
            Err(Status::bad_request(format!(
                "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {shown}",
                resource.version
            )))
        }
    }
}

/// Adds the warnings about a valid object to the context.
fn warn(target: &Target<'_>, new: &Value, old: Option<&Value>, context: &mut Context) {
    match &target.resource.shape {
        Shape::Custom(_) => crate::crd::warn(new, old, context),
        Shape::Builtin(_)
            if target
                .resource
                .is("apiextensions.k8s.io", "customresourcedefinitions") =>
        {
            crate::crd::definition::warn(new, old, context);
        }
        Shape::Builtin(_) => {}
    }
}

/// Creates an object without storing it, for the response of a dry run.
pub(crate) fn freeze(resource: &Resource, value: &Value) -> Arc<Object> {
    Arc::new(Object::freeze(value, selector::selectable(resource, value)))
}

/// Maximum size of a request to etcd in bytes, the default of its flag `--max-request-bytes`.
pub(crate) const MAX_ETCD_REQUEST: usize = 1536 << 10;

/// Returns the error for an object that is too large for etcd.
pub(crate) fn too_large() -> Status {
    Status::unknown("etcdserver: request is too large")
}

/// Rejects an object that is too large for etcd.
fn check_size(resource: &Resource, value: &Value) -> Result<()> {
    let max = match resource.shape {
        Shape::Custom(_) => MAX_ETCD_REQUEST,
        // The API server stores builtin kinds as protobuf, which is smaller than JSON.
        Shape::Builtin(_) => 2 * MAX_ETCD_REQUEST,
    };
    if tree::max_json_size(value) <= max || freeze(resource, value).size() <= max {
        return Ok(());
    }
    Err(too_large())
}

/// Stores an object, converted to the stored version of its table.
pub(crate) fn persist(state: &mut State, resource: &Resource, value: Value) -> Arc<Object> {
    let value = crate::convert::to_stored(resource, value);
    let fields = selector::selectable(resource, &value);
    state.store.put(&resource.table, value, fields)
}

/// Returns the stored object and its packed tree in the version of the resource.
pub(crate) fn current(state: &State, target: &Target<'_>) -> Option<(Arc<Object>, Value)> {
    let object = state.store.get(&target.resource.table, &target.key())?;
    Some((
        Arc::clone(object),
        crate::convert::from_stored(target.resource, object.packed()),
    ))
}

/// Checks that the namespace of the object is empty or equals the namespace of the request, and sets it.
fn check_namespace(value: &mut Value, target: &Target<'_>) -> Result<()> {
    let given = tree::text(value, &["metadata", "namespace"]);
    let expected = if target.resource.namespaced {
        target.namespace
    } else {
        ""
    };
    if given == expected {
        return Ok(());
    }
    if expected.is_empty() {
        // The namespace of a cluster-scoped object is ignored.
        tree::remove(value, &["metadata", "namespace"]);
        return Ok(());
    }
    if !given.is_empty() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    tree::set(value, &["metadata", "namespace"], expected);
    Ok(())
}
