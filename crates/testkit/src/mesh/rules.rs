//! Packet filter rules of a mesh: the redirect of a pod and the Services of the node.

use std::net::Ipv4Addr;

use super::netlink::{Batch, Hook, Part};

/// User ID of the proxy, as istio-init assumes. Its packets are not redirected.
pub(super) const PROXY_USER: u32 = 1337;
/// Inbound and outbound ports of the proxy.
const INBOUND: u16 = 15_006;
const OUTBOUND: u16 = 15_001;
/// Inbound ports that bypass the proxy: ssh, the tunnel of ambient mode, and the agent's ports.
const BYPASS_PORTS: [u16; 5] = [22, 15_008, 15_020, 15_021, 15_090];
const TUNNEL: u16 = 15_008;
/// Source address of requests from the proxy to the application.
const PROXY_TO_APP_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// A port of a Service, with its ready pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServicePort {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) pods: Vec<(Ipv4Addr, u16)>,
}

/// Returns the rules that istio-init creates in a pod.
pub(super) fn redirect() -> Batch {
    let mut batch = Batch::for_table("istio");
    batch.chain("in", Hook::Prerouting);
    batch.chain("out", Hook::Output);
    for port in BYPASS_PORTS {
        batch.rule("in", &[Part::tcp(), Part::port(port, true), Part::accept()]);
    }
    batch.rule("in", &[Part::tcp(), Part::redirect(INBOUND)]);
    let (tcp, loopback, localhost) = (Part::tcp, Part::to_loopback, Ipv4Addr::LOCALHOST);
    let by_proxy = || Part::user(PROXY_USER, true);
    let outgoing: [&[Part]; 6] = [
        &[loopback(), Part::from(PROXY_TO_APP_SOURCE), Part::accept()],
        // The application called itself through its Service: the request is handled as inbound.
        &[
            loopback(),
            Part::to(localhost, false),
            Part::port(TUNNEL, false),
            by_proxy(),
            Part::redirect(INBOUND),
        ],
        &[loopback(), Part::user(PROXY_USER, false), Part::accept()],
        &[by_proxy(), Part::accept()],
        &[Part::to(localhost, true), Part::accept()],
        &[Part::redirect(OUTBOUND)],
    ];
    for parts in outgoing {
        batch.rule("out", &[&[tcp()], parts].concat());
    }
    batch
}

/// Returns the rules that kube-proxy creates on the node.
pub(super) fn services(ports: &[ServicePort]) -> Batch {
    let mut batch = Batch::for_table("services");
    batch.chain("in", Hook::Prerouting);
    batch.chain("out", Hook::Output);
    batch.chain("after", Hook::Postrouting);
    for port_rule in ports {
        for chain in ["in", "out"] {
            port_rule.add_rules(&mut batch, chain);
        }
    }
    batch.rule("after", &[Part::translated(), Part::masquerade()]);
    batch
}

impl ServicePort {
    /// Adds one rule per pod. Pods get equal shares: the first of n rules matches one in n connections, the
    /// second rule matches one in n − 1 of the remaining connections, and so on.
    fn add_rules(&self, batch: &mut Batch, chain: &str) {
        let left = (1..=u32::try_from(self.pods.len()).unwrap_or(u32::MAX)).rev();
        for ((address, port), left) in self.pods.iter().zip(left) {
            let mut parts = vec![
                Part::tcp(),
                Part::to(self.address, true),
                Part::port(self.port, true),
            ];
            if left > 1 {
                parts.push(Part::one_in(left));
            }
            parts.push(Part::translate(*address, *port));
            batch.rule(chain, &parts);
        }
    }
}
