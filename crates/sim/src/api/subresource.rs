//! Subresources: status, scale, binding, eviction, token, log and others.

use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::{self, PatchKind};
use super::read::representation_for;
use super::response::ApiResponse;
use super::write::{delete_options, parse_object};
use super::{ResourceRequest, scale};
use crate::context::Context;
use crate::resource::{Shape, Verb};
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::write::{self, Target};
use crate::{strategy, tree};

pub(super) fn handle(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let custom = matches!(request.resource.shape, Shape::Custom(_));
    let Some(sub) = request.resource.subresource(&request.path.subresource) else {
        if custom {
            return Err(request.target().not_found());
        }
        return Ok(ApiResponse::from_status(&Status::no_such_resource()));
    };
    if !sub.verbs.contains(request.verb) {
        if custom {
            let what = request.resource.qualified();
            return Err(Status::method_not_supported(what, request.verb.name()));
        }
        return Ok(ApiResponse::from_status(&Status::no_such_method()));
    }
    sub.name.as_ref().clone_into(&mut context.subresource);
    match &*sub.name {
        "scale" => scale::handle(state, request, context),
        "binding" => bind_by_body(state, request, context),
        "eviction" => evict(state, request, context),
        "token" => super::token::create(state, request, context),
        "log" => read_log(state, request),
        "finalize" => finalize(state, request, context),
        "exec" | "attach" | "portforward" | "proxy" => Err(Status::bad_request("Upgrade request required")),
        _ => read_or_write(state, request, context),
    }
}

/// Reads or writes the status and other subresources that consist of the whole object.
fn read_or_write(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    if request.verb == Verb::Get {
        return super::read::get(state, request);
    }
    let (form, include) = representation_for(request)?;
    let resource = request.resource;
    let kind = if request.verb == Verb::Patch {
        Some(PatchKind::from_content_type(request)?)
    } else {
        None
    };
    context.applied = kind == Some(PatchKind::Apply);
    context.patched = kind.is_some();
    let sent = match kind {
        Some(kind) => {
            patch::check_patch_options(request, kind)?;
            patch::parse_patch(request, kind)?
        }
        None => parse_object(request)?,
    };
    let written = write::update(
        state,
        &request.target(),
        context,
        false,
        &mut |state, live, context| match kind {
            Some(kind) => patch::apply_patch(state, request, kind, live, &sent, context),
            None => write::decode(state, resource, sent.clone(), context),
        },
    )?;
    Ok(ApiResponse::object(
        state,
        resource,
        &written.object,
        200,
        form,
        include,
    ))
}

fn finalize(state: &mut State, request: &ResourceRequest<'_>, context: &mut Context) -> Result<ApiResponse> {
    let (form, include) = representation_for(request)?;
    let value = write::decode(state, request.resource, parse_object(request)?, context)?;
    let finalizers = tree::get(&value, &["spec", "finalizers"])
        .cloned()
        .unwrap_or_default();
    let object = strategy::finalize(state, &request.target(), &finalizers)?;
    Ok(ApiResponse::object(
        state,
        request.resource,
        &object,
        200,
        form,
        include,
    ))
}

const POD_BINDING: Qualified<'static> = Qualified {
    group: "",
    name: "pods/binding",
};

/// Assigns a pod to the node named in a posted Binding.
pub(super) fn bind_by_body(
    state: &mut State,
    request: &ResourceRequest<'_>,
    context: &mut Context,
) -> Result<ApiResponse> {
    let binding = super::parse_body(&request.call.body, "binding")?;
    let name = tree::text(&binding, &["metadata", "name"]).to_owned();
    let name = if request.path.name.is_empty() {
        name
    } else if name != request.path.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    } else {
        request.path.name.clone()
    };
    let node = tree::text(&binding, &["target", "name"]).to_owned();
    let Some(pods) = state.resources.preferred("", "pods").cloned() else {
        return Ok(ApiResponse::not_found());
    };
    let target = Target {
        resource: &pods,
        namespace: &request.path.namespace,
        name: &name,
    };
    bind(state, &target, &node, context)?;
    Ok(ApiResponse::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Assigns a pod to a node.
pub(crate) fn bind(state: &mut State, target: &Target<'_>, node: &str, context: &mut Context) -> Result<()> {
    let Some((live, mut pod)) = write::current(state, target) else {
        return Err(target.not_found());
    };
    let assigned = tree::text(&pod, &["spec", "nodeName"]);
    if live.meta().deleting {
        let reason = format!(
            "pod {} is being deleted, cannot be assigned to a host",
            target.name
        );
        return Err(Status::conflict(POD_BINDING, target.name, &reason));
    }
    if !assigned.is_empty() {
        let reason = format!("pod {} is already assigned to node {assigned:?}", target.name);
        return Err(Status::conflict(POD_BINDING, target.name, &reason));
    }
    tree::set(&mut pod, &["spec", "nodeName"], node);
    let mut conditions = tree::list(&pod, &["status", "conditions"]).to_vec();
    conditions.retain(|condition| tree::text(condition, &["type"]) != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": state.now().rfc3339(),
    }));
    tree::set(&mut pod, &["status", "conditions"], conditions);
    if !context.dry_run {
        write::persist(state, target.resource, pod);
    }
    Ok(())
}

