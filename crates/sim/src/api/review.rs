//! Access and token reviews: evaluates the posted review and returns it with its status.

use serde_json::{Value, json};

use super::ResourceRequest;
use super::response::ApiResponse;
use super::write::parse_object;
use crate::auth::{self, Attributes, Rule, User, texts};
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::resource::Resource;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::{apply, tree, write};

pub(super) fn is_review(resource: &Resource) -> bool {
    matches!(&*resource.group, "authentication.k8s.io" | "authorization.k8s.io")
}

pub(super) fn create(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let mut value = write::decode(state, request.resource, parse_object(request)?, context)?;
    let plural = &*request.resource.plural;
    if plural == "localsubjectaccessreviews" {
        set_namespace(&mut value, &request.path.namespace)?;
    }
    if plural.ends_with("accessreviews") || plural == "tokenreviews" {
        value = apply::unpacked(&apply::track(state, request.resource, None, value, context));
    }
    check_review(plural, request, &value)?;
    let user = context.user.clone();
    let status = match plural {
        "selfsubjectreviews" => json!({"userInfo": user.to_value()}),
        "tokenreviews" => token_status(state, &value)?,
        "selfsubjectrulesreviews" => {
            let status = rules_status(state, &user, tree::text(&value, &["spec", "namespace"]))?;
            value = json!({"apiVersion": request.resource.api_version(), "kind": &*request.resource.kind, "metadata": {}, "spec": {}});
            status
        }
        "selfsubjectaccessreviews" => access_status(state, &user, &value),
        _ => access_status(state, &reviewed_user(&value), &value),
    };
    tree::set(&mut value, &["status"], status);
    if plural == "selfsubjectreviews" {
        let now = state.now().rfc3339();
        tree::set(&mut value, &["metadata", "creationTimestamp"], now);
    }
    Ok(ApiResponse::json(201, &value))
}

/// Sets the namespace of the review to the one in the path. Fails if the review has a different namespace.
fn set_namespace(value: &mut Value, namespace: &str) -> Result<()> {
    let given = tree::text(value, &["metadata", "namespace"]);
    if given.is_empty() {
        tree::set(value, &["metadata", "namespace"], namespace);
    } else if given != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Validates an access review. Other reviews are valid.
fn check_review(plural: &str, request: &ResourceRequest<'_>, value: &Value) -> Result<()> {
    if !plural.ends_with("accessreviews") {
        return Ok(());
    }
    let mut errors = FieldErrors::new();
    let spec = Path::new("spec");
    let attributes = |key: &str| tree::get(value, &["spec", key]).filter(|value| !value.is_null());
    let (resource, other) = (
        attributes("resourceAttributes"),
        attributes("nonResourceAttributes"),
    );
    if let (Some(_), Some(other)) = (resource, other) {
        let detail = "cannot be specified in combination with resourceAttributes";
        errors.invalid(
            &spec.child("nonResourceAttributes"),
            to_internal_type(other),
            detail,
        );
    }
    if resource.is_none() && other.is_none() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.invalid(&spec.child("resourceAttributes"), Value::Null, detail);
    }
    if plural != "selfsubjectaccessreviews" {
        let has_no_subject = tree::text(value, &["spec", "user"]).is_empty()
            && tree::list(value, &["spec", "groups"]).is_empty();
        if has_no_subject {
            errors.invalid(
                &spec.child("user"),
                "",
                "at least one of user or group must be specified",
            );
        }
    }
    check_metadata(value, plural == "localsubjectaccessreviews", &mut errors);
    if plural == "localsubjectaccessreviews" {
        check_local_review(value, resource, other, &mut errors);
    }
    if errors.is_empty() {
        return Ok(());
    }
    // The real server omits the kind in this error.
    let unnamed_kind = Qualified {
        group: &request.resource.group,
        name: "",
    };
    Err(Status::invalid(unnamed_kind, "", &errors))
}

