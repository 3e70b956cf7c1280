//! Services: allocates cluster IPs and node ports, and releases those that are no longer used.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::alloc::ServiceIps;
use crate::field::{FieldErrors, Path};
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;

const KIND: Qualified<'static> = Qualified {
    group: "",
    name: "Service",
};

/// Restores allocated values that an update omits.
pub(super) fn keep_allocated(new: &mut Value, old: &Value) {
    if has_cluster_ip(new) && has_cluster_ip(old) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if tree::get(new, &["spec", field]).is_none_or(Value::is_null)
                || tree::text(new, &["spec", field]).is_empty() && field == "clusterIP"
            {
                tree::copy(old, new, &["spec", field]);
            }
        }
    }
    if has_node_ports(new) && has_node_ports(old) {
        let before = tree::list(old, &["spec", "ports"]).to_vec();
        for port in tree::list_mut(new, &["spec", "ports"]).into_iter().flatten() {
            let same = before
                .iter()
                .find(|have| have.get("name") == port.get("name") || have.get("port") == port.get("port"));
            if tree::int(port, &["nodePort"]).unwrap_or(0) == 0
                && let Some(node_port) = same.and_then(|have| have.get("nodePort"))
            {
                tree::set(port, &["nodePort"], node_port.clone());
            }
        }
    }
}

/// Allocates the cluster IP and node ports of a Service, and sets its IP families. Allocates nothing if it
/// fails or if this is a dry run.
pub(super) fn allocate(
    state: &mut State,
    value: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<()> {
    let mark = state.ips.savepoint();
    let result =
        allocate_ip(&mut state.ips, value, old).and_then(|()| allocate_ports(&mut state.ips, value, old));
    if result.is_err() || dry_run {
        state.ips.rollback(mark);
    } else {
        state.ips.commit(mark);
    }
    result
}

fn allocate_ip(ips: &mut ServiceIps, value: &mut Value, old: Option<&Value>) -> Result<()> {
    if !has_cluster_ip(value) {
        for field in [
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
        ] {
            if old.is_some() || field != "internalTrafficPolicy" {
                tree::remove(value, &["spec", field]);
            }
        }
        return Ok(());
    }
    // A headless Service without a selector may refer to any address, so it has both IP families.
    let dual_stack = tree::text(value, &["spec", "clusterIP"]) == "None"
        && tree::get(value, &["spec", "selector"]).is_none();
    let (policy, families) = if dual_stack {
        ("RequireDualStack", json!(["IPv4", "IPv6"]))
    } else {
        ("SingleStack", json!(["IPv4"]))
    };
    tree::set_default(value, &["spec", "ipFamilyPolicy"], policy);
    tree::set_default(value, &["spec", "ipFamilies"], families);
    let requested = tree::text(value, &["spec", "clusterIP"]).to_owned();
    let had = old.map_or("", |old| tree::text(old, &["spec", "clusterIP"]));
    let ip = match requested.as_str() {
        "None" => requested,
        same if !same.is_empty() && same == had => requested,
        "" => ips
            .allocate_next_ip()
            .map_or_else(String::new, |ip| ip.to_string()),
        _ => allocate_requested_ip(ips, value, &requested)?,
    };
    tree::set(value, &["spec", "clusterIPs"], json!([ip]));
    tree::set(value, &["spec", "clusterIP"], ip);
    Ok(())
}

fn allocate_requested_ip(ips: &mut ServiceIps, value: &Value, requested: &str) -> Result<String> {
    let reject = |detail: String| {
        let mut errors = FieldErrors::new();
        errors.invalid(&Path::new("spec").child("clusterIPs"), json!([requested]), detail);
        Err(Status::invalid(
            KIND,
            tree::text(value, &["metadata", "name"]),
            &errors,
        ))
    };
    match requested.parse::<Ipv4Addr>() {
        Ok(ip) if !ips.contains(ip) => reject(format!(
            "failed to allocate IP {requested}: the provided IP ({requested}) is not in the valid range. The range of valid IPs is {}",
            ips.cidr()
        )),
        Ok(ip) if !ips.allocate_ip(ip) => reject(format!(
            "failed to allocate IP {requested}: provided IP is already allocated"
        )),
        _ => Ok(requested.to_owned()),
    }
}

fn allocate_ports(ips: &mut ServiceIps, value: &mut Value, old: Option<&Value>) -> Result<()> {
    let name = tree::text(value, &["metadata", "name"]).to_owned();
    if !has_node_ports(value) {
        for port in tree::list_mut(value, &["spec", "ports"]).into_iter().flatten() {
            if old.is_some() {
                tree::remove(port, &["nodePort"]);
            }
        }
        return Ok(());
    }
    let had: Vec<i64> = old.map(node_ports).unwrap_or_default();
    for (at, port) in tree::list_mut(value, &["spec", "ports"])
        .into_iter()
        .flatten()
        .enumerate()
    {
        let requested = tree::int(port, &["nodePort"]).unwrap_or(0);
        if had.contains(&requested) {
            continue;
        }
        let path = Path::new("spec").child("ports").index(at).child("nodePort");
        if requested == 0 {
            let free = ips.allocate_next_port().unwrap_or(0);
            tree::set(port, &["nodePort"], free);
        } else if !u16::try_from(requested).is_ok_and(ServiceIps::port_in_range) {
            let mut errors = FieldErrors::new();
            errors.invalid(
                &path,
                requested,
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            );
            return Err(Status::invalid(KIND, &name, &errors));
        } else if !u16::try_from(requested).is_ok_and(|requested| ips.allocate_port(requested)) {
            let mut errors = FieldErrors::new();
            errors.invalid(&path, requested, "provided port is already allocated");
            return Err(Status::invalid(KIND, &name, &errors));
        }
    }
    Ok(())
}

/// Releases the cluster IP and the node ports of a deleted Service.
pub(super) fn release(state: &mut State, service: &Value) {
    if let Ok(ip) = tree::text(service, &["spec", "clusterIP"]).parse() {
        state.ips.release_ip(ip);
    }
    for port in node_ports(service) {
        state.ips.release_port(u16::try_from(port).unwrap_or(0));
    }
}

/// Releases the cluster IP and the node ports that a Service no longer uses after an update.
pub(super) fn release_changed(state: &mut State, old: &Value, new: &Value) {
    let (had, has) = (
        tree::text(old, &["spec", "clusterIP"]),
        tree::text(new, &["spec", "clusterIP"]),
    );
    if had != has
        && let Ok(ip) = had.parse()
    {
        state.ips.release_ip(ip);
    }
    let has = node_ports(new);
    for port in node_ports(old).into_iter().filter(|port| !has.contains(port)) {
        state.ips.release_port(u16::try_from(port).unwrap_or(0));
    }
}

fn node_ports(service: &Value) -> Vec<i64> {
    tree::list(service, &["spec", "ports"])
        .iter()
        .filter_map(|port| tree::int(port, &["nodePort"]))
        .filter(|port| *port != 0)
        .collect()
}

fn has_cluster_ip(service: &Value) -> bool {
    tree::text(service, &["spec", "type"]) != "ExternalName"
}

fn has_node_ports(service: &Value) -> bool {
    match tree::text(service, &["spec", "type"]) {
        "NodePort" => true,
        "LoadBalancer" => {
            tree::get(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false))
        }
        _ => false,
    }
}
