//! The table of the columns of less common builtin kinds: autoscaling, networking, storage, policies and
//! kinds of the server itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::age;
use super::cells::{
    condition, containers, created, format_list, join, labels, name, name_and_age, number, or_none, text,
    text_or,
};
use super::kinds::Cells;
use crate::api::selector_text;
use crate::state::State;
use crate::tree;

/// Table, columns and cells of each kind, as in [`super::kinds`]. In addition, `%` marks columns that are
/// formatted as a name.
pub(super) const KINDS: &[(&str, &str, Cells)] = &[
    ("componentstatuses", "Name,Status,Message,Error", |value, _| {
        vec![name(value), "Unknown".into(), "".into(), "".into()]
    }),
    ("endpoints", "Name,Endpoints,Age", |value, state| {
        vec![name(value), endpoints(value), created(value, state)]
    }),
    (
        "persistentvolumes",
        "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,+VolumeMode",
        persistent_volume,
    ),
    ("podtemplates", "Name,Containers,Images,Pod Labels", |value, _| {
        let [names, images] = containers(tree::list(value, &["template", "spec", "containers"]));
        let pod_labels = labels(tree::get(value, &["template", "metadata", "labels"]));
        vec![name(value), names, images, pod_labels]
    }),
    ("resourcequotas", "Name,Request,Limit,Age", quota),
    (
        "apiservices.apiregistration.k8s.io",
        "Name,Service,Available,Age",
        api_service,
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        "Name,Reference,Targets,MinPods,MaxPods,Replicas,Age",
        autoscaler,
    ),
    (
        "cronjobs.batch",
        "Name,Schedule,Timezone,?Suspend,#Active,Last Schedule,Age,+Containers,+Images,+Selector",
        cron_job,
    ),
    (
        "certificatesigningrequests.certificates.k8s.io",
        "Name,Age,SignerName,Requestor,RequestedDuration,Condition",
        signing_request,
    ),
    (
        "ingressclasses.networking.k8s.io",
        "Name,Controller,Parameters,Age",
        ingress_class,
    ),
    (
        "ingresses.networking.k8s.io",
        "Name,Class,Hosts,Address,Ports,Age",
        ingress,
    ),
    ("ipaddresses.networking.k8s.io", "Name,ParentRef", ip_address),
    (
        "servicecidrs.networking.k8s.io",
        "Name,CIDRs,Age",
        |value, state| {
            let ranges = join(value, &["spec", "cidrs"]);
            vec![name(value), ranges.into(), created(value, state)]
        },
    ),
    (
        "csidrivers.storage.k8s.io",
        "Name,?AttachRequired,?PodInfoOnMount,?StorageCapacity,TokenRequests,?RequiresRepublish,Modes,Age",
        driver,
    ),
    ("csinodes.storage.k8s.io", "Name,#Drivers,Age", |value, state| {
        let count = tree::list(value, &["spec", "drivers"]).len();
        vec![name(value), count.into(), created(value, state)]
    }),
    (
        "volumeattachments.storage.k8s.io",
        "Name,%Attacher,PV,Node,?Attached,Age",
        |value, state| {
            vec![
                name(value),
                text(value, &["spec", "attacher"]),
                text(value, &["spec", "source", "persistentVolumeName"]),
                text(value, &["spec", "nodeName"]),
                tree::flag(value, &["status", "attached"]).into(),
                created(value, state),
            ]
        },
    ),
    (
        "volumeattributesclasses.storage.k8s.io",
        "Name,DriverName,Age",
        |value, state| vec![name(value), text(value, &["driverName"]), created(value, state)],
    ),
    (
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "Name,#Mutations,ParamKind,Age",
        |value, state| policy(value, state, "mutations"),
    ),
    (
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "Name,PolicyName,ParamRef,Age",
        policy_binding,
    ),
    (
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "Name,#Validations,ParamKind,Age",
        |value, state| policy(value, state, "validations"),
    ),
    (
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "Name,PolicyName,ParamRef,Age",
        policy_binding,
    ),
    (
        "runtimeclasses.node.k8s.io",
        "Name,Handler,Age",
        |value, state| vec![name(value), text(value, &["handler"]), created(value, state)],
    ),
    ("deviceclasses.resource.k8s.io", "Name,Age", name_and_age),
    (
        "resourceclaims.resource.k8s.io",
        "Name,State,Age",
        |value, state| vec![name(value), claim_state(value), created(value, state)],
    ),
    ("resourceclaimtemplates.resource.k8s.io", "Name,Age", name_and_age),
    (
        "resourceslices.resource.k8s.io",
        "Name,Node,Driver,Pool,Age",
        |value, state| {
            vec![
                name(value),
                text(value, &["spec", "nodeName"]),
                text(value, &["spec", "driver"]),
                text(value, &["spec", "pool", "name"]),
                created(value, state),
            ]
        },
    ),
    (
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "Name,PriorityLevel,MatchingPrecedence,DistinguisherMethod,Age,MissingPL",
        flow_schema,
    ),
    (
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "Name,Type,NominalConcurrencyShares,Queues,HandSize,QueueLengthLimit,Age",
        priority_level,
    ),
];

