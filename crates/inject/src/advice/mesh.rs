//! Checks the service mesh configuration: settings that the proxy rejects, and settings of the pod that break
//! the mesh.

use std::collections::HashSet;
use std::ops::Range;

use mainstay_yaml::{Node, NodeId, NodeKind};

use super::context::{AnnotationContext, Entry, find_node, finding_at, resolve, warning};
use crate::grammar::{Dialect, Egress, Flaw, parse_admin, parse_egress, parse_ingress};
use crate::locate::locate;
use crate::profile::{ADMIN_PORT, EGRESS, INGRESS, SKIP_INITIALIZER};
use crate::{Code, Finding, LATER, Place, Severity, Skip};

/// Returns all findings about the service mesh of the workload; empty if it has none.
pub(super) fn check(context: &AnnotationContext<'_>) -> Vec<Finding> {
    let [ingress, egress, admin] = [INGRESS, EGRESS, ADMIN_PORT].map(|key| context.effective(key));
    let Some(first) = ingress
        .or(egress)
        .or(admin)
        .filter(|_| !context.options.skip_service_mesh)
    else {
        return Vec::new();
    };
    let dialect = if *context.options.profile == LATER {
        Dialect::Later
    } else {
        Dialect::Rfc
    };
    let mut findings = ingress
        .map(|it| report(context, &it, &parse_ingress(text(&it), dialect).flaws))
        .unwrap_or_default();
    let egress = egress.map(|it| (it, parse_egress(text(&it), dialect)));
    findings.extend(
        egress
            .iter()
            .flat_map(|(it, read)| report(context, it, &read.flaws)),
    );
    let port = admin.map(|it| (it, parse_admin(text(&it))));
    findings.extend(
        port.iter()
            .flat_map(|(it, read)| report(context, it, &read.flaws)),
    );
    let egress = egress.map(|(it, read)| (it, read.value));
    let port = port.and_then(|(it, read)| Some((it, read.value?)));
    findings.extend(check_ports(context, egress.as_ref(), port.as_ref()));
    findings.extend(check_pod_settings(context, &first));
    findings
}

fn text<'a>(entry: &Entry<'a>) -> &'a str {
    match &entry.value.kind {
        // An empty or null value is the empty string.
        NodeKind::Scalar {
            text,
            style: mainstay_yaml::ScalarStyle::Plain,
        } if matches!(&**text, "~" | "null" | "Null" | "NULL") => "",
        NodeKind::Scalar { text, .. } => text,
        _ => "",
    }
}

fn report(context: &AnnotationContext<'_>, entry: &Entry<'_>, flaws: &[Flaw]) -> Vec<Finding> {
    let finding = |flaw: &Flaw| {
        let severity = if flaw.is_error() {
            Severity::Error
        } else {
            Severity::Warning
        };
        let place = place_in_scalar(context, entry.value, &flaw.range);
        let help = flaw.help.map(str::to_owned);
        Finding {
            help,
            ..finding_at(Code::Proxy(flaw.code), severity, place, flaw.message.clone())
        }
    };
    flaws.iter().map(finding).collect()
}

/// Converts a range of a scalar's text to a place in the document. A range of several lines has length 0.
fn place_in_scalar(context: &AnnotationContext<'_>, node: &Node, range: &Range<usize>) -> Place {
    let source = std::str::from_utf8(context.workload.text).unwrap_or_default();
    let (start, end) = (locate(source, node, range.start), locate(source, node, range.end));
    let len = if end.line == start.line {
        end.offset.saturating_sub(start.offset)
    } else {
        0
    };
    Place {
        line: start.line,
        column: start.column,
        offset: start.offset,
        len,
    }
}

/// Finds ports with two listeners.
fn check_ports(
    context: &AnnotationContext<'_>,
    egress: Option<&(Entry<'_>, Vec<Egress>)>,
    admin: Option<&(Entry<'_>, u16)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let container_ports = container_ports(context);
    if let Some((entry, port)) = admin {
        let whole = 0..text(entry).len();
        if container_ports.contains(port) {
            findings.push(port_conflict(
                context,
                entry,
                &whole,
                format!("the admin port {port} is also a containerPort"),
                Severity::Warning,
            ));
        }
    }
    let listeners = egress
        .iter()
        .flat_map(|(entry, listeners)| listeners.iter().map(move |listener| (entry, listener)));
    for (entry, listener) in listeners {
        let port = listener.listen.port();
        if admin.is_some_and(|(_, admin)| *admin == port) {
            let message = format!("egress {:?} listens on the admin port {port}", listener.name);
            findings.push(port_conflict(
                context,
                entry,
                &listener.range,
                message,
                Severity::Error,
            ));
        } else if container_ports.contains(&port) {
            let message = format!(
                "egress {:?} listens on port {port}, which is also a containerPort",
                listener.name
            );
            findings.push(port_conflict(
                context,
                entry,
                &listener.range,
                message,
                Severity::Warning,
            ));
        }
    }
    findings
}

fn port_conflict(
    context: &AnnotationContext<'_>,
    entry: &Entry<'_>,
    range: &Range<usize>,
    message: String,
    severity: Severity,
) -> Finding {
    finding_at(
        Code::PortConflict,
        severity,
        place_in_scalar(context, entry.value, range),
        message,
    )
}

/// Returns every `containerPort` of the user's containers.
fn container_ports(context: &AnnotationContext<'_>) -> HashSet<u16> {
    let document = context.workload.document;
    let items = |id: Option<NodeId>| match id.and_then(|id| resolve(document, id)).map(|node| &node.kind) {
        Some(NodeKind::List { items, .. }) => items.as_slice(),
        _ => &[],
    };
    let containers = items(find_node(document, context.workload.spec, &["containers"]));
    let ports = containers.iter().flat_map(|id| items(document.get(*id, "ports")));
    let number = |id: &NodeId| match &resolve(document, document.get(*id, "containerPort")?)?.kind {
        NodeKind::Scalar { text, .. } => text.parse().ok(),
        _ => None,
    };
    ports.filter_map(number).collect()
}

/// Finds settings of the pod that break the service mesh.
fn check_pod_settings(context: &AnnotationContext<'_>, first: &Entry<'_>) -> Vec<Finding> {
    let document = context.workload.document;
    let mut findings = Vec::new();
    let host =
        find_node(document, context.workload.spec, &["hostNetwork"]).and_then(|id| resolve(document, id));
    if let Some(node) = host.filter(|node| is_true(node)) {
        let message =
            "hostNetwork with a service mesh: its rules would redirect all traffic of the node".to_owned();
        findings.push(warning(Code::HostNetwork, node, message));
    }
    if !context.options.skip_initializer && skips_initializer(context) {
        let message = "a service mesh without an initializer: its certificates are not fetched".to_owned();
        let help = format!("remove {SKIP_INITIALIZER}, or add your own initializer");
        findings.push(Finding {
            help: Some(help),
            ..warning(Code::NoInitializer, first.key_node, message)
        });
    }
    findings
}

fn skips_initializer(context: &AnnotationContext<'_>) -> bool {
    let Some(entry) = context.effective(SKIP_INITIALIZER) else {
        return false;
    };
    match context.options.profile.skip {
        Skip::True => text(&entry) == "true",
        Skip::Present => text(&entry) != "false",
    }
}

fn is_true(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Scalar { text, .. } if text == "true")
}
