//! The scale subresource: reads and writes the replicas of a workload or custom resource as a `Scale` object.

use serde_json::{Value, json};

use super::ResourceRequest;
use super::patch::{self, PatchKind};
use super::response::ApiResponse;
use crate::context::Context;
use crate::field::{FieldErrors, Path};
use crate::resource::{Resource, Shape, Verb};
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::{tree, write};

const KIND: Qualified<'static> = Qualified {
    group: "autoscaling",
    name: "Scale",
};

pub(super) fn handle(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let target = request.target();
    let Some((_, live)) = write::current(state, &target) else {
        return Err(target.not_found());
    };
    let paths = Paths::for_resource(request.resource);
    let mut view = paths.scale_of(&live);
    let unset = paths.custom && tree::int(&live, &paths.spec_replicas()).is_none();
    if request.verb == Verb::Get {
        if unset {
            let reason = format!("the spec replicas field {:?} does not exist", paths.spec);
            return Err(Status::internal(&reason));
        }
        return Ok(ApiResponse::json(200, &view));
    }
    if unset {
        tree::set(&mut view, &["spec", "replicas"], UNSET_REPLICAS);
    }
    let sent = match request.verb {
        Verb::Patch => apply_patch(request, &view)?,
        _ => super::parse_body(&request.call.body, "scale")?,
    };
    if unset && tree::int(&sent, &["spec", "replicas"]) == Some(UNSET_REPLICAS) {
        let message = format!("the spec replicas field {:?} cannot be empty", paths.spec);
        return Err(Status::bad_request(message));
    }
    check_scale(request, &sent, &view, paths.custom)?;
    let replicas = tree::int(&sent, &["spec", "replicas"]).unwrap_or(0);
    context.subresource = "scale".into();
    let written = write::update(state, &target, context, false, &mut |_, live, _| {
        let mut new = live.cloned().unwrap_or_default();
        tree::set(&mut new, &paths.spec_replicas(), replicas);
        Ok(new)
    })?;
    let shown = crate::convert::from_stored(request.resource, written.object.value());
    Ok(ApiResponse::json(200, &paths.scale_of(&shown)))
}

fn apply_patch(request: &ResourceRequest<'_>, view: &Value) -> Result<Value> {
    let kind = PatchKind::from_content_type(request)?;
    patch::check_patch_options(request, kind)?;
    let body = patch::parse_patch(request, kind)?;
    match kind {
        PatchKind::Json => crate::patch::apply_json_patch(view, &body),
        _ => Ok(crate::patch::merge(view, &body)),
    }
}

/// Value of the replicas in the `Scale` of a custom resource that does not set them.
const UNSET_REPLICAS: i64 = i32::MIN as i64;

fn check_scale(request: &ResourceRequest<'_>, sent: &Value, view: &Value, custom: bool) -> Result<()> {
    let name = tree::text(sent, &["metadata", "name"]);
    if name != request.path.name {
        let text = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            request.path.name
        );
        return Err(Status::bad_request(text));
    }
    let version = tree::text(sent, &["metadata", "resourceVersion"]);
    if !version.is_empty() && version != tree::text(view, &["metadata", "resourceVersion"]) {
        return Err(Status::modified(request.resource.qualified(), name));
    }
    let replicas = tree::int(sent, &["spec", "replicas"]).unwrap_or(0);
    // Custom resources are validated as a whole, with different error texts.
    if replicas < 0 && !custom {
        let mut errors = FieldErrors::new();
        errors.invalid(
            &Path::new("spec").child("replicas"),
            replicas,
            "must be greater than or equal to 0",
        );
        return Err(Status::invalid(KIND, name, &errors));
    }
    Ok(())
}

/// Paths of the replica fields of a kind.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
    custom: bool,
}

impl Paths {
    fn for_resource(resource: &Resource) -> Self {
        if let Shape::Custom(custom) = &resource.shape
            && let Some(scale) = &custom.scale
        {
            let selector = scale
                .get("labelSelectorPath")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let text = |key| tree::text(scale, &[key]).to_owned();
            return Self {
                spec: text("specReplicasPath"),
                status: text("statusReplicasPath"),
                selector,
                custom: true,
            };
        }
        Self {
            spec: ".spec.replicas".into(),
            status: ".status.replicas".into(),
            selector: None,
            custom: false,
        }
    }

    fn spec_replicas(&self) -> Vec<&str> {
        split_path(&self.spec)
    }

    /// Returns the `Scale` of an object.
    fn scale_of(&self, live: &Value) -> Value {
        let text = |key: &str| tree::text(live, &["metadata", key]);
        let mut view = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": text("name"), "namespace": text("namespace"), "uid": text("uid"),
                "resourceVersion": text("resourceVersion"), "creationTimestamp": text("creationTimestamp"),
            },
            "spec": {}, "status": {"replicas": tree::int(live, &split_path(&self.status)).unwrap_or(0)},
        });
        if let Some(replicas) = tree::int(live, &self.spec_replicas()).filter(|replicas| *replicas != 0) {
            tree::set(&mut view, &["spec", "replicas"], replicas);
        }
        let selector = match &self.selector {
            Some(path) => tree::text(live, &split_path(path)).to_owned(),
            None if self.custom => String::new(),
            None => selector_text(tree::get(live, &["spec", "selector"])),
        };
        if !selector.is_empty() {
            tree::set(&mut view, &["status", "selector"], selector);
        }
        view
    }
}

fn split_path(path: &str) -> Vec<&str> {
    path.trim_start_matches('.').split('.').collect()
}

/// Formats a label selector as text, with requirements sorted by key.
pub(crate) fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let labels = tree::map(selector, &["matchLabels"]).or_else(|| {
        selector
            .as_object()
            .filter(|map| !map.contains_key("matchExpressions"))
    });
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in labels
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.is_string())
    {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    for expression in tree::list(selector, &["matchExpressions"]) {
        let key = tree::text(expression, &["key"]);
        let mut values: Vec<&str> = tree::list(expression, &["values"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match tree::text(expression, &["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}
