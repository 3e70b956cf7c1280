//! The packet filter's rules of a mesh: takes a pod's exceptions or the cluster's Services, gives the batch that says so.

use std::net::Ipv4Addr;

use super::netlink::{Batch, Hook, Part};

/// Whose packets pass: the proxy runs as this user, as istio-init assumes.
pub(super) const PROXY_USER: u32 = 1337;
/// Where the proxy takes what comes in, and what goes out.
const INBOUND: u16 = 15_006;
const OUTBOUND: u16 = 15_001;
/// What reaches the pod past the proxy: ssh, ambient's tunnel, and the agent's own doors.
const PAST_PROXY: [u16; 5] = [22, 15_008, 15_020, 15_021, 15_090];
const TUNNEL: u16 = 15_008;
/// From where the proxy hands requests on to the application.
const HANDED_ON: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// One port of a Service, with the pods behind it that are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Door {
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) pods: Vec<(Ipv4Addr, u16)>,
}

/// What istio-init sets up in a pod.
pub(super) fn redirect() -> Batch {
    let mut batch = Batch::of_table("istio");
    batch.chain("in", Hook::Arriving);
    batch.chain("out", Hook::Sending);
    for port in PAST_PROXY {
        batch.rule("in", &[Part::tcp(), Part::port(port, true), Part::accept()]);
    }
    batch.rule("in", &[Part::tcp(), Part::redirect(INBOUND)]);
    let (tcp, loopback, localhost) = (Part::tcp, Part::to_loopback, Ipv4Addr::LOCALHOST);
    let by_proxy = || Part::user(PROXY_USER, true);
    let outgoing: [&[Part]; 6] = [
        &[loopback(), Part::from(HANDED_ON), Part::accept()],
        // The application called itself by its Service: in again by the front door.
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

/// What kube-proxy sets up on the node.
pub(super) fn services(doors: &[Door]) -> Batch {
    let mut batch = Batch::of_table("services");
    batch.chain("in", Hook::Arriving);
    batch.chain("out", Hook::Sending);
    batch.chain("after", Hook::Leaving);
    for door in doors {
        for chain in ["in", "out"] {
            door.lead(&mut batch, chain);
        }
    }
    batch.rule("after", &[Part::translated(), Part::masquerade()]);
    batch
}

impl Door {
    /// A fair share for every pod: the first of n gets one in n, the next one in n − 1 of the rest.
    fn lead(&self, batch: &mut Batch, chain: &str) {
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
