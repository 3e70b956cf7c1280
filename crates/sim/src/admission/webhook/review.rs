//! `AdmissionReview` requests and responses: builds the request for a write and parses the webhook's
//! response.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::ReviewedWrite;
use super::configuration::Hook;
use super::error::WebhookError;
use crate::admission::Operation;
use crate::context::Context;
use crate::resource::Resource;
use crate::status::Status;
use crate::{apply, convert, tree};

/// Parsed response of a webhook.
#[derive(Debug, Default)]
pub(super) struct ReviewResult {
    /// JSON patch to apply.
    pub(super) patch: Option<Value>,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
    /// Status of the rejection, if the webhook rejects the write.
    pub(super) rejection: Option<Status>,
}

/// Returns the `AdmissionReview` request for a write, with the objects converted to `shown_as`.
pub(super) fn build_request(
    hook: &Hook,
    reviewed: &ReviewedWrite<'_>,
    shown_as: &Arc<Resource>,
    uid: &str,
    context: &Context,
) -> Value {
    let target = reviewed.attributes.target;
    let kind = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let plural = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    let convert = |value: Option<&Value>| {
        value.map_or(Value::Null, |value| {
            convert_between(target.resource, shown_as, value)
        })
    };
    let mut object = convert(reviewed.object);
    if hook.mutating && reviewed.attributes.operation == Operation::Create {
        remove_identity(&mut object);
    }
    let mut request = json!({
        "uid": uid, "kind": kind(shown_as), "resource": plural(shown_as),
        "requestKind": kind(target.resource), "requestResource": plural(target.resource),
        "operation": reviewed.attributes.operation.name(), "userInfo": context.user.to_value(),
        "object": object, "oldObject": convert(reviewed.attributes.old), "dryRun": context.dry_run,
        "options": operation_options(reviewed, context),
    });
    let namespace = if target.resource.is("", "namespaces") {
        super::object_name(reviewed)
    } else {
        target.namespace
    };
    let texts = [
        ("name", super::object_name(reviewed)),
        ("namespace", namespace),
        ("subResource", &context.subresource),
        ("requestSubResource", &context.subresource),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        tree::set(&mut request, &[key], text);
    }
    json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{}", review_version(hook)), "request": request})
}

/// Removes uid and creation time from a new object: in the real server they are set after the mutating
/// webhooks.
pub(super) fn remove_identity(object: &mut Value) {
    for field in ["uid", "creationTimestamp"] {
        tree::remove(object, &["metadata", field]);
    }
}

/// Returns the first version of `AdmissionReview` that both sides support.
fn review_version(hook: &Hook) -> &str {
    let supported = hook
        .versions
        .iter()
        .find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
    supported.map_or("v1", String::as_str)
}

/// Converts an object of `resource` to `shown_as`.
pub(super) fn convert_between(resource: &Arc<Resource>, shown_as: &Arc<Resource>, value: &Value) -> Value {
    let value = apply::unpacked(value);
    if Arc::ptr_eq(resource, shown_as) {
        return value;
    }
    convert::from_stored(shown_as, convert::to_stored(resource, value))
}

fn operation_options(reviewed: &ReviewedWrite<'_>, context: &Context) -> Value {
    let kind = match reviewed.attributes.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    let mut options = context.options.clone();
    if !options.is_object() {
        options = json!({});
    }
    tree::set(&mut options, &["kind"], kind);
    tree::set(&mut options, &["apiVersion"], "meta.k8s.io/v1");
    options
}

/// Parses and validates the body of a response.
pub(super) fn parse_response(hook: &Hook, uid: &str, text: &str) -> Result<ReviewResult, WebhookError> {
    let review = parse_review(text)?;
    let invalid = WebhookError::InvalidResponse;
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return Err(invalid("webhook response was absent".into()));
    };
    let returned_uid = tree::text(response, &["uid"]);
    if review_version(hook) == "v1" && returned_uid != uid {
        return Err(invalid(format!(
            "expected response.uid={uid:?}, got {returned_uid:?}"
        )));
    }
    let (patch, patch_type) = (
        tree::text(response, &["patch"]),
        response.get("patchType").and_then(Value::as_str),
    );
    check_patch(hook, patch, patch_type).map_err(invalid)?;
    let allowed = tree::flag(response, &["allowed"]);
    Ok(ReviewResult {
        warnings: crate::auth::texts(tree::list(response, &["warnings"])),
        rejection: (!allowed).then(|| rejection_status(hook, response.get("status"))),
        patch: if allowed && !patch.is_empty() {
            decode_patch(patch, patch_type)?
        } else {
            None
        },
    })
}

