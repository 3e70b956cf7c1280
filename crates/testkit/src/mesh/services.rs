//! Watches Services and their endpoints, and updates packet filter rules and DNS names.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};

use super::names::Names;
use super::rules::{self, ServicePort};

/// Watches Services until the future is dropped.
pub(super) async fn watch_services(client: Client, names: Names) {
    let (services, service_writer) = reflector::store();
    let (slices, slice_writer) = reflector::store();
    let all_services = watcher(Api::<Service>::all(client.clone()), watcher::Config::default());
    let all_slices = watcher(Api::<EndpointSlice>::all(client), watcher::Config::default());
    let mut changes = futures::stream::select(
        all_services
            .backoff(crate::kubelet::ConstantBackoff)
            .reflect(service_writer)
            .map(drop)
            .boxed(),
        all_slices
            .backoff(crate::kubelet::ConstantBackoff)
            .reflect(slice_writer)
            .map(drop)
            .boxed(),
    );
    let mut last = Vec::new();
    while changes.next().await.is_some() {
        names.set(addresses(&services));
        let ports = ports(&services, &slices);
        if ports == last {
            continue;
        }
        while rules::services(&ports).commit().is_err() {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        last = ports;
    }
}

/// Retry interval if the kernel rejects a transaction because of a concurrent change.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

fn addresses(services: &Store<Service>) -> BTreeMap<String, Ipv4Addr> {
    let named = services.state().into_iter().filter_map(|service| {
        let name = format!("{}.{}", service.name_any(), service.namespace()?);
        Some((name, address(&service)?))
    });
    named.collect()
}

/// Returns the address of a Service, or `None` if it is headless.
fn address(service: &Service) -> Option<Ipv4Addr> {
    service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
}

fn ports(services: &Store<Service>, slices: &Store<EndpointSlice>) -> Vec<ServicePort> {
    let slices = slices.state();
    let mut ports: Vec<ServicePort> = services
        .state()
        .iter()
        .flat_map(|service| ports_of_service(service, &slices))
        .filter(|port_rule| !port_rule.pods.is_empty())
        .collect();
    ports.sort_by_key(|port_rule| (port_rule.address, port_rule.port));
    ports
}

fn ports_of_service(service: &Service, slices: &[std::sync::Arc<EndpointSlice>]) -> Vec<ServicePort> {
    let Some((address, spec)) = address(service).zip(service.spec.as_ref()) else {
        return Vec::new();
    };
    let own: Vec<&EndpointSlice> = slices
        .iter()
        .filter(|slice| {
            slice.namespace() == service.namespace()
                && slice.labels().get("kubernetes.io/service-name") == Some(&service.name_any())
        })
        .map(AsRef::as_ref)
        .collect();
    let ports = spec.ports.iter().flatten();
    let tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
    tcp.map(|port| {
        let name = port.name.as_deref().unwrap_or_default();
        let mut pods: Vec<_> = own.iter().flat_map(|slice| ready_pods(slice, name)).collect();
        pods.sort_unstable();
        ServicePort {
            address,
            port: u16::try_from(port.port).unwrap_or_default(),
            pods,
        }
    })
    .collect()
}

/// Returns the addresses of ready pods for the port with this name.
fn ready_pods(slice: &EndpointSlice, name: &str) -> Vec<(Ipv4Addr, u16)> {
    let ports = slice.ports.iter().flatten();
    let mut ports = ports.filter(|port| port.name.as_deref().unwrap_or_default() == name);
    let Some(port) = ports.next().and_then(|port| u16::try_from(port.port?).ok()) else {
        return Vec::new();
    };
    let is_ready = |ready: Option<bool>| ready.unwrap_or(true);
    let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
        is_ready(
            endpoint
                .conditions
                .as_ref()
                .and_then(|conditions| conditions.ready),
        )
    });
    ready
        .flat_map(|endpoint| &endpoint.addresses)
        .filter_map(|address| Some((address.parse().ok()?, port)))
        .collect()
}
