//! Privilege escalation check: users may only grant permissions that they have.

use serde_json::Value;

use super::rule::{self, Rule};
use super::{Attributes, User};
use crate::context::Context;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;
use crate::write::Target;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Rejects a role with permissions that the writer lacks, and a binding to such a role. `old` is the existing
/// object.
pub(crate) fn check(
    state: &mut State,
    target: &Target<'_>,
    old: Option<&Value>,
    new: &Value,
    context: &Context,
) -> Result<()> {
    let resource = target.resource;
    if &*resource.group != GROUP || context.user.is_master() {
        return Ok(());
    }
    if old.is_some_and(|old| is_garbage_collection_update(old, new)) {
        return Ok(());
    }
    let writer = Writer {
        state,
        user: &context.user,
        target,
    };
    match &*resource.plural {
        "roles" | "clusterroles" => writer.role(old, new),
        "rolebindings" | "clusterrolebindings" => writer.binding(new),
        _ => Ok(()),
    }
}

/// Returns whether the write changes only fields that garbage collection needs.
fn is_garbage_collection_update(old: &Value, new: &Value) -> bool {
    let bare = |value: &Value| {
        let mut value = value.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            tree::remove(&mut value, &["metadata", field]);
        }
        value
    };
    bare(old) == bare(new)
}

struct Writer<'a> {
    state: &'a mut State,
    user: &'a User,
    target: &'a Target<'a>,
}

impl Writer<'_> {
    fn may(&mut self, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        let attributes = Attributes {
            verb,
            group,
            version: "*",
            resource,
            namespace: self.target.namespace,
            name,
            ..Attributes::default()
        };
        super::decide(self.state, self.user, &attributes).allowed
    }

    fn role(mut self, old: Option<&Value>, new: &Value) -> Result<()> {
        if self.may("escalate", GROUP, &self.target.resource.plural, self.target.name) {
            return Ok(());
        }
        self.confirm(&Rule::parse_all(new), new)?;
        let gathers =
            |role: &Value| !tree::list(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty();
        if (gathers(new) || old.is_some_and(gathers)) && self.confirm(&Rule::full_authority(), new).is_err() {
            let reason = "must have cluster-admin privileges to use the aggregationRule";
            return Err(self.forbid(new, reason));
        }
        Ok(())
    }

    fn binding(mut self, new: &Value) -> Result<()> {
        let text = |key| tree::text(new, &["roleRef", key]);
        let plural = match text("kind") {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            other => {
                return Err(Status::unknown(format!(
                    "unsupported role reference kind: {other:?}"
                )));
            }
        };
        if self.may("bind", text("apiGroup"), plural, text("name")) {
            return Ok(());
        }
        let rules = self
            .state
            .access
            .index
            .rules(text("kind"), text("name"), self.target.namespace);
        let Ok(rules) = rules.cloned() else {
            // The error names the written resource, not the missing role.
            return Err(Status::not_found(self.target.resource.qualified(), text("name")));
        };
        self.confirm(&rules, new)
    }

    fn confirm(&mut self, wanted: &[Rule], new: &Value) -> Result<()> {
        let (own, unresolved) = super::rules_for(self.state, self.user, self.target.namespace);
        let missing = rule::missing(&own, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let mut reason = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            rule::go_list(&self.user.groups),
            missing.join("\n")
        );
        if !unresolved.is_empty() {
            let shown = match unresolved.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            reason = format!("{reason}; resolution errors: [{shown}]");
        }
        Err(self.forbid(new, &reason))
    }

    fn forbid(&self, new: &Value, reason: &str) -> Status {
        Status::forbidden(
            self.target.resource.qualified(),
            tree::text(new, &["metadata", "name"]),
            reason,
        )
    }
}
