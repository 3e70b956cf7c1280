//! Who may do what: takes a user and an attempt, gives leave or a refusal. For now everyone may do everything: the
//! authoriser by RBAC objects belongs here.

use crate::resource::Verb;
use crate::state::State;
use crate::status::Result;

/// A caller, as authentication found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name, such as `system:serviceaccount:ns:name`.
    pub name: String,
    /// Uid, for service accounts.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl User {
    /// The administrator that in-process clients are unless they say otherwise.
    #[must_use]
    pub fn admin() -> Self {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        Self {
            name: "kubernetes-admin".into(),
            uid: String::new(),
            groups,
        }
    }

    /// One of the cluster's own components.
    #[must_use]
    pub fn system(component: &str) -> Self {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        Self {
            name: format!("system:{component}"),
            uid: String::new(),
            groups,
        }
    }
}

/// One attempt to do something.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What is to be done.
    pub verb: Verb,
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
}

/// Whether `user` may do `attempt`: the place where RBAC decides.
pub fn authorize(_state: &State, _user: &User, _attempt: &Attempt<'_>) -> Result<()> {
    Ok(())
}
