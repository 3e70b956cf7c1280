//! Discovery of groups, versions and resources (legacy and aggregated), `/version` and health endpoints.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::response::ApiResponse;
use super::{ApiRequest, Route};
use crate::resource::{Group, Resource, Shape, Version};
use crate::state::State;
use crate::tree;

const AGGREGATED_MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn respond(state: &State, call: &ApiRequest, route: &Route) -> ApiResponse {
    let aggregated = call.accept.contains("as=APIGroupDiscoveryList") && call.accept.contains("v=v2");
    match route {
        Route::CoreVersions if aggregated => aggregated_groups(state, true),
        Route::Groups if aggregated => aggregated_groups(state, false),
        Route::CoreVersions => ApiResponse::json(
            200,
            &json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
            }),
        ),
        Route::Groups => {
            let groups: Vec<Value> = state
                .resources
                .groups()
                .iter()
                .filter(|group| !group.name.is_empty())
                .map(api_group)
                .collect();
            ApiResponse::json(
                200,
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
            )
        }
        Route::Group(name) => match state
            .resources
            .groups()
            .iter()
            .find(|group| &*group.name == name && !name.is_empty())
        {
            Some(found) => {
                let mut value = api_group(found);
                tree::set(&mut value, &["kind"], "APIGroup");
                tree::set(&mut value, &["apiVersion"], "v1");
                ApiResponse::json(200, &value)
            }
            None => ApiResponse::not_found(),
        },
        Route::Resources(group, version) => match state.resources.version(group, version) {
            Some(found) => ApiResponse::json(200, &resource_list(group, found)),
            None => ApiResponse::not_found(),
        },
        Route::Version => version_response(state),
        Route::Health(_) => ApiResponse::text(200, "ok"),
        Route::OpenApi(path) => crate::openapi::respond(state, path, &call.accept),
        Route::Resource(_) | Route::Unknown => ApiResponse::not_found(),
    }
}

fn version_response(state: &State) -> ApiResponse {
    let git = &state.options.git_version;
    let mut parts = git.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("36"));
    ApiResponse::json(
        200,
        &json!({
            "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
            "minCompatibilityMajor": major, "minCompatibilityMinor": minor.parse::<u32>().map_or(String::new(), |minor| (minor - 1).to_string()),
            "gitVersion": git, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
        }),
    )
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn api_group(group: &Group) -> Value {
    let version = |version: &Version| json!({"groupVersion": group_version(&group.name, &version.name), "version": &*version.name});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": &*group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resource_list(group: &str, version: &Version) -> Value {
    let resources: Vec<Value> = version
        .resources
        .iter()
        .flat_map(|resource| api_resources(resource))
        .collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version(group, &version.name), "resources": resources})
}

/// Returns the entries of a resource and its subresources in an `APIResourceList`.
fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": &*resource.plural, "singularName": &*resource.singular, "namespaced": resource.namespaced,
        "kind": &*resource.kind, "verbs": resource.verbs.names(),
    });
    set_names(&mut own, resource);
    if matches!(resource.shape, Shape::Custom(_)) {
        // The real server lists the verbs of custom resources in a different order.
        tree::set(&mut own, &["verbs"], json!(CUSTOM_VERBS));
        tree::set(&mut own, &["storageVersionHash"], storage_hash(resource));
    }
    let subs = resource.subresources.iter().map(|sub| {
        let mut value = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "", "namespaced": resource.namespaced,
            "kind": &*sub.kind, "verbs": sub.verbs.names(),
        });
        if !sub.version.is_empty() {
            tree::set(&mut value, &["version"], &*sub.version);
            if !sub.group.is_empty() {
                tree::set(&mut value, &["group"], &*sub.group);
            }
        }
        value
    });
    std::iter::once(own).chain(subs).collect()
}

const CUSTOM_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// Returns the storage version hash: the base64 of the first 8 bytes of a SHA-256 hash.
fn storage_hash(resource: &Resource) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{}/{}", resource.stored_as, resource.kind));
    let first: Vec<u8> = digest.iter().copied().take(8).collect();
    STANDARD.encode(first)
}

fn set_names(value: &mut Value, resource: &Resource) {
    for (key, names) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !names.is_empty() {
            let names: Vec<Value> = names.iter().map(|name| Value::from(&**name)).collect();
            tree::set(value, &[key], names);
        }
    }
}

fn aggregated_groups(state: &State, core: bool) -> ApiResponse {
    let groups = state
        .resources
        .groups()
        .iter()
        .filter(|group| group.name.is_empty() == core);
    let items: Vec<Value> = groups.map(aggregated_group).collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    ApiResponse::bytes(200, AGGREGATED_MEDIA_TYPE, list.to_string().into())
}

fn aggregated_group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = version
                .resources
                .iter()
                .map(|resource| aggregated_resource(resource))
                .collect();
            json!({"version": &*version.name, "freshness": "Current", "resources": resources})
        })
        .collect();
    let metadata = if group.name.is_empty() {
        json!({"creationTimestamp": null})
    } else {
        json!({"name": &*group.name, "creationTimestamp": null})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut value = json!({
        "resource": &*resource.plural, "responseKind": group_version_kind(&resource.group, &resource.version, &resource.kind),
        "scope": scope, "singularResource": &*resource.singular, "verbs": resource.verbs.names(),
    });
    set_names(&mut value, resource);
    let subs: Vec<Value> = resource
        .subresources
        .iter()
        .map(|sub| {
            let (group, version) = if sub.version.is_empty() { (&resource.group, &resource.version) } else { (&sub.group, &sub.version) };
            json!({"subresource": &*sub.name, "responseKind": group_version_kind(group, version, &sub.kind), "verbs": sub.verbs.names()})
        })
        .collect();
    if !subs.is_empty() {
        tree::set(&mut value, &["subresources"], subs);
    }
    value
}

fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}