fn endpoints(value: &Value) -> Value {
    let subsets = tree::list(value, &["subsets"]);
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips: Vec<&str> = tree::list(subset, &["addresses"])
            .iter()
            .map(|one| tree::text(one, &["ip"]))
            .collect();
        let ports = tree::list(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in ports {
            all.extend(ips.iter().map(|ip| format!("{ip}:{}", number(port, &["port"]))));
        }
    }
    format_list(&all, 3, ",").into()
}

fn persistent_volume(value: &Value, state: &State) -> Vec<Value> {
    let claim = tree::get(value, &["spec", "claimRef"]).map_or(String::new(), |claim| {
        format!(
            "{}/{}",
            tree::text(claim, &["namespace"]),
            tree::text(claim, &["name"])
        )
    });
    let phase = if tree::get(value, &["metadata", "deletionTimestamp"]).is_some() {
        "Terminating"
    } else {
        tree::text(value, &["status", "phase"])
    };
    let given = tree::list(value, &["spec", "accessModes"]);
    let modes: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| given.iter().any(|one| one == mode))
    .map(|(_, short)| short)
    .collect();
    vec![
        name(value),
        text_or(value, &["spec", "capacity", "storage"], "0"),
        modes.join(",").into(),
        text(value, &["spec", "persistentVolumeReclaimPolicy"]),
        phase.into(),
        claim.into(),
        text(value, &["spec", "storageClassName"]),
        text_or(value, &["spec", "volumeAttributesClassName"], "<unset>"),
        text(value, &["status", "reason"]),
        created(value, state),
        text_or(value, &["spec", "volumeMode"], "<unset>"),
    ]
}

fn quota(value: &Value, state: &State) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in tree::map(value, &["status", "hard"]).into_iter().flatten() {
        let used = match tree::text(value, &["status", "used", resource]) {
            "" => "0",
            used => used,
        };
        let line = format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
        if resource.starts_with("limits.") {
            limits.push(line);
        } else {
            requests.push(line);
        }
    }
    vec![
        name(value),
        requests.join(", ").into(),
        limits.join(", ").into(),
        created(value, state),
    ]
}

fn api_service(value: &Value, state: &State) -> Vec<Value> {
    let service = tree::get(value, &["spec", "service"]).filter(|service| !service.is_null());
    let service = service.map_or("Local".to_owned(), |service| {
        format!(
            "{}/{}",
            tree::text(service, &["namespace"]),
            tree::text(service, &["name"])
        )
    });
    let available = tree::list(value, &["status", "conditions"])
        .iter()
        .find(|one| tree::text(one, &["type"]) == "Available");
    let status = available.map_or("Unknown".to_owned(), |one| {
        match (tree::text(one, &["status"]), tree::text(one, &["reason"])) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        }
    });
    vec![name(value), service.into(), status.into(), created(value, state)]
}

fn autoscaler(value: &Value, state: &State) -> Vec<Value> {
    let target = |field| tree::text(value, &["spec", "scaleTargetRef", field]);
    let specs = tree::list(value, &["spec", "metrics"]);
    let statuses = tree::list(value, &["status", "currentMetrics"]);
    let all: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| metric(spec, statuses.get(at)))
        .collect();
    let metrics = if all.is_empty() {
        "<none>".to_owned()
    } else {
        format_list(&all, 2, ", ")
    };
    let min = tree::int(value, &["spec", "minReplicas"]);
    vec![
        name(value),
        format!("{}/{}", target("kind"), target("name")).into(),
        metrics.into(),
        min.map_or("<unset>".into(), |min| min.to_string().into()),
        number(value, &["spec", "maxReplicas"]).into(),
        number(value, &["status", "currentReplicas"]).into(),
        created(value, state),
    ]
}

