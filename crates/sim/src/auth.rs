//! Authorization (RBAC): decides whether a user may perform a request, with the error texts of the real
//! server. [`Authenticator`] identifies the user.
//!
//! ```text
//! headers, certificate ──Authenticator──▶ User ──impersonate──▶ User ──authorize──▶ allowed | 403
//! ```
//!
//! Roles and bindings are read from the store's history into an [`Index`] by subject. A check reads only
//! the bindings of the requesting user; its cost does not depend on the number of other bindings.

use std::collections::{BTreeMap, HashMap};

use crate::state::State;
use crate::status::{Qualified, Result, Status};

mod aggregation;
mod authenticate;
mod bootstrap;
mod certificate;
mod escalation;
mod impersonate;
mod index;
mod rule;
mod token;

pub use aggregation::Aggregation;
pub(crate) use authenticate::authenticate_token;
pub use authenticate::{Authenticator, Credentials};
pub(crate) use bootstrap::bootstrap;
pub use certificate::{certificate_validity, user_from_certificate};
pub(crate) use escalation::check_escalation;
pub use impersonate::Impersonation;
pub(crate) use impersonate::impersonate;
pub use index::Index;
pub use rule::Rule;
pub(crate) use rule::texts;
pub use token::{BoundObject, TokenError};
pub(crate) use token::{Claims, ISSUER, mint};

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name, such as `system:serviceaccount:ns:name`.
    pub name: String,
    /// Uid, or empty.
    pub uid: String,
    /// Names of the groups of the user.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Group of users that bypass RBAC.
pub const MASTERS: &str = "system:masters";
/// Group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of all unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

impl User {
    /// Creates an authenticated user in these groups.
    #[must_use]
    pub fn named(name: &str, groups: &[&str]) -> Self {
        let groups = groups
            .iter()
            .chain(&[AUTHENTICATED])
            .map(|group| (*group).to_owned());
        Self {
            name: name.to_owned(),
            groups: groups.collect(),
            ..Self::default()
        }
    }

    /// Returns the administrator, the default user of in-process clients.
    #[must_use]
    pub fn admin() -> Self {
        Self::named("kubernetes-admin", &[MASTERS])
    }

    /// Returns the user of a cluster component.
    #[must_use]
    pub fn system(component: &str) -> Self {
        Self::named(&format!("system:{component}"), &[MASTERS])
    }

    /// Returns the anonymous user.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// Returns the user of a service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::named(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &[
                "system:serviceaccounts",
                &format!("system:serviceaccounts:{namespace}"),
            ],
        )
    }

    /// Returns whether the user bypasses RBAC.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Returns the representation in reviews and webhooks.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        let mut value = serde_json::json!({"username": self.name});
        if !self.uid.is_empty() {
            crate::tree::set(&mut value, &["uid"], self.uid.as_str());
        }
        if !self.groups.is_empty() {
            crate::tree::set(&mut value, &["groups"], self.groups.clone());
        }
        for (key, values) in &self.extra {
            crate::tree::set(&mut value, &["extra", key], values.clone());
        }
        value
    }
}

/// Attributes of a request for authorization: those of a resource, or a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// Verb, such as `get`.
    pub verb: &'a str,
    /// API group, empty for core.
    pub group: &'a str,
    /// API version, such as `v1`.
    pub version: &'a str,
    /// Plural name of the resource.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name, or empty.
    pub name: &'a str,
    /// Path of a non-resource request, or empty.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// Returns whether this is a non-resource request.
    #[must_use]
    pub fn is_path(&self) -> bool {
        !self.path.is_empty()
    }

    /// Returns the attributes of a non-resource request.
    #[must_use]
    pub fn for_path(verb: &'a str, path: &'a str) -> Self {
        Self {
            verb,
            path,
            ..Self::default()
        }
    }

    fn rejection(&self, user: &User, reason: &str) -> Status {
        let mut cause = self
            .describe(&user.name)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        if !reason.is_empty() {
            cause = format!("{cause}: {reason}");
        }
        let what = Qualified {
            group: self.group,
            name: self.resource,
        };
        Status::forbidden(what, self.name, &cause).with_details()
    }

    /// Returns the first sentence of the rejection.
    fn describe(&self, user: &str) -> String {
        if self.is_path() {
            return format!("User {user:?} cannot {} path {:?}", self.verb, self.path);
        }
        let resource = match self.subresource {
            "" => self.resource.to_owned(),
            sub => format!("{}/{sub}", self.resource),
        };
        let location = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {location}",
            self.verb, self.group
        )
    }
}

/// Result of an authorization check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Reason, or empty.
    pub reason: String,
}

/// Decides whether `user` may perform the request.
pub fn decide(state: &mut State, user: &User, attributes: &Attributes<'_>) -> Decision {
    if user.is_master() {
        return Decision {
            allowed: true,
            reason: String::new(),
        };
    }
    state.access.index.refresh(&state.store);
    let index = &state.access.index;
    let mut missing = Vec::new();
    for binding in index.bindings_for(user, attributes.namespace) {
        match index.rules(&binding.role_kind, &binding.role, &binding.namespace) {
            Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                let reason = format!("RBAC: allowed by {}", binding.describe());
                return Decision {
                    allowed: true,
                    reason,
                };
            }
            Ok(_) => {}
            Err(kind) => missing.push(role_not_found(kind, &binding.role)),
        }
    }
    Decision {
        allowed: false,
        reason: unresolved_reason(missing),
    }
}

/// Returns an error unless `user` may perform the request.
pub fn authorize(state: &mut State, user: &User, attributes: &Attributes<'_>) -> Result<()> {
    if user.is_master() {
        return Ok(());
    }
    let decision = decide(state, user, attributes);
    if decision.allowed {
        Ok(())
    } else {
        Err(attributes.rejection(user, &decision.reason))
    }
}

/// Returns the rules that apply to `user` in `namespace`, and one error per role that does not exist.
pub fn rules_for(state: &mut State, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
    state.access.index.refresh(&state.store);
    let index = &state.access.index;
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for binding in index.bindings_for(user, namespace) {
        match index.rules(&binding.role_kind, &binding.role, &binding.namespace) {
            Ok(rules) => all.extend(rules.iter().cloned()),
            Err(kind) => missing.push(role_not_found(kind, &binding.role)),
        }
    }
    (all, missing)
}

fn role_not_found(kind: &str, name: &str) -> String {
    format!("{kind}.rbac.authorization.k8s.io {name:?} not found")
}

/// Formats the errors about missing roles as a reason, without duplicates.
fn unresolved_reason(mut missing: Vec<String>) -> String {
    let mut seen = Vec::new();
    missing.retain(|one| {
        let new = !seen.contains(one);
        seen.push(one.clone());
        new
    });
    match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        several => format!("RBAC: [{}]", several.join(", ")),
    }
}

/// Authentication and authorization state of a cluster.
#[derive(Debug, Default)]
pub struct Access {
    /// Roles and bindings by subject.
    pub index: Index,
    /// Impersonation mode that last succeeded, by user.
    last_mode: HashMap<String, impersonate::Mode>,
    /// Accepted credentials.
    pub credentials: Credentials,
}

impl Access {
    /// Creates the state of a cluster with this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self {
            credentials: Credentials::from_seed(seed),
            ..Self::default()
        }
    }
}
