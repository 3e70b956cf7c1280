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

/// Rejects a role with permissions that the writer does not have, and a binding to such a role. `old` is the
/// stored object.
pub(crate) fn check_escalation(
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
        "roles" | "clusterroles" => writer.check_role(old, new),
        "rolebindings" | "clusterrolebindings" => writer.check_binding(new),
        _ => Ok(()),
    }
}

/// Returns whether the write changes only fields that the garbage collector changes.
fn is_garbage_collection_update(old: &Value, new: &Value) -> bool {
    let without_gc_fields = |value: &Value| {
        let mut value = value.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            tree::remove(&mut value, &["metadata", field]);
        }
        value
    };
    without_gc_fields(old) == without_gc_fields(new)
}

/// The user that writes a role or binding.
struct Writer<'a> {
    state: &'a mut State,
    user: &'a User,
    target: &'a Target<'a>,
}

impl Writer<'_> {
    fn is_allowed(&mut self, verb: &str, group: &str, resource: &str, name: &str) -> bool {
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

    fn check_role(mut self, old: Option<&Value>, new: &Value) -> Result<()> {
        if self.is_allowed("escalate", GROUP, &self.target.resource.plural, self.target.name) {
            return Ok(());
        }
        self.check_permissions(&Rule::parse_all(new), new)?;
        let is_aggregated =
            |role: &Value| !tree::list(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty();
        if (is_aggregated(new) || old.is_some_and(is_aggregated))
            && self.check_permissions(&Rule::full_authority(), new).is_err()
        {
            let reason = "must have cluster-admin privileges to use the aggregationRule";
            return Err(self.forbidden(new, reason));
        }
        Ok(())
    }

    fn check_binding(mut self, new: &Value) -> Result<()> {
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
        if self.is_allowed("bind", text("apiGroup"), plural, text("name")) {
            return Ok(());
        }
        let rules = self
            .state
            .access
            .index
            .rules(text("kind"), text("name"), self.target.namespace);
        let Ok(rules) = rules.cloned() else {
            // The error contains the written resource, not the resource of the missing role.
            return Err(Status::not_found(self.target.resource.qualified(), text("name")));
        };
        self.check_permissions(&rules, new)
    }

    /// Rejects rules that the user may not grant because it does not have these permissions.
    fn check_permissions(&mut self, granted: &[Rule], new: &Value) -> Result<()> {
        let (own, unresolved) = super::rules_for(self.state, self.user, self.target.namespace);
        let missing = rule::missing_permissions(&own, granted);
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
                several => format!("[{}]", several.join(", ")),
            };
            reason = format!("{reason}; resolution errors: [{shown}]");
        }
        Err(self.forbidden(new, &reason))
    }

    fn forbidden(&self, new: &Value, reason: &str) -> Status {
        Status::forbidden(
            self.target.resource.qualified(),
            tree::text(new, &["metadata", "name"]),
            reason,
        )
    }
}
