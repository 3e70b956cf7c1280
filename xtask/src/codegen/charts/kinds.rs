//! Prints the table of kinds with their plurals, from the published Kubernetes `OpenAPI`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use mainstay_yaml::Value;

/// Third-party kinds, which the published files do not describe.
const CUSTOM: &[(&str, &str, &str, bool)] = &[(
    "k8s.cni.cncf.io/v1",
    "NetworkAttachmentDefinition",
    "network-attachment-definitions",
    true,
)];

/// Prints the table.
pub(super) fn print<'a>(documents: impl Iterator<Item = &'a Value>, specs: &Path) -> Result<String> {
    let text = |document: &Value, key| {
        document
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let kinds: BTreeSet<(String, String)> = documents
        .map(|document| (text(document, "apiVersion"), text(document, "kind")))
        .collect();
    let mut out = String::from(
        "# Written by `cargo xtask codegen`: every kind that a chart installed by the operator can render, in any pinned version. How to\n\
         # read it: kinds.rs.\n",
    );
    for (api_version, kind) in kinds {
        let (plural, namespaced) = describe(&api_version, &kind, specs)?;
        let scope = if namespaced { "namespaced" } else { "cluster" };
        out.extend([&api_version, " ", &kind, " ", &plural, " ", scope, "\n"]);
    }
    Ok(out)
}

fn describe(api_version: &str, kind: &str, specs: &Path) -> Result<(String, bool)> {
    let custom = CUSTOM
        .iter()
        .find(|(version, name, ..)| (*version, *name) == (api_version, kind));
    if let Some((_, _, plural, namespaced)) = custom {
        return Ok(((*plural).to_owned(), *namespaced));
    }
    let file = match api_version.split_once('/') {
        Some((group, version)) => format!("apis__{group}__{version}_openapi.json"),
        None => format!("api__{api_version}_openapi.json"),
    };
    let text = std::fs::read(specs.join(&file)).with_context(|| file.clone())?;
    let spec: serde_json::Value = serde_json::from_slice(&text).with_context(|| file.clone())?;
    let paths = spec.pointer("/paths").and_then(serde_json::Value::as_object);
    let of_kind = |item: &serde_json::Value| {
        let found = item.pointer("/get/x-kubernetes-group-version-kind/kind");
        found.and_then(serde_json::Value::as_str) == Some(kind)
    };
    let found = paths.into_iter().flatten().find_map(|(path, item)| {
        let plural = path.strip_suffix("/{name}")?.rsplit('/').next()?;
        let watched = path.contains("/watch/");
        (of_kind(item) && !watched).then(|| (plural.to_owned(), path.contains("/namespaces/{namespace}/")))
    });
    found.with_context(|| format!("{file} has no {kind}"))
}