const DISRUPTION_BUDGETS: &str = "poddisruptionbudgets.policy";

/// Deletes a pod unless a disruption budget forbids it.
fn evict(state: &mut State, request: &ResourceRequest<'_>, context: &mut Context) -> Result<ApiResponse> {
    let eviction = super::parse_body(&request.call.body, "eviction")?;
    let target = request.target();
    let Some((live, pod)) = write::current(state, &target) else {
        return Err(target.not_found());
    };
    context.subresource.clear();
    let mut options = delete_options(request, context)?;
    if let Some(delete_options) = eviction.get("deleteOptions") {
        options = write::DeleteOptions::parse(delete_options)?;
    }
    let unprotected = matches!(
        tree::text(&pod, &["status", "phase"]),
        "Succeeded" | "Failed" | "Pending"
    );
    if !unprotected && !live.meta().deleting {
        decrement_budget(state, &target, &pod, context)?;
    }
    write::delete(state, &target, &options, context)?;
    Ok(ApiResponse::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Decrements the allowed disruptions of the pod's budget. Fails if no disruption is allowed.
fn decrement_budget(state: &mut State, target: &Target<'_>, pod: &Value, context: &Context) -> Result<()> {
    let labels = tree::get(pod, &["metadata", "labels"]).cloned();
    let budgets: Vec<Arc<crate::object::Object>> = state
        .store
        .range(DISRUPTION_BUDGETS, target.namespace, None)
        .map(|(_, object)| Arc::clone(object))
        .collect();
    let selects_pod = |budget: &Value| {
        LabelSelector::from_object(tree::get(budget, &["spec", "selector"])).matches_map(labels.as_ref())
    };
    let mut matching: Vec<Value> = budgets
        .iter()
        .map(|object| object.packed())
        .filter(selects_pod)
        .collect();
    if matching.len() > 1 {
        return Err(Status::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    let Some(mut budget) = matching.pop() else {
        return Ok(());
    };
    let name = tree::text(&budget, &["metadata", "name"]).to_owned();
    let status = |field: &str| tree::int(&budget, &["status", field]).unwrap_or(0);
    let allowed = status("disruptionsAllowed");
    if status("observedGeneration") < tree::int(&budget, &["metadata", "generation"]).unwrap_or(0) {
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Status::too_many_requests(text, 10).cause("DisruptionBudget", &cause, ""));
    }
    if allowed <= 0 {
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status("desiredHealthy"),
            status("currentHealthy")
        );
        return Err(Status::new(429, "TooManyRequests", text).cause("DisruptionBudget", &cause, ""));
    }
    tree::set(&mut budget, &["status", "disruptionsAllowed"], allowed - 1);
    let now = state.now().rfc3339();
    tree::set(&mut budget, &["status", "disruptedPods", target.name], now);
    if let Some(resource) = state
        .resources
        .preferred("policy", "poddisruptionbudgets")
        .cloned()
        .filter(|_| !context.dry_run)
    {
        write::persist(state, &resource, budget);
    }
    Ok(())
}

/// Returns an empty log, because containers are not executed.
fn read_log(state: &State, request: &ResourceRequest<'_>) -> Result<ApiResponse> {
    let target = request.target();
    let Some((_, pod)) = write::current(state, &target) else {
        return Err(target.not_found());
    };
    let names: Vec<&str> = tree::list(&pod, &["spec", "containers"])
        .iter()
        .map(|one| tree::text(one, &["name"]))
        .collect();
    let requested = request.call.query.get("container");
    if requested.is_empty() && names.len() > 1 {
        let text = format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            target.name,
            names.join(" ")
        );
        return Err(Status::bad_request(text));
    }
    if !requested.is_empty() && !names.contains(&requested) {
        return Err(Status::bad_request(format!(
            "container {requested} is not valid for pod {}",
            target.name
        )));
    }
    Ok(ApiResponse::text(200, ""))
}
