//! Impersonation: returns the impersonated user if the requesting user may impersonate it.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::{AUTHENTICATED, Attributes, UNAUTHENTICATED, User};
use crate::state::State;
use crate::status::{Result, Status};

const PREFIX: &str = "impersonate-extra-";
const GROUP: &str = "authentication.k8s.io";

/// The impersonated user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation(User);

impl Impersonation {
    /// Parses the headers; returns `None` without impersonation headers.
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
        let wanted = User {
            name: text("impersonate-user"),
            uid: text("impersonate-uid"),
            groups,
            extra,
        };
        (wanted != User::default()).then_some(Self(wanted))
    }
}

/// Decodes the escapes of a header's name.
fn unescape(name: &str) -> String {
    crate::api::decode_percent(name).unwrap_or_else(|| name.to_owned())
}

/// Returns the impersonated user, or an error if `user` may not impersonate it. `attributes` describes the
/// request.
pub(crate) fn impersonate(
    state: &mut State,
    user: &User,
    wanted: &Impersonation,
    attributes: &Attributes<'_>,
) -> Result<User> {
    let wanted = &wanted.0;
    if wanted.name.is_empty() {
        return Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(wanted)
        )));
    }
    // The mode that succeeded last is tried first, and the first error is reported.
    let last = state.access.last_mode.get(&user.name).copied();
    let modes = last
        .into_iter()
        .chain(modes(wanted).into_iter().filter(|mode| Some(*mode) != last));
    let mut first = None;
    for mode in modes.filter(|mode| mode.fits(wanted)) {
        match mode.check(state, user, wanted, attributes) {
            Ok(became) => {
                state.access.last_mode.insert(user.name.clone(), mode);
                return Ok(became);
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

/// A way in which impersonation can be permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By a constrained verb that also restricts the permitted requests.
    Constrained(&'static str),
    /// By the verb `impersonate` alone.
    Legacy,
}

fn modes(wanted: &User) -> Vec<Mode> {
    let plain = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let constrained = if wanted.name.starts_with("system:node:") {
        plain.then_some("arbitrary-node")
    } else if account(&wanted.name).is_some() {
        plain.then_some("serviceaccount")
    } else {
        Some("user-info")
    };
    constrained
        .map(Mode::Constrained)
        .into_iter()
        .chain([Mode::Legacy])
        .collect()
}

fn account(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("system:serviceaccount:")?
        .split_once(':')
        .filter(|(_, name)| !name.contains(':'))
}

impl Mode {
    fn fits(self, wanted: &User) -> bool {
        modes(wanted).contains(&self)
    }

    /// Returns the verb of the impersonation requests; a constrained mode first checks the request itself.
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

    fn check(
        self,
        state: &mut State,
        user: &User,
        wanted: &User,
        attributes: &Attributes<'_>,
    ) -> Result<User> {
        let verb = self.authorized_verb(state, user, attributes)?;
        let mut leave = |attributes: Attributes<'_>| {
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
        let mut actual = wanted.clone();
        match (account(&wanted.name), wanted.name.strip_prefix("system:node:")) {
            (Some((namespace, name)), _) => {
                leave(Attributes {
                    group,
                    version: "v1",
                    resource: "serviceaccounts",
                    namespace,
                    name,
                    ..Attributes::default()
                })?;
                if wanted.groups.is_empty() {
                    actual.groups = vec![
                        "system:serviceaccounts".into(),
                        format!("system:serviceaccounts:{namespace}"),
                    ];
                }
            }
            (None, Some(name)) if self != Self::Legacy => {
                leave(Attributes {
                    group,
                    version: "v1",
                    resource: "nodes",
                    name,
                    ..Attributes::default()
                })?;
                actual.groups = vec!["system:nodes".into()];
            }
            _ => leave(Attributes {
                group,
                version: "v1",
                resource: "users",
                name: &wanted.name,
                ..Attributes::default()
            })?,
        }
        if !wanted.uid.is_empty() {
            leave(Attributes {
                group: GROUP,
                version: "v1",
                resource: "uids",
                name: &wanted.uid,
                ..Attributes::default()
            })?;
        }
        for name in &wanted.groups {
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
            leave(requested)?;
        }
        for (key, values) in &wanted.extra {
            for name in values {
                let resource = "userextras";
                leave(Attributes {
                    group: GROUP,
                    version: "v1",
                    resource,
                    subresource: key,
                    name,
                    ..Attributes::default()
                })?;
            }
        }
        Ok(complete_groups(actual))
    }
}

/// Adds `system:authenticated` unless the user is in `system:unauthenticated`.
fn complete_groups(mut user: User) -> User {
    let has = |user: &User, group: &str| user.groups.iter().any(|have| have == group);
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
