//! PATCH: takes one of four patch types, gives the changed object.

use serde_json::Value;

use super::Request;
use super::read::form_of;
use super::reply::ApiResponse;
use super::write::check_options;
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::patch::{self, strategic};
use crate::resource::Shape;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::{apply, write};

/// The patch types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Sort {
    pub(super) fn of(request: &Request<'_>) -> Result<Self> {
        let media = request.call.content_type.split(';').next().unwrap_or("").trim();
        let custom = matches!(request.resource.shape, Shape::Custom(_));
        match media {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => {
                if !custom {
                    return Err(Status::unsupported_media_type("415: Unsupported Media Type").with_details());
                }
                Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ))
            }
        }
    }
}

pub(super) fn patch(state: &mut State, request: &Request<'_>, context: &mut Context) -> Result<ApiResponse> {
    let (form, include) = form_of(request)?;
    let sort = Sort::of(request)?;
    check_patch_options(request, sort)?;
    let body = parse(request, sort)?;
    let resource = request.resource;
    context.applied = sort == Sort::Apply;
    context.patched = true;
    let done = write::update(
        state,
        &request.target(),
        context,
        sort == Sort::Apply,
        &mut |state, live, context| patched(state, request, sort, live, &body, context),
    )?;
    let code = if done.created { 201 } else { 200 };
    Ok(ApiResponse::object(
        state,
        resource,
        &done.object,
        code,
        form,
        include,
    ))
}

/// The decoded object that the patch makes of the live one.
pub(super) fn patched(
    state: &State,
    request: &Request<'_>,
    sort: Sort,
    live: Option<&Value>,
    body: &Value,
    context: &mut Context,
) -> Result<Value> {
    let resource = request.resource;
    if sort == Sort::Apply {
        let applied = apply::apply(state, resource, live, body, context)?;
        return write::decode(state, resource, applied, context);
    }
    let live = live.ok_or_else(|| request.target().not_found())?;
    let patched = if mentions_owners(&request.call.body) {
        merged(state, request, sort, &apply::unpacked(live), body)?
    } else {
        merged(state, request, sort, live, body)?
    };
    write::decode(state, resource, patched, context)
}

/// Whether a patch may read or write `managedFields`, or replaces the metadata as a whole.
fn mentions_owners(body: &[u8]) -> bool {
    let has = |word: &[u8]| body.windows(word.len()).any(|part| part == word);
    has(b"managed") || has(b"\\u") || has(b"\"from\"")
}

fn merged(state: &State, request: &Request<'_>, sort: Sort, live: &Value, body: &Value) -> Result<Value> {
    match (sort, &request.resource.shape) {
        (Sort::Json, _) => patch::apply_json_patch(live, body),
        (Sort::Strategic, Shape::Builtin(Some(id))) => strategic::merge(state.schema, *id, live, body),
        _ => Ok(patch::merge(live, body)),
    }
}

pub(super) fn parse(request: &Request<'_>, sort: Sort) -> Result<Value> {
    let value: Value = match sort {
        // Most clients apply JSON, which is YAML too.
        Sort::Apply => {
            if let Ok(value @ Value::Object(_)) = serde_json::from_slice(&request.call.body) {
                return Ok(value);
            }
            let text = String::from_utf8_lossy(&request.call.body);
            crate::snapshot::parse_document(&text)
                .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?
        }
        _ => serde_json::from_slice(&request.call.body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?,
    };
    match (sort, &value) {
        (Sort::Json, _) | (_, Value::Object(_)) => Ok(value),
        (Sort::Apply, _) => Err(Status::bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        )),
        _ => Err(Status::bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        )),
    }
}

pub(super) fn check_patch_options(request: &Request<'_>, sort: Sort) -> Result<()> {
    check_options(request, "PatchOptions")?;
    let query = &request.call.query;
    let mut errors = FieldErrors::new();
    if sort == Sort::Apply && query.get("fieldManager").is_empty() {
        errors.required(&Path::new("fieldManager"), "is required for apply patch");
    }
    if sort != Sort::Apply && query.find("force").is_some() {
        errors.forbidden(&Path::new("force"), "may not be specified for non-apply patch");
    }
    let kind = Qualified {
        group: "meta.k8s.io",
        name: "PatchOptions",
    };
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(kind, "", &errors))
    }
}
