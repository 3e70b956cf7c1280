//! Validates `spec.conversion`.

use serde_json::Value;

use crate::field::{FieldErrors, Path};
use crate::tree;
use crate::validation::names;

pub(super) fn check(conversion: &Value, path: &Path, errors: &mut FieldErrors) {
    let strategy = tree::text(conversion, &["strategy"]);
    match strategy {
        "" => errors.required(&path.child("strategy"), ""),
        "None" | "Webhook" => {}
        other => errors.not_supported(&path.child("strategy"), other, &["None", "Webhook"]),
    }
    let client = tree::get(conversion, &["webhook", "clientConfig"]).filter(|client| !client.is_null());
    let reviews = tree::list(conversion, &["webhook", "conversionReviewVersions"]);
    let (client_path, reviews_path) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.forbidden(&client_path, detail);
        }
        if !reviews.is_empty() {
            errors.forbidden(&reviews_path, detail);
        }
        return;
    }
    match client {
        None => errors.required(&client_path, "required when strategy is set to Webhook"),
        Some(client) => check_client(client, &client_path, errors),
    }
    check_reviews(reviews, &reviews_path, errors);
}

fn check_client(client: &Value, path: &Path, errors: &mut FieldErrors) {
    let field = |key: &str| client.get(key).filter(|value| !value.is_null());
    match (field("url"), field("service")) {
        (Some(url), None) => check_url(url.as_str().unwrap_or(""), &path.child("url"), errors),
        (None, Some(service)) => check_service(service, &path.child("service"), errors),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

const DESIRED_FORMAT: &str = "; desired format: https://host[/path]";

fn check_url(url: &str, path: &Path, errors: &mut FieldErrors) {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split('/').next().unwrap_or(""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        errors.invalid(
            path,
            scheme,
            format!("'https' is the only allowed URL scheme{DESIRED_FORMAT}"),
        );
    }
    if host.is_empty() {
        errors.invalid(path, host, format!("host must be specified{DESIRED_FORMAT}"));
    }
    if !user.is_empty() {
        errors.invalid(path, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        errors.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        errors.invalid(path, query, "query parameters are not permitted in the URL");
    }
}

fn check_service(service: &Value, path: &Path, errors: &mut FieldErrors) {
    // As in the real server, the paths are swapped: an empty namespace is reported for the name and vice
    // versa.
    if tree::text(service, &["namespace"]).is_empty() {
        errors.required(&path.child("name"), "");
    }
    if tree::text(service, &["name"]).is_empty() {
        errors.required(&path.child("namespace"), "");
    }
    let port = tree::int(service, &["port"]).unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&path.child("port"), port, detail);
    }
    let url = tree::text(service, &["path"]);
    let path = path.child("path");
    if matches!(url, "" | "/") {
        return;
    }
    if url == "//" {
        errors.invalid(&path, url, "segment[0] may not be empty");
        return;
    }
    if !url.starts_with('/') {
        errors.invalid(&path, url, "must start with a '/'");
    }
    let rest: String = url.chars().skip(1).collect();
    let rest = rest.strip_suffix('/').unwrap_or(&rest);
    for (at, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(&path, url, format!("segment[{at}] may not be empty"));
            continue;
        }
        for wrong in names::subdomain(step, false) {
            errors.invalid(&path, url, format!("segment[{at}]: {wrong}"));
        }
    }
}

fn check_reviews(versions: &[Value], path: &Path, errors: &mut FieldErrors) {
    if versions.is_empty() {
        errors.required(path, "");
        return;
    }
    let texts: Vec<&str> = versions.iter().filter_map(Value::as_str).collect();
    for (at, version) in texts.iter().enumerate() {
        if texts.iter().take(at).any(|earlier| earlier == version) {
            errors.invalid(&path.index(at), *version, "duplicate version");
            continue;
        }
        for wrong in names::label_1035(version, false) {
            errors.invalid(&path.index(at), *version, wrong);
        }
    }
    if !texts.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        errors.invalid(
            path,
            versions.to_vec(),
            "must include at least one of v1, v1beta1",
        );
    }
}