/// Parses the body of a response as an `AdmissionReview`.
fn parse_review(text: &str) -> Result<Value, WebhookError> {
    let failed = WebhookError::Call;
    if text.is_empty() {
        let cause = "0-length response with status code: 200 and content type: application/json";
        return Err(failed(cause.into()));
    }
    let review: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    if !review.is_object() {
        // The real server reads a body that is not JSON as a YAML string.
        let what = if review.is_array() { "array" } else { "string" };
        let fields =
            r#"APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"""#;
        let error = format!("json: cannot unmarshal {what} into Go value of type struct {{ {fields} }}");
        return Err(failed(format!(
            "couldn't get version/kind; json parse error: {error}"
        )));
    }
    let (version, kind) = (
        tree::text(&review, &["apiVersion"]),
        tree::text(&review, &["kind"]),
    );
    match (version, kind) {
        // An empty version and kind are accepted.
        ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1" | "", "AdmissionReview" | "") => Ok(review),
        _ => Err(failed(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))),
    }
}

fn check_patch(hook: &Hook, patch: &str, patch_type: Option<&str>) -> Result<(), String> {
    let is_v1beta1 = review_version(hook) != "v1";
    match (hook.mutating, patch.is_empty(), patch_type) {
        _ if is_v1beta1 => Ok(()),
        (true, false, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (true, true, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (true, false, Some("")) => Err("webhook returned invalid response.patchType of \"\"".into()),
        (false, false, _) => Err("validating webhook may not return response.patch".into()),
        (false, true, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

/// Decodes a JSON patch; returns `None` if it has no operations.
fn decode_patch(patch: &str, patch_type: Option<&str>) -> Result<Option<Value>, WebhookError> {
    let undecodable = WebhookError::UndecodablePatch;
    let bytes = STANDARD
        .decode(patch)
        .map_err(|error| undecodable(error.to_string()))?;
    let operations: Value = serde_json::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))?;
    let Some(list) = operations.as_array() else {
        return Err(undecodable(
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch".into(),
        ));
    };
    if list.is_empty() {
        return Ok(None);
    }
    match patch_type {
        Some("JSONPatch") | None => Ok(Some(operations)),
        Some(other) => Err(WebhookError::UnsupportedPatchType(other.to_owned())),
    }
}

/// Returns the status for a rejection by a webhook. `status` is the status in its response.
fn rejection_status(hook: &Hook, status: Option<&Value>) -> Status {
    let empty = json!({});
    let status = status.filter(|status| status.is_object()).unwrap_or(&empty);
    let denied = format!("admission webhook {:?} denied the request", hook.name);
    let (message, reason) = (tree::text(status, &["message"]), tree::text(status, &["reason"]));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = tree::int(status, &["code"])
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(0);
    let rejection = Status::new(code.max(400), reason.to_owned(), message);
    match tree::map(status, &["details"]) {
        Some(details) => details
            .iter()
            .fold(rejection.with_details(), |rejection, (key, value)| {
                rejection.detail(key, value.clone())
            }),
        None => rejection,
    }
}

/// Returns the error text of the first operation that cannot be applied.
pub(super) fn patch_error(object: &Value, operations: &Value) -> String {
    let mut object = object.clone();
    for operation in operations.as_array().into_iter().flatten() {
        let one = Value::Array(vec![operation.clone()]);
        match crate::patch::apply_json_patch(&object, &one) {
            Ok(changed) => object = changed,
            Err(_) => return operation_error(&object, operation),
        }
    }
    "the patch does not apply".to_owned()
}

fn operation_error(object: &Value, operation: &Value) -> String {
    let text = |key| tree::text(operation, &[key]);
    let (verb, path) = (text("op"), text("path"));
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    if verb == "test" {
        return format!("testing value {path} failed: test failed");
    }
    match (object.pointer(parent), verb) {
        (None, verb) => {
            format!("{verb} operation does not apply: doc is missing path: {path}: missing value")
        }
        (Some(_), "remove") => format!(
            "error in remove for path: '{path}': unable to remove nonexistent key: {key}: missing value"
        ),
        (Some(_), verb) => {
            format!("{verb} operation does not apply: doc is missing key: {path}: missing value")
        }
    }
}
