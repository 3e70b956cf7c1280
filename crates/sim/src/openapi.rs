//! The `/openapi/v3` documents that `kubectl explain`, `apply` and `diff` read, built from the table of Go
//! types and the custom schemas. Builtin fields have no descriptions, because these texts belong to upstream
//! Kubernetes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use crate::api::ApiResponse;
use crate::resource::{Resource, Shape, Version};
use crate::state::State;

mod paths;
mod types;

/// Responds to a request below `/openapi`.
#[must_use]
pub fn respond(state: &State, path: &str, accept: &str) -> ApiResponse {
    if path == "v2" {
        return v2_document(accept);
    }
    match path.strip_prefix("v3") {
        Some("" | "/") => ApiResponse::json(200, &index_document(state)),
        Some(below) => {
            let found = parse_group_version(below.trim_start_matches('/'))
                .and_then(|(group, version)| Some((group, state.resources.version(group, version)?)));
            match found {
                Some((group, version)) => ApiResponse::json(200, &version_document(state, group, version)),
                None => ApiResponse::not_found(),
            }
        }
        None => ApiResponse::not_found(),
    }
}

/// Returns an empty version 2 document. This is sufficient because `kubectl` reads version 2 only for kinds
/// that version 3 does not contain.
fn v2_document(accept: &str) -> ApiResponse {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    if accept.contains("proto-openapi") {
        return ApiResponse::bytes(200, PROTOBUF, bytes::Bytes::new());
    }
    let empty = json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": {}, "definitions": {}});
    ApiResponse::json(200, &empty)
}

/// Parses `api/VERSION` or `apis/GROUP/VERSION` into group and version.
fn parse_group_version(path: &str) -> Option<(&str, &str)> {
    match path.split_once('/')? {
        ("api", version) => Some(("", version)),
        ("apis", rest) => rest.split_once('/'),
        _ => None,
    }
}

/// Returns the path of a group version, without the leading slash.
fn group_path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

fn index_document(state: &State) -> Value {
    let mut paths = Map::new();
    for group in state.resources.groups() {
        for version in &group.versions {
            let path = group_path(&group.name, &version.name);
            let url = format!("/openapi/v3/{path}?hash={}", document_hash(state, &path, version));
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Returns a hash that changes with the document. Builtin types are constant, so only their names are
/// included; custom types are included with their schema.
fn document_hash(state: &State, path: &str, version: &Version) -> String {
    let mut digest = Sha512::new();
    digest.update(&state.options.git_version);
    digest.update(path);
    for resource in &version.resources {
        digest.update(&*resource.plural);
        digest.update(&*resource.kind);
        if let Shape::Custom(custom) = &resource.shape {
            digest.update(custom.schema.to_string());
        }
    }
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn version_document(state: &State, group: &str, version: &Version) -> Value {
    let mut schemas = types::Schemas::new(state.schema);
    let api_version = crate::resource::join_api_version(group, &version.name);
    for (known, kind, id) in state.schema.kinds() {
        if known == api_version {
            schemas.add_kind(group, &version.name, kind, id);
        }
    }
    let mut found = Map::new();
    for resource in &version.resources {
        if let Shape::Custom(custom) = &resource.shape {
            schemas.add_custom(resource, &custom.schema);
        }
        paths::add_resource(resource, &schema_name(state, resource), &mut found);
    }
    let release: Vec<&str> = state
        .options
        .git_version
        .trim_start_matches('v')
        .splitn(3, '.')
        .take(2)
        .collect();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release.join(".")},
        "paths": found,
        "components": {"schemas": schemas.finish()},
    })
}

/// Returns the name of the schema of a resource's objects.
fn schema_name(state: &State, resource: &Resource) -> String {
    match resource.shape {
        Shape::Builtin(Some(id)) => types::definition_name(&state.schema.get(id).name),
        _ => types::custom_definition_name(resource),
    }
}
