//! The table of the columns of builtin kinds, and the functions that return the cells of an object.

use serde_json::{Value, json};

use super::cells::{
    condition, containers, created, format_list, labels, name, name_and_age, number, or_none,
};
use super::{Column, age};
use crate::api::selector_text;
use crate::state::State;
use crate::tree;

pub(super) type Cells = fn(&Value, &State) -> Vec<Value>;

/// Table, columns and cells of each kind. Columns contain text unless they are marked: `#` marks numbers, `?`
/// booleans, and `+` columns of `-o wide`.
const KINDS: &[(&str, &str, Cells)] = &[
    (
        "pods",
        "Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
        super::pod::cells,
    ),
    (
        "deployments.apps",
        "Name,Ready,Up-to-date,Available,Age,+Containers,+Images,+Selector",
        deployment,
    ),
    (
        "replicasets.apps",
        "Name,#Desired,#Current,#Ready,Age,+Containers,+Images,+Selector",
        replica_set,
    ),
    (
        "replicationcontrollers",
        "Name,#Desired,#Current,#Ready,Age,+Containers,+Images,+Selector",
        replica_set,
    ),
    (
        "statefulsets.apps",
        "Name,Ready,Age,+Containers,+Images",
        stateful_set,
    ),
    (
        "daemonsets.apps",
        "Name,#Desired,#Current,#Ready,#Up-to-date,#Available,Node Selector,Age,+Containers,+Images,+Selector",
        daemon_set,
    ),
    (
        "jobs.batch",
        "Name,Status,Completions,Duration,Age,+Containers,+Images,+Selector",
        job,
    ),
    (
        "services",
        "Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector",
        service,
    ),
    ("namespaces", "Name,Status,Age", name_phase_and_age),
    (
        "nodes",
        "Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime",
        node,
    ),
    ("configmaps", "Name,Data,Age", config_map),
    ("secrets", "Name,Type,Data,Age", secret),
    ("serviceaccounts", "Name,Age", name_and_age),
    (
        "events",
        "Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name",
        event,
    ),
    (
        "rolebindings.rbac.authorization.k8s.io",
        "Name,Role,Age,+Users,+Groups,+ServiceAccounts",
        role_binding,
    ),
    (
        "clusterrolebindings.rbac.authorization.k8s.io",
        "Name,Role,Age,+Users,+Groups,+ServiceAccounts",
        role_binding,
    ),
    ("leases.coordination.k8s.io", "Name,Holder,Age", lease),
    (
        "poddisruptionbudgets.policy",
        "Name,Min Available,Max Unavailable,#Allowed Disruptions,Age",
        disruption_budget,
    ),
    (
        "endpointslices.discovery.k8s.io",
        "Name,AddressType,Ports,Endpoints,Age",
        endpoint_slice,
    ),
    (
        "networkpolicies.networking.k8s.io",
        "Name,Pod-Selector,Age",
        network_policy,
    ),
    (
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "Name,#Webhooks,Age",
        webhooks,
    ),
    (
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "Name,#Webhooks,Age",
        webhooks,
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        "Name,#Value,?Global-Default,Age,PreemptionPolicy",
        priority_class,
    ),
    (
        "storageclasses.storage.k8s.io",
        "Name,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age",
        storage_class,
    ),
    (
        "persistentvolumeclaims",
        "Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,+VolumeMode",
        claim,
    ),
    (
        "controllerrevisions.apps",
        "Name,Controller,Revision,Age",
        controller_revision,
    ),
];

/// Returns the columns and cells of a builtin table, or `None` if it is not listed here.
pub(super) fn find(table: &str) -> Option<(Vec<Column>, Cells)> {
    let (_, columns, cells) = KINDS
        .iter()
        .chain(super::more::KINDS)
        .find(|(name, ..)| *name == table)?;
    Some((columns.split(',').map(parse_column).collect(), *cells))
}

fn parse_column(text: &str) -> Column {
    let (priority, text) = text.strip_prefix('+').map_or((0, text), |rest| (1, rest));
    let (kind, name) = match (text.strip_prefix('#'), text.strip_prefix('?')) {
        (Some(rest), _) => ("integer", rest),
        (_, Some(rest)) => ("boolean", rest),
        _ => ("string", text),
    };
    match name.strip_prefix('%') {
        Some(name) => Column {
            format: "name".into(),
            ..Column::new(name, kind, priority)
        },
        None => Column::new(name, kind, priority),
    }
}

