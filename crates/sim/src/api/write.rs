//! Writes: create, update, delete and delete collection.

use serde_json::{Value, json};

use super::ResourceRequest;
use super::read::{parse_selector, representation_for};
use super::response::ApiResponse;
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::object::Object;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;
use crate::write::{self, DeleteOptions, Deleted, Target};

pub(super) fn create(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    check_options(request, "CreateOptions")?;
    let value = parse_object(request)?;
    reject_untyped(request, &value)?;
    let value = write::decode(state, request.resource, value, context)?;
    let object = write::create(state, &request.target(), value, context)?;
    Ok(ApiResponse::object(
        state,
        request.resource,
        &object,
        201,
        form,
        include,
    ))
}

pub(super) fn update(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    check_options(request, "UpdateOptions")?;
    let value = parse_object(request)?;
    let value = write::decode(state, request.resource, value, context)?;
    let upsert = request.resource.traits.upsert;
    let written = write::update(state, &request.target(), context, upsert, &mut |_, _, _| {
        Ok(value.clone())
    })?;
    let code = if written.created { 201 } else { 200 };
    Ok(ApiResponse::object(
        state,
        request.resource,
        &written.object,
        code,
        form,
        include,
    ))
}

/// Rejects a custom object without apiVersion or kind.
fn reject_untyped(request: &ResourceRequest<'_>, value: &Value) -> Result<()> {
    let custom = matches!(request.resource.shape, crate::resource::Shape::Custom(_));
    let missing = [("Kind", "kind"), ("apiVersion", "apiVersion")]
        .into_iter()
        .find(|(_, key)| tree::text(value, &[key]).is_empty());
    match missing.filter(|_| custom) {
        None => Ok(()),
        Some((name, _)) => {
            let (kind, text) = (
                &request.resource.kind,
                String::from_utf8_lossy(&request.call.body),
            );
            Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object '{name}' is missing in '{text}' ({text})"
            )))
        }
    }
}

/// Parses the request body as an object.
pub(super) fn parse_object(request: &ResourceRequest<'_>) -> Result<Value> {
    let media = request.call.content_type.split(';').next().unwrap_or("").trim();
    if !matches!(media, "" | "application/json" | "application/yaml" | "*/*") {
        let text = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor";
        return Err(Status::unsupported_media_type(text));
    }
    let kind = &request.resource.kind;
    if media == "application/yaml" {
        let text = String::from_utf8_lossy(&request.call.body);
        return crate::snapshot::parse_document(&text).map_err(|error| {
            let text = format!("the object provided is unrecognized (must be of type {kind}): {error}");
            Status::bad_request(text)
        });
    }
    crate::object::parse_packed(&request.call.body).map_err(|error| {
        let shown = String::from_utf8_lossy(&request.call.body).chars().take(1024).collect::<String>();
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {} ({})",
            go_syntax_error(&error, &request.call.body),
            to_hex(&shown)
        ))
    })
}

/// Returns Go's error text for the two most common JSON syntax errors.
fn go_syntax_error(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let line = body
        .split(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1))
        .unwrap_or(&[]);
    let found = line
        .get(error.column().saturating_sub(1))
        .copied()
        .map_or('?', char::from);
    format!("invalid character '{found}' looking for beginning of value")
}

fn to_hex(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Validates `dryRun`, `fieldValidation` and `fieldManager`.
pub(super) fn check_options(request: &ResourceRequest<'_>, kind: &str) -> Result<()> {
    let query = &request.call.query;
    let mut errors = FieldErrors::new();
    if let Some(other) = query.find("dryRun").filter(|text| *text != "All") {
        errors.not_supported(&Path::new("dryRun"), json!([other]), &["All"]);
    }
    let validation = query.get("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        errors.not_supported(
            &Path::new("fieldValidation"),
            validation,
            &["", "Ignore", "Strict", "Warn"],
        );
    }
    if query.get("fieldManager").len() > 128 {
        errors.too_long(&Path::new("fieldManager"), 128);
    }
    let kind = Qualified {
        group: "meta.k8s.io",
        name: kind,
    };
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(kind, "", &errors))
    }
}