/// Rejects metadata other than managed fields and, in a local review, the namespace.
fn check_metadata(value: &Value, local: bool, errors: &mut FieldErrors) {
    let Some(metadata) = tree::map(value, &["metadata"]) else {
        return;
    };
    let allowed = |key: &str| key == "managedFields" || local && key == "namespace";
    if metadata.keys().all(|key| allowed(key)) {
        return;
    }
    let detail = if local {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    errors.invalid(&Path::new("metadata"), Value::Object(metadata.clone()), detail);
}

/// Validates the fields of a `LocalSubjectAccessReview` that differ from those of the other access reviews.
fn check_local_review(
    value: &Value,
    resource: Option<&Value>,
    other: Option<&Value>,
    errors: &mut FieldErrors,
) {
    let own_namespace = tree::text(value, &["metadata", "namespace"]);
    if let Some(resource) = resource {
        let namespace = tree::text(resource, &["namespace"]);
        if namespace != own_namespace {
            let path = Path::new("spec.resourceAttributes.namespace");
            errors.invalid(&path, namespace, "must match metadata.namespace");
        }
    }
    if let Some(other) = other {
        let path = Path::new("spec.nonResourceAttributes");
        errors.invalid(
            &path,
            to_internal_type(other),
            "disallowed on this kind of request",
        );
    }
}

/// Returns non-resource attributes as messages show them: in the server's internal type, which has
/// capitalized field names.
fn to_internal_type(other: &Value) -> Value {
    json!({"Path": tree::text(other, &["path"]), "Verb": tree::text(other, &["verb"])})
}

/// Returns the user that the review is about.
fn reviewed_user(review: &Value) -> User {
    let extra = tree::map(review, &["spec", "extra"]).into_iter().flatten();
    User {
        name: tree::text(review, &["spec", "user"]).to_owned(),
        uid: tree::text(review, &["spec", "uid"]).to_owned(),
        groups: texts(tree::list(review, &["spec", "groups"])),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values.as_array().map_or(&[], Vec::as_slice))))
            .collect(),
    }
}

/// Returns the status of an access review.
fn access_status(state: &mut State, user: &User, review: &Value) -> Value {
    let text = |key| tree::text(review, &["spec", "resourceAttributes", key]);
    let other = |key| tree::text(review, &["spec", "nonResourceAttributes", key]);
    let attributes = if tree::get(review, &["spec", "resourceAttributes"]).is_some() {
        Attributes {
            verb: text("verb"),
            group: text("group"),
            version: text("version"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            path: "",
        }
    } else {
        Attributes::for_path(other("verb"), other("path"))
    };
    let decision = auth::decide(state, user, &attributes);
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        tree::set(&mut status, &["reason"], decision.reason);
    }
    status
}

/// Returns the status of a rules review: the rules of a user in a namespace.
fn rules_status(state: &mut State, user: &User, namespace: &str) -> Result<Value> {
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (all, unresolved) = auth::rules_for(state, user, namespace);
    let resource_rules: Vec<Value> = all
        .iter()
        .filter(|rule| !rule.resources.is_empty())
        .map(|rule| rule_without(rule, "nonResourceURLs"))
        .collect();
    let non_resource_rules: Vec<Value> = all
        .iter()
        .filter(|rule| !rule.urls.is_empty())
        .map(|rule| json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}))
        .collect();
    let mut status =
        json!({"resourceRules": resource_rules, "nonResourceRules": non_resource_rules, "incomplete": false});
    if !unresolved.is_empty() {
        let text = match unresolved.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        tree::set(&mut status, &["evaluationError"], text);
    }
    Ok(status)
}

fn rule_without(rule: &Rule, field: &str) -> Value {
    let mut value = rule.to_value();
    tree::remove(&mut value, &[field]);
    value
}

/// Returns the status of a token review.
fn token_status(state: &State, review: &Value) -> Result<Value> {
    let token = tree::text(review, &["spec", "token"]);
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences = texts(tree::list(review, &["spec", "audiences"]));
    Ok(match auth::authenticate_token(state, token, &audiences) {
        Ok((user, audiences)) => {
            json!({"authenticated": true, "user": user.to_value(), "audiences": audiences})
        }
        Err(error) => json!({"user": {}, "error": error.to_string()}),
    })
}