/// Returns the names and the images of the containers of a pod template.
fn template_containers(value: &Value) -> [Value; 2] {
    containers(tree::list(value, &["spec", "template", "spec", "containers"]))
}

fn selector(value: &Value) -> Value {
    or_none(selector_text(tree::get(value, &["spec", "selector"])))
}

fn deployment(value: &Value, state: &State) -> Vec<Value> {
    let ready = format!(
        "{}/{}",
        number(value, &["status", "readyReplicas"]),
        number(value, &["spec", "replicas"])
    );
    let [names, images] = template_containers(value);
    vec![
        name(value),
        ready.into(),
        number(value, &["status", "updatedReplicas"]).into(),
        number(value, &["status", "availableReplicas"]).into(),
        created(value, state),
        names,
        images,
        selector_text(tree::get(value, &["spec", "selector"])).into(),
    ]
}

fn replica_set(value: &Value, state: &State) -> Vec<Value> {
    let [names, images] = template_containers(value);
    vec![
        name(value),
        number(value, &["spec", "replicas"]).into(),
        number(value, &["status", "replicas"]).into(),
        number(value, &["status", "readyReplicas"]).into(),
        created(value, state),
        names,
        images,
        selector(value),
    ]
}

fn stateful_set(value: &Value, state: &State) -> Vec<Value> {
    let ready = format!(
        "{}/{}",
        number(value, &["status", "readyReplicas"]),
        number(value, &["spec", "replicas"])
    );
    let [names, images] = template_containers(value);
    vec![name(value), ready.into(), created(value, state), names, images]
}

fn daemon_set(value: &Value, state: &State) -> Vec<Value> {
    let [names, images] = template_containers(value);
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let mut cells = vec![name(value)];
    cells.extend(fields.map(|field| Value::from(number(value, &["status", field]))));
    cells.push(labels(tree::get(
        value,
        &["spec", "template", "spec", "nodeSelector"],
    )));
    cells.extend([created(value, state), names, images, selector(value)]);
    cells
}

fn job(value: &Value, state: &State) -> Vec<Value> {
    let succeeded = number(value, &["status", "succeeded"]);
    let parallelism = number(value, &["spec", "parallelism"]);
    let completions = match tree::int(value, &["spec", "completions"]) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let is = |kind: &str| condition(value, kind) == "True";
    let status = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if tree::get(value, &["metadata", "deletionTimestamp"]).is_some() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let [names, images] = template_containers(value);
    vec![
        name(value),
        status.into(),
        completions.into(),
        job_duration(value, state),
        created(value, state),
        names,
        images,
        selector(value),
    ]
}

fn job_duration(value: &Value, state: &State) -> Value {
    let time = |field: &str| crate::clock::Instant::parse(tree::text(value, &["status", field]));
    match (time("startTime"), time("completionTime")) {
        (None, _) => "".into(),
        (Some(start), None) => {
            super::age::format_duration(state.now().as_seconds() - start.as_seconds()).into()
        }
        (Some(start), Some(end)) => super::age::format_duration(end.as_seconds() - start.as_seconds()).into(),
    }
}

fn service(value: &Value, state: &State) -> Vec<Value> {
    let kind = tree::text(value, &["spec", "type"]);
    let ip = tree::list(value, &["spec", "clusterIPs"])
        .first()
        .and_then(Value::as_str)
        .unwrap_or("<none>");
    let ports: Vec<String> = tree::list(value, &["spec", "ports"]).iter().map(port).collect();
    vec![
        name(value),
        kind.into(),
        ip.into(),
        external_ip(value, kind),
        or_none(ports.join(",")),
        created(value, state),
        labels(tree::get(value, &["spec", "selector"])),
    ]
}

fn port(port: &Value) -> String {
    let (own, protocol) = (number(port, &["port"]), tree::text(port, &["protocol"]));
    match number(port, &["nodePort"]) {
        0 => format!("{own}/{protocol}"),
        node => format!("{own}:{node}/{protocol}"),
    }
}

