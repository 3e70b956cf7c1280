//! Reviews: objects that are questions; posting one gives it back with its answer.

use serde_json::{Value, json};

use super::Request;
use super::reply::Answer;
use super::write::body;
use crate::auth::{self, Attempt, User};
use crate::context::Context;
use crate::resource::{Resource, Verb};
use crate::state::State;
use crate::status::Result;
use crate::{tree, write};

pub(super) fn is_review(resource: &Resource) -> bool {
    matches!(&*resource.group, "authentication.k8s.io" | "authorization.k8s.io")
}

pub(super) fn create(state: &mut State, request: &Request<'_>, context: &mut Context) -> Result<Answer> {
    let mut value = write::decode(state, request.resource, body(request)?, context)?;
    let user = &request.call.user;
    let status = match &*request.resource.plural {
        "selfsubjectreviews" => {
            json!({"userInfo": {"username": user.name, "groups": user.groups}})
        }
        "tokenreviews" => json!({"user": {}, "error": "invalid bearer token"}),
        "selfsubjectrulesreviews" => {
            json!({"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}], "nonResourceRules": [], "incomplete": false})
        }
        "selfsubjectaccessreviews" => access(state, user, &value),
        _ => access(state, &subject(&value), &value),
    };
    tree::set(&mut value, &["status"], status);
    tree::set(&mut value, &["metadata", "creationTimestamp"], Value::Null);
    tree::remove(&mut value, &["metadata", "creationTimestamp"]);
    Ok(Answer::json(201, &value))
}

fn subject(review: &Value) -> User {
    let groups = tree::list(review, &["spec", "groups"])
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    User {
        name: tree::text(review, &["spec", "user"]).to_owned(),
        uid: tree::text(review, &["spec", "uid"]).to_owned(),
        groups,
    }
}

fn access(state: &State, user: &User, review: &Value) -> Value {
    let text = |key| tree::text(review, &["spec", "resourceAttributes", key]);
    let verb = Verb::ALL
        .into_iter()
        .find(|verb| verb.name() == text("verb"))
        .unwrap_or(Verb::Get);
    let attempt = Attempt {
        verb,
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
    };
    match auth::authorize(state, user, &attempt) {
        Ok(()) => json!({"allowed": true}),
        Err(_) => json!({"allowed": false}),
    }
}
