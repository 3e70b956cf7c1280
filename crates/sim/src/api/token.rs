//! `TokenRequest` for service accounts: issues a token that is bound to the lifetime of an object.

use serde_json::{Value, json};

use super::ResourceRequest;
use super::response::ApiResponse;
use crate::auth::{self, BoundObject, Claims, texts};
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::object::key;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;
use crate::write;

const KIND: Qualified<'static> = Qualified {
    group: "authentication.k8s.io",
    name: "TokenRequest",
};
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;

pub(super) fn create(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &Context,
) -> Result<ApiResponse> {
    let mut review = super::parse_body(&request.call.body, "token request")?;
    let target = request.target();
    let managed_fields = managed_fields_entry(state, &review, context);
    check_identity(&review, target.name, target.namespace)?;
    let Some((account, _)) = write::current(state, &target) else {
        return Err(target.not_found());
    };
    let uid = tree::text(&review, &["metadata", "uid"]);
    if !uid.is_empty() && *uid != *account.meta().uid {
        let account_uid = &account.meta().uid;
        let reason = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({account_uid})"
        );
        return Err(Status::conflict(KIND, target.name, &reason));
    }
    tree::set_default(&mut review, &["spec", "expirationSeconds"], DEFAULT_SECONDS);
    if tree::list(&review, &["spec", "audiences"]).is_empty() {
        tree::set(&mut review, &["spec", "audiences"], vec![auth::ISSUER]);
    }
    let seconds = tree::int(&review, &["spec", "expirationSeconds"]).unwrap_or(DEFAULT_SECONDS);
    check_expiration(seconds)?;
    let bound = bound_object(state, request, &review)?;
    tree::set_default(&mut review, &["spec", "boundObjectRef"], Value::Null);
    let claims = Claims {
        namespace: target.namespace,
        account: &account,
        audiences: &texts(tree::list(&review, &["spec", "audiences"])),
        seconds,
        bound: &bound,
    };
    let token = auth::mint(state, &claims);
    let (now, expires) = (state.now().rfc3339(), state.now().plus_seconds(seconds).rfc3339());
    tree::set(
        &mut review,
        &["status"],
        json!({"token": token, "expirationTimestamp": expires}),
    );
    tree::set(&mut review, &["kind"], "TokenRequest");
    tree::set(&mut review, &["apiVersion"], "authentication.k8s.io/v1");
    let metadata = [
        ("name", target.name),
        ("namespace", target.namespace),
        ("uid", &*account.meta().uid),
        ("creationTimestamp", now.as_str()),
    ];
    for (field, text) in metadata {
        tree::set(&mut review, &["metadata", field], text);
    }
    tree::set(&mut review, &["metadata", "managedFields"], vec![managed_fields]);
    Ok(ApiResponse::json(201, &review))
}

/// Returns the entry of `managedFields` in the response, which the real server adds although it does not
/// store the object.
fn managed_fields_entry(state: &State, sent: &Value, context: &Context) -> Value {
    let mut fields = json!({"f:expirationSeconds": {}});
    if !tree::list(sent, &["spec", "audiences"]).is_empty() {
        tree::set(&mut fields, &["f:audiences"], json!({}));
    }
    if let Some(reference) = tree::map(sent, &["spec", "boundObjectRef"]) {
        tree::set(&mut fields, &["f:boundObjectRef", "."], json!({}));
        for key in reference.keys() {
            tree::set(&mut fields, &["f:boundObjectRef", &format!("f:{key}")], json!({}));
        }
    }
    json!({
        "manager": context.manager, "operation": "Update", "apiVersion": "authentication.k8s.io/v1", "time": state.now().rfc3339(),
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}, "subresource": "token",
    })
}

fn check_identity(review: &Value, name: &str, namespace: &str) -> Result<()> {
    let review_namespace = tree::text(review, &["metadata", "namespace"]);
    if !review_namespace.is_empty() && review_namespace != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let given = tree::text(review, &["metadata", "name"]);
    if given.is_empty() || given == name {
        return Ok(());
    }
    let mut errors = FieldErrors::new();
    let detail = "must match the service account name if specified";
    errors.invalid(&Path::new("metadata").child("name"), given, detail);
    Err(Status::invalid(KIND, name, &errors))
}

fn check_expiration(seconds: i64) -> Result<()> {
    let mut errors = FieldErrors::new();
    let path = Path::new("spec").child("expirationSeconds");
    if seconds < MIN_SECONDS {
        errors.invalid(&path, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > MAX_SECONDS {
        errors.invalid(
            &path,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(KIND, "", &errors))
    }
}

/// Returns the object that the token is bound to. Fails if it does not exist or does not match the request.
fn bound_object(state: &State, request: &ResourceRequest<'_>, review: &Value) -> Result<BoundObject> {
    let text = |key| tree::text(review, &["spec", "boundObjectRef", key]);
    if tree::map(review, &["spec", "boundObjectRef"]).is_none() {
        return Ok(BoundObject::default());
    }
    let (kind, table) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pod", "pods"),
        ("v1", "Node") => ("node", "nodes"),
        ("v1", "Secret") => ("secret", "secrets"),
        (version, kind) => {
            let (group, version) = crate::resource::split_api_version(version);
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(message));
        }
    };
    let object_namespace = if kind == "node" {
        ""
    } else {
        request.path.namespace.as_str()
    };
    let name = text("name");
    let what = Qualified {
        group: "",
        name: table,
    };
    let Some(object) = state.store.get(table, &key(object_namespace, name)) else {
        return Err(Status::not_found(what, name));
    };
    let value = object.value();
    if kind == "pod" && tree::text(&value, &["spec", "serviceAccountName"]) != request.path.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            request.path.name
        )));
    }
    let wanted = text("uid");
    if !wanted.is_empty() && *wanted != *object.meta().uid {
        let reason = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(
            Qualified {
                group: "",
                name: text("kind"),
            },
            name,
            &reason,
        ));
    }
    let node = tree::text(&value, &["spec", "nodeName"]);
    let node = (kind == "pod" && !node.is_empty()).then(|| {
        let uid = state
            .store
            .get("nodes", node)
            .map_or(String::new(), |node| node.meta().uid.to_string());
        (node.to_owned(), uid)
    });
    Ok(BoundObject {
        kind,
        name: name.to_owned(),
        uid: object.meta().uid.to_string(),
        node,
    })
}