/// Returns the options of a delete: those in the body if there is one, otherwise those in the query.
pub(super) fn delete_options(request: &ResourceRequest<'_>, context: &mut Context) -> Result<DeleteOptions> {
    let mut options = json!({});
    check_options(request, "DeleteOptions")?;
    if request.call.body.is_empty() {
        let query = &request.call.query;
        if let Some(policy) = query.find("propagationPolicy") {
            tree::set(&mut options, &["propagationPolicy"], policy);
        }
        if let Ok(grace) = query.get("gracePeriodSeconds").parse::<i64>() {
            tree::set(&mut options, &["gracePeriodSeconds"], grace);
        }
        if query.find("orphanDependents").is_some() {
            tree::set(
                &mut options,
                &["orphanDependents"],
                query.flag("orphanDependents"),
            );
        }
    } else {
        options = super::parse_body(&request.call.body, "delete options")?;
        let dry_run = tree::list(&options, &["dryRun"]);
        if dry_run.iter().any(|one| one != "All") {
            let mut errors = FieldErrors::new();
            errors.not_supported(&Path::new("dryRun"), dry_run.to_vec(), &["All"]);
            let kind = Qualified {
                group: "meta.k8s.io",
                name: "DeleteOptions",
            };
            return Err(Status::invalid(kind, "", &errors));
        }
        if !dry_run.is_empty() {
            context.dry_run = true;
        }
    }
    context.options = options.clone();
    DeleteOptions::parse(&options)
}

pub(super) fn delete(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    let options = delete_options(request, context)?;
    let resource = request.resource;
    Ok(
        match write::delete(state, &request.target(), &options, context)? {
            Deleted::Marked(object) => ApiResponse::object(state, resource, &object, 200, form, include),
            Deleted::AlreadyMarked(object)
                if resource.traits.returns_deleted || resource.is("", "namespaces") =>
            {
                ApiResponse::object(state, resource, &object, 200, form, include)
            }
            Deleted::Removed(object) if resource.traits.returns_deleted => {
                ApiResponse::object(state, resource, &object, 200, form, include)
            }
            Deleted::Removed(object) | Deleted::AlreadyMarked(object) => {
                ApiResponse::json(200, &success_status(request, &object))
            }
        },
    )
}

fn success_status(request: &ResourceRequest<'_>, object: &Object) -> Value {
    let resource = request.resource;
    let mut details =
        json!({"name": &*object.meta().name, "kind": &*resource.plural, "uid": &*object.meta().uid});
    if !resource.group.is_empty() {
        tree::set(&mut details, &["group"], &*resource.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub(super) fn delete_collection(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let selector = parse_selector(request)?;
    let options = delete_options(request, context)?;
    let resource = request.resource;
    let found: Vec<_> = state
        .store
        .range(&resource.table, &request.path.namespace, None)
        .map(|(_, object)| std::sync::Arc::clone(object))
        .filter(|object| selector.matches(object))
        .collect();
    let version = state.store.version();
    for object in &found {
        let target = Target {
            resource,
            namespace: &object.meta().namespace,
            name: &object.meta().name,
        };
        match write::delete(state, &target, &options, context) {
            Err(status) if status.code() != 404 => return Err(status),
            _ => {}
        }
    }
    let mut items = Vec::new();
    for object in &found {
        let mut item = crate::convert::from_stored(resource, object.value());
        if matches!(resource.shape, crate::resource::Shape::Builtin(_)) {
            tree::remove(&mut item, &["kind"]);
            tree::remove(&mut item, &["apiVersion"]);
        }
        items.push(item);
    }
    let list = json!({
        "kind": resource.list_kind(), "apiVersion": resource.api_version(),
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    });
    Ok(ApiResponse::json(200, &list))
}
