//! Reviews: takes a write, gives the question as it travels; takes the reply's text, gives the verdict or why it is none.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Case;
use super::configuration::Hook;
use crate::admission::Operation;
use crate::context::Context;
use crate::resource::Resource;
use crate::status::Status;
use crate::{apply, convert, tree};

/// What a webhook said.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Changes to make, as a JSON patch.
    pub(super) patch: Option<Value>,
    /// For the client's eyes.
    pub(super) warnings: Vec<String>,
    /// Its refusal.
    pub(super) refusal: Option<Status>,
}

/// The question about a write that is shown as an object of `seen_as`.
pub(super) fn request(
    hook: &Hook,
    case: &Case<'_>,
    seen_as: &Arc<Resource>,
    uid: &str,
    context: &Context,
) -> Value {
    let target = case.attributes.target;
    let kind = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let plural = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    let show =
        |value: Option<&Value>| value.map_or(Value::Null, |value| shown(target.resource, seen_as, value));
    let mut object = show(case.object);
    if hook.mutating && case.attributes.operation == Operation::Create {
        hide_identity(&mut object);
    }
    let mut request = json!({
        "uid": uid, "kind": kind(seen_as), "resource": plural(seen_as),
        "requestKind": kind(target.resource), "requestResource": plural(target.resource),
        "operation": case.attributes.operation.name(), "userInfo": context.user.to_value(),
        "object": object, "oldObject": show(case.attributes.old), "dryRun": context.dry_run,
        "options": options(case, context),
    });
    let namespace = if target.resource.is("", "namespaces") {
        super::name(case)
    } else {
        target.namespace
    };
    let texts = [
        ("name", super::name(case)),
        ("namespace", namespace),
        ("subResource", &context.subresource),
        ("requestSubResource", &context.subresource),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        tree::set(&mut request, &[key], text);
    }
    json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{}", version(hook)), "request": request})
}

/// A new object has neither uid nor age before it is stored: mutating webhooks see it without.
pub(super) fn hide_identity(object: &mut Value) {
    for field in ["uid", "creationTimestamp"] {
        tree::remove(object, &["metadata", field]);
    }
}

fn version(hook: &Hook) -> &str {
    let known = hook
        .versions
        .iter()
        .find(|version| matches!(version.as_str(), "v1" | "v1beta1"));
    known.map_or("v1", String::as_str)
}

/// An object of `resource` as one of `seen_as`.
pub(super) fn shown(resource: &Arc<Resource>, seen_as: &Arc<Resource>, value: &Value) -> Value {
    let value = apply::unpacked(value);
    if Arc::ptr_eq(resource, seen_as) {
        return value;
    }
    convert::from_stored(seen_as, convert::to_stored(resource, value))
}

fn options(case: &Case<'_>, context: &Context) -> Value {
    let kind = match case.attributes.operation {
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

/// Reads a reply.
pub(super) fn verify(hook: &Hook, uid: &str, text: &str) -> Result<Verdict, String> {
    let review = parse(text)?;
    let invalid = |why: String| format!("received invalid webhook response: {why}");
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return Err(invalid("webhook response was absent".into()));
    };
    let said = tree::text(response, &["uid"]);
    if version(hook) == "v1" && said != uid {
        return Err(invalid(format!("expected response.uid={uid:?}, got {said:?}")));
    }
    let (patch, patch_type) = (
        tree::text(response, &["patch"]),
        response.get("patchType").and_then(Value::as_str),
    );
    check_patch(hook, patch, patch_type).map_err(invalid)?;
    let allowed = tree::flag(response, &["allowed"]);
    Ok(Verdict {
        warnings: crate::auth::texts(tree::list(response, &["warnings"])),
        refusal: (!allowed).then(|| refusal(hook, response.get("status"))),
        patch: if allowed && !patch.is_empty() {
            decode_patch(patch, patch_type)?
        } else {
            None
        },
    })
}

/// The review in a reply: an object of the right kind.
fn parse(text: &str) -> Result<Value, String> {
    let failed = |why: String| format!("failed to call webhook: {why}");
    if text.is_empty() {
        let why = "0-length response with status code: 200 and content type: application/json";
        return Err(failed(why.into()));
    }
    let review: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    if !review.is_object() {
        // What is no JSON is read as YAML, whose simplest document is a string.
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
        // Nothing said is what was expected.
        ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1" | "", "AdmissionReview" | "") => Ok(review),
        _ => Err(failed(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))),
    }
}

fn check_patch(hook: &Hook, patch: &str, patch_type: Option<&str>) -> Result<(), String> {
    let old = version(hook) != "v1";
    match (hook.mutating, patch.is_empty(), patch_type) {
        _ if old => Ok(()),
        (true, false, None) => Err("webhook returned response.patch but not response.patchType".into()),
        (true, true, Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
        (true, false, Some("")) => Err("webhook returned invalid response.patchType of \"\"".into()),
        (false, false, _) => Err("validating webhook may not return response.patch".into()),
        (false, true, Some(_)) => Err("validating webhook may not return response.patchType".into()),
        _ => Ok(()),
    }
}

/// The operations of a patch; `None` when there are none.
fn decode_patch(patch: &str, patch_type: Option<&str>) -> Result<Option<Value>, String> {
    let undecodable = |why: String| format!("received undecodable patch in webhook response: {why}");
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
        Some(other) => Err(format!("unsupported patch type {other:?}")),
    }
}

/// The status a webhook refuses with, made presentable.
fn refusal(hook: &Hook, status: Option<&Value>) -> Status {
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
    let refusal = Status::new(code.max(400), reason.to_owned(), message);
    match tree::map(status, &["details"]) {
        Some(details) => details
            .iter()
            .fold(refusal.with_details(), |refusal, (key, value)| {
                refusal.detail(key, value.clone())
            }),
        None => refusal,
    }
}

/// Why a patch does not fit an object, about its first operation that does not.
pub(super) fn why_not(object: &Value, operations: &Value) -> String {
    let mut object = object.clone();
    for operation in operations.as_array().into_iter().flatten() {
        let one = Value::Array(vec![operation.clone()]);
        match crate::patch::apply_json_patch(&object, &one) {
            Ok(changed) => object = changed,
            Err(_) => return misfit(&object, operation),
        }
    }
    "the patch does not apply".to_owned()
}

fn misfit(object: &Value, operation: &Value) -> String {
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
