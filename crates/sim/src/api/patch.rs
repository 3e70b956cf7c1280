//! PATCH: applies one of the four patch types.

use serde_json::Value;

use super::ResourceRequest;
use super::read::representation_for;
use super::response::ApiResponse;
use super::write::check_options;
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::patch::{self, strategic};
use crate::resource::Shape;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::{apply, write};

/// Type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(super) fn from_content_type(request: &ResourceRequest<'_>) -> Result<Self> {
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

pub(super) fn patch(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    let kind = PatchKind::from_content_type(request)?;
    check_patch_options(request, kind)?;
    let body = parse_patch(request, kind)?;
    let resource = request.resource;
    context.applied = kind == PatchKind::Apply;
    context.patched = true;
    let written = write::update(
        state,
        &request.target(),
        context,
        kind == PatchKind::Apply,
        &mut |state, live, context| apply_patch(state, request, kind, live, &body, context),
    )?;
    let code = if written.created { 201 } else { 200 };
    Ok(ApiResponse::object(
        state,
        resource,
        &written.object,
        code,
        form,
        include,
    ))
}

/// Applies the patch to the live object and decodes the result.
pub(super) fn apply_patch(
    state: &State,
    request: &ResourceRequest<'_>,
    kind: PatchKind,
    live: Option<&Value>,
    body: &Value,
    context: &mut Context,
) -> Result<Value> {
    let resource = request.resource;
    if kind == PatchKind::Apply {
        let applied = apply::apply(state, resource, live, body, context)?;
        return write::decode(state, resource, applied, context);
    }
    let live = live.ok_or_else(|| request.target().not_found())?;
    let patched = if may_access_managed_fields(&request.call.body) {
        apply_to_live(state, request, kind, &apply::unpacked(live), body)?
    } else {
        apply_to_live(state, request, kind, live, body)?
    };
    write::decode(state, resource, patched, context)
}

/// Returns whether a patch may read or write `managedFields`. Also returns true for patches with escapes or
/// `from`, which may refer to the field without its name.
fn may_access_managed_fields(body: &[u8]) -> bool {
    let has = |word: &[u8]| body.windows(word.len()).any(|part| part == word);
    has(b"managed") || has(b"\\u") || has(b"\"from\"")
}

fn apply_to_live(
    state: &State,
    request: &ResourceRequest<'_>,
    kind: PatchKind,
    live: &Value,
    body: &Value,
) -> Result<Value> {
    match (kind, &request.resource.shape) {
        (PatchKind::Json, _) => patch::apply_json_patch(live, body),
        (PatchKind::Strategic, Shape::Builtin(Some(id))) => strategic::merge(state.schema, *id, live, body),
        _ => Ok(patch::merge(live, body)),
    }
}

pub(super) fn parse_patch(request: &ResourceRequest<'_>, kind: PatchKind) -> Result<Value> {
    let value: Value = match kind {
        // Most clients send JSON, which parses faster than YAML.
        PatchKind::Apply => {
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
    match (kind, &value) {
        (PatchKind::Json, _) | (_, Value::Object(_)) => Ok(value),
        (PatchKind::Apply, _) => Err(Status::bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
        )),
        _ => Err(Status::bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        )),
    }
}

pub(super) fn check_patch_options(request: &ResourceRequest<'_>, kind: PatchKind) -> Result<()> {
    check_options(request, "PatchOptions")?;
    let query = &request.call.query;
    let mut errors = FieldErrors::new();
    if kind == PatchKind::Apply && query.get("fieldManager").is_empty() {
        errors.required(&Path::new("fieldManager"), "is required for apply patch");
    }
    if kind != PatchKind::Apply && query.find("force").is_some() {
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
