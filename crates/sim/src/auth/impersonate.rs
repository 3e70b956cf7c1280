//! Impersonation: checks whether a user may impersonate another user, and returns that user.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::{AUTHENTICATED, Attributes, UNAUTHENTICATED, User};
use crate::state::State;
use crate::status::{Result, Status};

const PREFIX: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";

/// User to impersonate, from the headers of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation(User);

impl Impersonation {
    /// Parses the headers; returns `None` if there are no impersonation headers.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("")
                .to_owned()
        };
        let all = |name: &http::HeaderName| {
            let values = headers.get_all(name).iter();
            values
                .filter_map(|value| value.to_str().ok().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let extra: BTreeMap<String, Vec<String>> = headers
            .keys()
            .filter_map(|name| Some((unescape(name.as_str().strip_prefix(PREFIX)?), all(name))))
            .collect();
        let groups = all(&http::HeaderName::from_static("impersonate-group"));
        let user = User {
            name: text("impersonate-user"),
            uid: text("impersonate-uid"),
            groups,
            extra,
        };
        (user != User::default()).then_some(Self(user))
    }
}

/// Decodes the percent escapes in the name of a header.
fn unescape(name: &str) -> String {
    crate::api::decode_percent(name).unwrap_or_else(|| name.to_owned())
}

/// Returns the impersonated user, or an error if `user` may not impersonate it. `attributes` describes the
/// request.
pub(crate) fn impersonate(
    state: &mut State,
    user: &User,
    impersonation: &Impersonation,
    attributes: &Attributes<'_>,
) -> Result<User> {
    let target = &impersonation.0;
    if target.name.is_empty() {
        return Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(target)
        )));
    }
    // Tries the mode that succeeded last first, and reports the error of the first mode.
    let last = state.access.last_mode.get(&user.name).copied();
    let modes = last.into_iter().chain(
        possible_modes(target)
            .into_iter()
            .filter(|mode| Some(*mode) != last),
    );
    let mut first = None;
    for mode in modes.filter(|mode| mode.is_possible_for(target)) {
        match mode.authorized_user(state, user, target, attributes) {
            Ok(impersonated) => {
                state.access.last_mode.insert(user.name.clone(), mode);
                return Ok(impersonated);
            }
            Err(status) => first = first.or(Some(status)),
        }
    }
    Err(first.unwrap_or_else(Status::unauthorized))
}

/// Formats a user like Go's `%#v`.
fn go_syntax(user: &User) -> String {
    let list = |items: &[String]| match items {
        [] => "[]string(nil)".to_owned(),
        items => {
            let shown: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            format!("[]string{{{}}}", shown.join(", "))
        }
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let shown: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{key:?}:{}", list(values).trim_start_matches("[]string")))
            .collect();
        format!("map[string][]string{{{}}}", shown.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        user.name,
        user.uid,
        list(&user.groups)
    )
}

/// Kind of permission for an impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A constrained verb, which also restricts the requests that are permitted.
    Constrained(&'static str),
    /// The verb `impersonate`.
    Legacy,
}

fn possible_modes(target: &User) -> Vec<Mode> {
    let name_only = target.uid.is_empty() && target.groups.is_empty() && target.extra.is_empty();
    let constrained = if target.name.starts_with("system:node:") {
        name_only.then_some("arbitrary-node")
    } else if parse_service_account(&target.name).is_some() {
        name_only.then_some("serviceaccount")
    } else {
        Some("user-info")
    };
    constrained
        .map(Mode::Constrained)
        .into_iter()
        .chain([Mode::Legacy])
        .collect()
}

/// Returns namespace and name of a service account's user name.
fn parse_service_account(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("system:serviceaccount:")?
        .split_once(':')
        .filter(|(_, name)| !name.contains(':'))
}

impl Mode {
    fn is_possible_for(self, target: &User) -> bool {
        possible_modes(target).contains(&self)
    }

    /// Returns the verb that impersonation requires. A constrained mode also requires permission for the
    /// request itself.
    fn authorized_verb(self, state: &mut State, user: &User, attributes: &Attributes<'_>) -> Result<String> {
        let Self::Constrained(mode) = self else {
            return Ok("impersonate".to_owned());
        };
        let verb = format!("impersonate-on:{mode}:{}", attributes.verb);
        let constrained = Attributes {
            verb: &verb,
            ..*attributes
        };
        super::authorize(state, user, &constrained)?;
        Ok(format!("impersonate:{mode}"))
    }

    /// Returns the impersonated user if this mode permits the impersonation.
    fn authorized_user(
        self,
        state: &mut State,
        user: &User,
        target: &User,
        attributes: &Attributes<'_>,
    ) -> Result<User> {
        let verb = self.authorized_verb(state, user, attributes)?;
        let mut authorize = |attributes: Attributes<'_>| {
            super::authorize(
                state,
                user,
                &Attributes {
                    verb: &verb,
                    ..attributes
                },
            )
        };
        let group = if self == Self::Legacy { "" } else { GROUP };
        let mut impersonated = target.clone();
        match (
            parse_service_account(&target.name),
            target.name.strip_prefix("system:node:"),
        ) {
            (Some((namespace, name)), _) => {
                authorize(Attributes {
                    group,
                    version: "v1",
                    resource: "serviceaccounts",
                    namespace,
                    name,
                    ..Attributes::default()
                })?;
                if target.groups.is_empty() {
                    impersonated.groups = vec![
                        "system:serviceaccounts".into(),
                        format!("system:serviceaccounts:{namespace}"),
                    ];
                }
            }
            (None, Some(name)) if self != Self::Legacy => {
                authorize(Attributes {
                    group,
                    version: "v1",
                    resource: "nodes",
                    name,
                    ..Attributes::default()
                })?;
                impersonated.groups = vec!["system:nodes".into()];
            }
            _ => authorize(Attributes {
                group,
                version: "v1",
                resource: "users",
                name: &target.name,
                ..Attributes::default()
            })?,
        }
        if !target.uid.is_empty() {
            authorize(Attributes {
                group: GROUP,
                version: "v1",
                resource: "uids",
                name: &target.uid,
                ..Attributes::default()
            })?;
        }
        for name in &target.groups {
            let requested = Attributes {
                group,
                version: "v1",
                resource: "groups",
                name,
                ..Attributes::default()
            };
            if self != Self::Legacy && name == super::MASTERS {
                return Err(Attributes {
                    verb: &verb,
                    ..requested
                }
                .rejection(user, "impersonating the system:masters group is not allowed"));
            }
            authorize(requested)?;
        }
        for (key, values) in &target.extra {
            for name in values {
                let resource = "userextras";
                authorize(Attributes {
                    group: GROUP,
                    version: "v1",
                    resource,
                    subresource: key,
                    name,
                    ..Attributes::default()
                })?;
            }
        }
        Ok(complete_groups(impersonated))
    }
}

/// Adds `system:authenticated` unless the user is in `system:unauthenticated`.
fn complete_groups(mut user: User) -> User {
    let has = |user: &User, group: &str| user.groups.iter().any(|name| name == group);
    let group = match user.name.as_str() {
        "system:anonymous" => UNAUTHENTICATED,
        _ if has(&user, UNAUTHENTICATED) => return user,
        _ => AUTHENTICATED,
    };
    if !has(&user, group) {
        user.groups.push(group.into());
    }
    user
}
