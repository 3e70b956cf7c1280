//! Who may do what: takes a user and an attempt, gives leave or a refusal in the real server's words. Who a caller is, is
//! [`Authenticator`]'s business; what is stored, the store's.
//!
//! ```text
//! headers, certificate ──Authenticator──▶ User ──impersonate──▶ User ──authorize(Attempt)──▶ leave | 403
//! ```
//!
//! Roles and bindings are read from the store's history into an [`Index`] by subject: a check looks at the bindings of the asking user
//! alone, however many others there are.

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
pub use certificate::user_of_certificate;
pub(crate) use escalation::check as check_escalation;
pub use impersonate::Impersonation;
pub(crate) use impersonate::impersonate;
pub use index::Index;
pub use rule::Rule;
pub(crate) use rule::texts;
pub use token::{Bound, TokenError};
pub(crate) use token::{Claims, ISSUER, mint};

/// A caller, as authentication found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name, such as `system:serviceaccount:ns:name`.
    pub name: String,
    /// Uid, for service accounts.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// May do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";
/// Everybody who said who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

impl User {
    /// Somebody who said who they are, in these groups.
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

    /// The administrator that in-process clients are unless they say otherwise.
    #[must_use]
    pub fn admin() -> Self {
        Self::named("kubernetes-admin", &[MASTERS])
    }

    /// One of the cluster's own components.
    #[must_use]
    pub fn system(component: &str) -> Self {
        Self::named(&format!("system:{component}"), &[MASTERS])
    }

    /// Somebody who did not say who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// A service account.
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

    /// Whether the roles do not matter.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// As reviews and webhooks see it.
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

/// One attempt to do something: to a resource, or to a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt<'a> {
    /// What is to be done.
    pub verb: &'a str,
    /// To the resource of this group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name, or empty.
    pub name: &'a str,
    /// The path, when it is no resource.
    pub path: &'a str,
}

impl<'a> Attempt<'a> {
    /// Whether it is about a path instead of a resource.
    #[must_use]
    pub fn is_path(&self) -> bool {
        !self.path.is_empty()
    }

    /// An attempt to use a path.
    #[must_use]
    pub fn on_path(verb: &'a str, path: &'a str) -> Self {
        Self {
            verb,
            path,
            ..Self::default()
        }
    }

    fn refusal(&self, user: &User, reason: &str) -> Status {
        let mut why = self
            .sentence(&user.name)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let what = Qualified {
            group: self.group,
            name: self.resource,
        };
        Status::forbidden(what, self.name, &why).with_details()
    }

    fn sentence(&self, user: &str) -> String {
        if self.is_path() {
            return format!("User {user:?} cannot {} path {:?}", self.verb, self.path);
        }
        let resource = match self.subresource {
            "" => self.resource.to_owned(),
            sub => format!("{}/{sub}", self.resource),
        };
        let place = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
            self.verb, self.group
        )
    }
}

/// What the authoriser says, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// It may be done.
    pub allowed: bool,
    /// The reason, when there is one to tell.
    pub reason: String,
}

/// Whether `user` may do `attempt`, with the reason.
pub fn decide(state: &mut State, user: &User, attempt: &Attempt<'_>) -> Decision {
    if user.is_master() {
        return Decision {
            allowed: true,
            reason: String::new(),
        };
    }
    state.access.index.refresh(&state.store);
    let index = &state.access.index;
    let mut missing = Vec::new();
    for binding in index.bindings_of(user, attempt.namespace) {
        match index.rules(&binding.role_kind, &binding.role, &binding.namespace) {
            Ok(rules) if rules.iter().any(|rule| rule.allows(attempt)) => {
                let reason = format!("RBAC: allowed by {}", binding.describe());
                return Decision {
                    allowed: true,
                    reason,
                };
            }
            Ok(_) => {}
            Err(sort) => missing.push(not_there(sort, &binding.role)),
        }
    }
    Decision {
        allowed: false,
        reason: unresolved(missing),
    }
}

/// Leave for `user` to do `attempt`, or the refusal.
pub fn authorize(state: &mut State, user: &User, attempt: &Attempt<'_>) -> Result<()> {
    if user.is_master() {
        return Ok(());
    }
    let decision = decide(state, user, attempt);
    if decision.allowed {
        Ok(())
    } else {
        Err(attempt.refusal(user, &decision.reason))
    }
}

/// The rules that apply to `user` in `namespace`, and what could not be resolved.
pub fn rules_for(state: &mut State, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
    state.access.index.refresh(&state.store);
    let index = &state.access.index;
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for binding in index.bindings_of(user, namespace) {
        match index.rules(&binding.role_kind, &binding.role, &binding.namespace) {
            Ok(rules) => all.extend(rules.iter().cloned()),
            Err(sort) => missing.push(not_there(sort, &binding.role)),
        }
    }
    (all, missing)
}

fn not_there(sort: &str, name: &str) -> String {
    format!("{sort}.rbac.authorization.k8s.io {name:?} not found")
}

/// How the errors of an evaluation are told.
fn unresolved(mut missing: Vec<String>) -> String {
    let mut told = Vec::new();
    missing.retain(|one| {
        let new = !told.contains(one);
        told.push(one.clone());
        new
    });
    match missing.as_slice() {
        [] => String::new(),
        [one] => format!("RBAC: {one}"),
        many => format!("RBAC: [{}]", many.join(", ")),
    }
}

/// What a cluster knows of its users: part of its state.
#[derive(Debug, Default)]
pub struct Access {
    /// Roles and bindings by whom they reach.
    pub index: Index,
    /// By user, how it last got leave to act as somebody else.
    last_mode: HashMap<String, impersonate::Mode>,
    /// Whom it recognises.
    pub credentials: Credentials,
}

impl Access {
    /// That of a cluster that starts from `seed`.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self {
            credentials: Credentials::from_seed(seed),
            ..Self::default()
        }
    }
}
