//! Parses URL paths into routes.

use http::Method;

use super::query::{Query, decode};
use crate::auth::Attributes;
use crate::resource::Verb;

/// A parsed URL path.
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
    /// `/healthz`, `/livez`, `/readyz` and their subpaths.
    Health(String),
    /// `/openapi/…`.
    OpenApi(String),
    /// Any other path.
    Unknown,
}

/// Parts of a resource's URL path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// Group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Plural name of the resource.
    pub plural: String,
    /// Name, or empty.
    pub name: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Path after the subresource.
    pub rest: String,
}

/// Parses a URL path.
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
        ["api", version, rest @ ..] => resource_route("", version, rest),
        ["apis", group, version, rest @ ..] => resource_route(group, version, rest),
        ["version"] => Route::Version,
        [health @ ("healthz" | "livez" | "readyz"), ..] => Route::Health((*health).to_owned()),
        ["openapi", rest @ ..] => Route::OpenApi(rest.join("/")),
        _ => Route::Unknown,
    }
}

fn resource_route(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // `status` and `finalize` are subresources of the namespace itself.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, tail @ ..] if !tail.is_empty() => (*namespace, tail),
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
    /// Returns the verb for a method on this path, or `None` if the method is not allowed.
    #[must_use]
    pub fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        let has_name = !self.name.is_empty();
        Some(match *method {
            Method::GET | Method::HEAD if has_name => Verb::Get,
            Method::GET | Method::HEAD if query.flag("watch") => Verb::Watch,
            Method::GET | Method::HEAD => Verb::List,
            Method::POST if !has_name || !self.subresource.is_empty() => Verb::Create,
            Method::PUT if has_name => Verb::Update,
            Method::PATCH if has_name => Verb::Patch,
            Method::DELETE if has_name => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// Returns the name in the path, or the name selected by a list's field selector.
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

    /// Returns the verb for authorization.
    #[must_use]
    pub fn authorization_verb(&self, method: &Method, query: &Query, name: &str) -> &'static str {
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

    /// Returns the attributes for authorization.
    #[must_use]
    pub fn attributes<'a>(&'a self, verb: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes {
            verb,
            group: &self.group,
            version: &self.version,
            resource: &self.plural,
            subresource: &self.subresource,
            // In authorization attributes, the namespace of a Namespace is its own name.
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
    /// Returns the resource path, if the route has one.
    #[must_use]
    pub fn resource_path(&self) -> Option<&ResourcePath> {
        match self {
            Self::Resource(path) => Some(path),
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
    fn paths_are_parsed_into_routes() {
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