/// Formats the current and the target value of a metric.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let kind = tree::text(spec, &["type"]);
    let field = match kind {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let current = |what: &str| {
        let found = status.and_then(|status| tree::get(status, &[field, "current", what]));
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(number) if what == "averageUtilization" => format!("{number}%"),
            _ => "<unknown>".to_owned(),
        }
    };
    let target = |what: &str| tree::text(spec, &[field, "target", what]).to_owned();
    let average = !target("averageValue").is_empty();
    match kind {
        "Resource" | "ContainerResource" => {
            let resource = tree::text(spec, &[field, "name"]);
            if average {
                return format!(
                    "{resource}: {}/{}",
                    current("averageValue"),
                    target("averageValue")
                );
            }
            let wanted = tree::int(spec, &[field, "target", "averageUtilization"]);
            let wanted = wanted.map_or("<auto>".to_owned(), |wanted| format!("{wanted}%"));
            format!("{resource}: {}/{wanted}", current("averageUtilization"))
        }
        "Pods" => format!("{}/{}", current("averageValue"), target("averageValue")),
        _ if average => format!("{}/{} (avg)", current("averageValue"), target("averageValue")),
        _ => format!("{}/{}", current("value"), target("value")),
    }
}

fn cron_job(value: &Value, state: &State) -> Vec<Value> {
    let last = tree::text(value, &["status", "lastScheduleTime"]);
    let last = if last.is_empty() {
        "<none>".to_owned()
    } else {
        age(last, state.now())
    };
    let suspended = tree::get(value, &["spec", "suspend"]).and_then(Value::as_bool);
    let suspended = match suspended {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let job = tree::get(value, &["spec", "jobTemplate", "spec"]).unwrap_or(&Value::Null);
    let [names, images] = containers(tree::list(job, &["template", "spec", "containers"]));
    let selector = selector_text(tree::get(job, &["selector"]));
    vec![
        name(value),
        text(value, &["spec", "schedule"]),
        text_or(value, &["spec", "timeZone"], "<none>"),
        suspended.into(),
        tree::list(value, &["status", "active"]).len().into(),
        last.into(),
        created(value, state),
        names,
        images,
        or_none(selector),
    ]
}

fn signing_request(value: &Value, state: &State) -> Vec<Value> {
    let has = |kind: &str| !condition(value, kind).is_empty();
    let mut status = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !tree::text(value, &["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    let wanted = tree::int(value, &["spec", "expirationSeconds"]);
    vec![
        name(value),
        created(value, state),
        text_or(value, &["spec", "signerName"], "<none>"),
        text(value, &["spec", "username"]),
        wanted.map_or("<none>".into(), |seconds| {
            super::age::format_duration(seconds).into()
        }),
        status.into(),
    ]
}

fn ingress_class(value: &Value, state: &State) -> Vec<Value> {
    let default = tree::text(
        value,
        &[
            "metadata",
            "annotations",
            "ingressclass.kubernetes.io/is-default-class",
        ],
    );
    let mut shown = tree::text(value, &["metadata", "name"]).to_owned();
    if default == "true" {
        shown.push_str(" (default)");
    }
    let parameters = tree::get(value, &["spec", "parameters"]).filter(|one| !one.is_null());
    let parameters = parameters.map_or("<none>".to_owned(), |one| {
        let part = |field| tree::text(one, &[field]);
        match part("apiGroup") {
            "" => format!("{}/{}", part("kind"), part("name")),
            group => format!("{}.{group}/{}", part("kind"), part("name")),
        }
    });
    vec![
        shown.into(),
        text(value, &["spec", "controller"]),
        parameters.into(),
        created(value, state),
    ]
}

fn ingress(value: &Value, state: &State) -> Vec<Value> {
    let rules = tree::list(value, &["spec", "rules"]);
    let hosts: Vec<String> = rules
        .iter()
        .map(|rule| tree::text(rule, &["host"]).to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let hosts = match format_list(&hosts, 3, ",") {
        hosts if hosts.is_empty() => "*".to_owned(),
        hosts => hosts,
    };
    let addresses: BTreeSet<&str> = tree::list(value, &["status", "loadBalancer", "ingress"])
        .iter()
        .map(|one| match tree::text(one, &["ip"]) {
            "" => tree::text(one, &["hostname"]),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    let addresses = addresses.into_iter().collect::<Vec<_>>().join(",");
    let secure = !tree::list(value, &["spec", "tls"]).is_empty();
    vec![
        name(value),
        text_or(value, &["spec", "ingressClassName"], "<none>"),
        hosts.into(),
        addresses.into(),
        if secure { "80, 443" } else { "80" }.into(),
        created(value, state),
    ]
}

fn ip_address(value: &Value, state: &State) -> Vec<Value> {
    let parent = tree::get(value, &["spec", "parentRef"]).map_or("<none>".to_owned(), |parent| {
        let part = |field| tree::text(parent, &[field]);
        let mut shown = part("resource").to_lowercase();
        for (separator, part) in [
            (".", part("group")),
            ("/", part("namespace")),
            ("/", part("name")),
        ] {
            if !part.is_empty() {
                shown.push_str(separator);
                shown.push_str(part);
            }
        }
        shown
    });
    vec![name(value), parent.into(), created(value, state)]
}

fn driver(value: &Value, state: &State) -> Vec<Value> {
    let flag = |field: &str, absent: bool| {
        let given = tree::get(value, &["spec", field]).and_then(Value::as_bool);
        Value::from(given.unwrap_or(absent))
    };
    let audiences: Vec<&str> = tree::list(value, &["spec", "tokenRequests"])
        .iter()
        .map(|one| tree::text(one, &["audience"]))
        .collect();
    let tokens = if tree::get(value, &["spec", "tokenRequests"]).is_some() {
        audiences.join(",")
    } else {
        "<unset>".to_owned()
    };
    vec![
        name(value),
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        tokens.into(),
        flag("requiresRepublish", false),
        or_none(join(value, &["spec", "volumeLifecycleModes"])),
        created(value, state),
    ]
}

fn policy(value: &Value, state: &State, what: &str) -> Vec<Value> {
    let kind = tree::get(value, &["spec", "paramKind"]).filter(|kind| !kind.is_null());
    let kind = kind.map_or("<unset>".to_owned(), |kind| {
        format!(
            "{}/{}",
            tree::text(kind, &["apiVersion"]),
            tree::text(kind, &["kind"])
        )
    });
    let count = tree::list(value, &["spec", what]).len();
    vec![name(value), count.into(), kind.into(), created(value, state)]
}

fn policy_binding(value: &Value, state: &State) -> Vec<Value> {
    let part = |field| tree::text(value, &["spec", "paramRef", field]);
    let parameters = match (part("namespace"), part("name")) {
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![
        name(value),
        text(value, &["spec", "policyName"]),
        parameters.into(),
        created(value, state),
    ]
}

fn claim_state(value: &Value) -> Value {
    let deleted = tree::get(value, &["metadata", "deletionTimestamp"]).is_some();
    let allocated = tree::get(value, &["status", "allocation"]).is_some_and(|there| !there.is_null());
    let reserved = !tree::list(value, &["status", "reservedFor"]).is_empty();
    let states: Vec<&str> = [
        (deleted, "deleted"),
        (!allocated && !deleted, "pending"),
        (allocated, "allocated"),
        (allocated && reserved, "reserved"),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .map(|(_, state)| state)
    .collect();
    states.join(",").into()
}

fn flow_schema(value: &Value, state: &State) -> Vec<Value> {
    let dangling = match condition(value, "Dangling") {
        "" => "?",
        status => status,
    };
    vec![
        name(value),
        text(value, &["spec", "priorityLevelConfiguration", "name"]),
        number(value, &["spec", "matchingPrecedence"]).into(),
        text_or(value, &["spec", "distinguisherMethod", "type"], "<none>"),
        created(value, state),
        dangling.into(),
    ]
}

fn priority_level(value: &Value, state: &State) -> Vec<Value> {
    let or_none = |path: &[&str]| {
        let found = tree::get(value, path).cloned();
        found.unwrap_or_else(|| json!("<none>"))
    };
    let queuing = |field| or_none(&["spec", "limited", "limitResponse", "queuing", field]);
    vec![
        name(value),
        text(value, &["spec", "type"]),
        or_none(&["spec", "limited", "nominalConcurrencyShares"]),
        queuing("queues"),
        queuing("handSize"),
        queuing("queueLengthLimit"),
        created(value, state),
    ]
}