fn external_ip(value: &Value, kind: &str) -> Value {
    let mut all: Vec<&str> = Vec::new();
    if kind == "LoadBalancer" {
        for ingress in tree::list(value, &["status", "loadBalancer", "ingress"]) {
            let (ip, host) = (tree::text(ingress, &["ip"]), tree::text(ingress, &["hostname"]));
            all.push(if ip.is_empty() { host } else { ip });
        }
    }
    all.extend(
        tree::list(value, &["spec", "externalIPs"])
            .iter()
            .filter_map(Value::as_str),
    );
    match kind {
        "ExternalName" => tree::text(value, &["spec", "externalName"]).into(),
        "LoadBalancer" if all.is_empty() => "<pending>".into(),
        _ => or_none(all.join(",")),
    }
}

fn name_phase_and_age(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        tree::text(value, &["status", "phase"]).into(),
        created(value, state),
    ]
}

fn node(value: &Value, state: &State) -> Vec<Value> {
    let mut status = vec![match condition(value, "Ready") {
        "True" => "Ready",
        "" => "Unknown",
        _ => "NotReady",
    }];
    if tree::flag(value, &["spec", "unschedulable"]) {
        status.push("SchedulingDisabled");
    }
    let keys = tree::map(value, &["metadata", "labels"]).into_iter().flatten();
    let mut roles: Vec<&str> = keys
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    let info = |field: &str| tree::text(value, &["status", "nodeInfo", field]);
    let known = |field: &str| {
        Value::from(if info(field).is_empty() {
            "<unknown>"
        } else {
            info(field)
        })
    };
    let address = |kind: &str| {
        let all = tree::list(value, &["status", "addresses"]);
        or_none(
            all.iter()
                .find(|one| tree::text(one, &["type"]) == kind)
                .map_or(String::new(), |one| tree::text(one, &["address"]).to_owned()),
        )
    };
    vec![
        name(value),
        status.join(",").into(),
        or_none(roles.join(",")),
        created(value, state),
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}

fn size(value: &Value, field: &str) -> usize {
    tree::map(value, &[field]).map_or(0, serde_json::Map::len)
}

fn config_map(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        (size(value, "data") + size(value, "binaryData")).into(),
        created(value, state),
    ]
}

fn secret(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        tree::text(value, &["type"]).into(),
        size(value, "data").into(),
        created(value, state),
    ]
}

fn event(value: &Value, state: &State) -> Vec<Value> {
    let since = |path: &[&str]| {
        let text = tree::text(value, path);
        (!text.is_empty()).then(|| age(text, state.now()))
    };
    let first = since(&["firstTimestamp"])
        .or_else(|| since(&["eventTime"]))
        .unwrap_or_else(|| "<unknown>".into());
    let last = since(&["series", "lastObservedTime"])
        .or_else(|| since(&["lastTimestamp"]))
        .unwrap_or_else(|| first.clone());
    let count = tree::int(value, &["series", "count"])
        .or_else(|| tree::int(value, &["count"]))
        .unwrap_or(0)
        .max(1);
    let (kind, about) = (
        tree::text(value, &["involvedObject", "kind"]).to_lowercase(),
        tree::text(value, &["involvedObject", "name"]),
    );
    let target = if about.is_empty() {
        kind
    } else {
        format!("{kind}/{about}")
    };
    let source = tree::text(value, &["source", "component"]);
    let source = if source.is_empty() {
        tree::text(value, &["reportingComponent"])
    } else {
        source
    };
    vec![
        last.into(),
        tree::text(value, &["type"]).into(),
        tree::text(value, &["reason"]).into(),
        target.into(),
        tree::text(value, &["involvedObject", "fieldPath"]).into(),
        source.into(),
        tree::text(value, &["message"]).trim().into(),
        first.into(),
        count.into(),
        name(value),
    ]
}

fn role_binding(value: &Value, state: &State) -> Vec<Value> {
    let role = format!(
        "{}/{}",
        tree::text(value, &["roleRef", "kind"]),
        tree::text(value, &["roleRef", "name"])
    );
    let subjects = tree::list(value, &["subjects"]);
    let subjects_of_kind = |kind: &str| -> Value {
        let shown = subjects
            .iter()
            .filter(|one| tree::text(one, &["kind"]) == kind)
            .map(|one| {
                let (namespace, name) = (tree::text(one, &["namespace"]), tree::text(one, &["name"]));
                if kind == "ServiceAccount" {
                    format!("{namespace}/{name}")
                } else {
                    name.to_owned()
                }
            });
        shown.collect::<Vec<_>>().join(", ").into()
    };
    vec![
        name(value),
        role.into(),
        created(value, state),
        subjects_of_kind("User"),
        subjects_of_kind("Group"),
        subjects_of_kind("ServiceAccount"),
    ]
}

