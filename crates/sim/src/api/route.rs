//! Paths: takes one, gives what it names.

use http::Method;

use super::query::{Query, decode};
use crate::auth::Attempt;
use crate::resource::Verb;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A resource, an object, or a subresource.
    Resource(ResourcePath),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    Resources(String, String),
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health(String),
    /// `/openapi/…`.
    OpenApi(String),
    /// Anything else.
    Unknown,
}

/// Where in the API something is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// Group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Plural.
    pub plural: String,
    /// Name, or empty.
    pub name: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// What comes below the subresource.
    pub rest: String,
}

/// Reads a path.
#[must_use]
pub fn parse_route(path: &str) -> Route {
    let parts: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|part| decode(&part.replace('+', "%2B")))
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => place("", version, rest),
        ["apis", group, version, rest @ ..] => place(group, version, rest),
        ["version"] => Route::Version,
        [health @ ("healthz" | "livez" | "readyz"), ..] => Route::Health((*health).to_owned()),
        ["openapi", rest @ ..] => Route::OpenApi(rest.join("/")),
        _ => Route::Unknown,
    }
}

fn place(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // These two belong to the namespace itself.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (*namespace, below),
        _ => ("", rest),
    };
    let at = |index: usize| rest.get(index).map_or(String::new(), |part| (*part).to_owned());
    Route::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: at(0),
        name: at(1),
        subresource: at(2),
        rest: rest.get(3..).unwrap_or(&[]).join("/"),
    })
}

impl ResourcePath {
    /// What a method does here; `None` when it makes no sense.
    #[must_use]
    pub fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        let one = !self.name.is_empty();
        Some(match *method {
            Method::GET | Method::HEAD if one => Verb::Get,
            Method::GET | Method::HEAD if query.flag("watch") => Verb::Watch,
            Method::GET | Method::HEAD => Verb::List,
            Method::POST if !one || !self.subresource.is_empty() => Verb::Create,
            Method::PUT if one => Verb::Update,
            Method::PATCH if one => Verb::Patch,
            Method::DELETE if one => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// The name in the path, or the one that a list's field selector asks for.
    #[must_use]
    pub fn name_or_selected(&self, method: &Method, query: &Query) -> String {
        if !self.name.is_empty() || !matches!(*method, Method::GET | Method::HEAD) {
            return self.name.clone();
        }
        let selected = query.get("fieldSelector").split(',').find_map(|term| {
            let value = term.trim().strip_prefix("metadata.name=")?;
            Some(value.strip_prefix('=').unwrap_or(value).to_owned())
        });
        selected
            .filter(|name| !name.is_empty() && !name.contains(['/', '%']))
            .unwrap_or_default()
    }

    /// What the authoriser calls a method here.
    #[must_use]
    pub fn authorised_verb(&self, method: &Method, query: &Query, name: &str) -> &'static str {
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            Method::GET | Method::HEAD if !self.name.is_empty() => "get",
            Method::GET | Method::HEAD if query.flag("watch") => "watch",
            Method::GET | Method::HEAD => "list",
            _ => "",
        }
    }

    /// The attempt that authorisation judges.
    #[must_use]
    pub fn attempt<'a>(&'a self, verb: &'a str, name: &'a str) -> Attempt<'a> {
        Attempt {
            verb,
            group: &self.group,
            version: &self.version,
            resource: &self.plural,
            subresource: &self.subresource,
            // A namespace is its own namespace to the authoriser.
            namespace: if self.plural == "namespaces" {
                &self.name
            } else {
                &self.namespace
            },
            name,
            path: "",
        }
    }
}

impl Route {
    /// The place it names, if it names one.
    #[must_use]
    pub fn resource_path(&self) -> Option<&ResourcePath> {
        match self {
            Self::Resource(place) => Some(place),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let shown = match parse_route(path) {
            Route::Resource(p) => {
                format!(
                    "{}|{}|{}|{}|{}|{}",
                    p.group, p.version, p.namespace, p.plural, p.name, p.subresource
                )
            }
            other => format!("{other:?}"),
        };
        assert_eq!(shown, expected, "{path}");
    }

    #[test]
    fn paths_name_places() {
        check("/api", "CoreVersions");
        check("/apis/apps/v1", "Resources(\"apps\", \"v1\")");
        check("/api/v1/pods", "|v1||pods||");
        check("/api/v1/namespaces", "|v1||namespaces||");
        check("/api/v1/namespaces/a", "|v1||namespaces|a|");
        check("/api/v1/namespaces/a/status", "|v1||namespaces|a|status");
        check("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log");
        check(
            "/apis/apps/v1/namespaces/a/deployments/b%2Fc/scale",
            "apps|v1|a|deployments|b/c|scale",
        );
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x",
            "rbac.authorization.k8s.io|v1||clusterroles|system:x|",
        );
        check("/livez/ping", "Health(\"livez\")");
        check("/nope", "Unknown");
    }
}