fn lease(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        tree::text(value, &["spec", "holderIdentity"]).into(),
        created(value, state),
    ]
}

fn int_or_text(value: Option<&Value>) -> Value {
    match value {
        Some(Value::String(text)) => text.as_str().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        _ => "N/A".into(),
    }
}

fn disruption_budget(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        int_or_text(tree::get(value, &["spec", "minAvailable"])),
        int_or_text(tree::get(value, &["spec", "maxUnavailable"])),
        number(value, &["status", "disruptionsAllowed"]).into(),
        created(value, state),
    ]
}

/// Formats the first three items of a list.
fn list_or_unset(all: &[String]) -> Value {
    match all {
        [] => "<unset>".into(),
        all => format_list(all, 3, ",").into(),
    }
}

fn endpoint_slice(value: &Value, state: &State) -> Vec<Value> {
    let ports: Vec<String> = tree::list(value, &["ports"])
        .iter()
        .map(
            |port| match (tree::int(port, &["port"]), tree::text(port, &["name"])) {
                (Some(port), _) => port.to_string(),
                (None, "") => "*".into(),
                (None, name) => name.to_owned(),
            },
        )
        .collect();
    let endpoints: Vec<String> = tree::list(value, &["endpoints"])
        .iter()
        .flat_map(|one| tree::list(one, &["addresses"]))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    vec![
        name(value),
        tree::text(value, &["addressType"]).into(),
        list_or_unset(&ports),
        list_or_unset(&endpoints),
        created(value, state),
    ]
}

fn network_policy(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        or_none(selector_text(tree::get(value, &["spec", "podSelector"]))),
        created(value, state),
    ]
}

fn webhooks(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        tree::list(value, &["webhooks"]).len().into(),
        created(value, state),
    ]
}

fn priority_class(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        number(value, &["value"]).into(),
        tree::flag(value, &["globalDefault"]).into(),
        created(value, state),
        tree::text(value, &["preemptionPolicy"]).into(),
    ]
}

fn storage_class(value: &Value, state: &State) -> Vec<Value> {
    vec![
        name(value),
        tree::text(value, &["provisioner"]).into(),
        tree::text(value, &["reclaimPolicy"]).into(),
        tree::text(value, &["volumeBindingMode"]).into(),
        tree::flag(value, &["allowVolumeExpansion"]).into(),
        created(value, state),
    ]
}

fn claim(value: &Value, state: &State) -> Vec<Value> {
    let phase = if tree::get(value, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else {
        tree::text(value, &["status", "phase"])
    };
    let short = |mode: &Value| match mode.as_str().unwrap_or("") {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        _ => "RWOP",
    };
    let modes = tree::list(value, &["status", "accessModes"])
        .iter()
        .map(short)
        .collect::<Vec<_>>()
        .join(",");
    vec![
        name(value),
        phase.into(),
        tree::text(value, &["spec", "volumeName"]).into(),
        tree::text(value, &["status", "capacity", "storage"]).into(),
        modes.into(),
        tree::text(value, &["spec", "storageClassName"]).into(),
        "<unset>".into(),
        created(value, state),
        tree::text(value, &["spec", "volumeMode"]).into(),
    ]
}

fn controller_revision(value: &Value, state: &State) -> Vec<Value> {
    let owners = tree::list(value, &["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|owner| tree::flag(owner, &["controller"]));
    let owner = owner.map_or_else(
        || json!("<none>"),
        |owner| {
            let (api_version, kind) = (
                tree::text(owner, &["apiVersion"]),
                tree::text(owner, &["kind"]).to_lowercase(),
            );
            let group = api_version
                .split_once('/')
                .map_or(String::new(), |(group, _)| format!(".{group}"));
            json!(format!("{kind}{group}/{}", tree::text(owner, &["name"])))
        },
    );
    vec![
        name(value),
        owner,
        number(value, &["revision"]).into(),
        created(value, state),
    ]
}
