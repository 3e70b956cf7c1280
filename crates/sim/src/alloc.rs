//! Addresses and ports for Services: takes wishes, gives free ones. Deterministic: the lowest free one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What Services hold.
#[derive(Clone, Debug)]
pub struct ServiceIps {
    first: u32,
    size: u32,
    taken: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

/// Node ports come from this range.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

impl Default for ServiceIps {
    /// 10.0.0.0/16; the first address is the `kubernetes` Service's.
    fn default() -> Self {
        Self {
            first: u32::from(Ipv4Addr::new(10, 0, 0, 0)),
            size: 1 << 16,
            taken: BTreeSet::new(),
            ports: BTreeSet::new(),
        }
    }
}

impl ServiceIps {
    /// The lowest free address.
    pub fn take_ip(&mut self) -> Option<Ipv4Addr> {
        let free = (1..self.size - 1)
            .map(|at| self.first + at)
            .find(|ip| !self.taken.contains(ip))?;
        self.taken.insert(free);
        Some(Ipv4Addr::from(free))
    }

    /// Reserves this address; false when it is taken or outside.
    pub fn claim_ip(&mut self, ip: Ipv4Addr) -> bool {
        self.contains(ip) && self.taken.insert(u32::from(ip))
    }

    /// Whether the address belongs to the range.
    #[must_use]
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        (self.first..self.first + self.size).contains(&u32::from(ip))
    }

    /// The range in CIDR notation.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), 32 - self.size.ilog2())
    }

    /// Gives an address back.
    pub fn release_ip(&mut self, ip: Ipv4Addr) {
        self.taken.remove(&u32::from(ip));
    }

    /// The lowest free node port.
    pub fn take_port(&mut self) -> Option<u16> {
        let free = NODE_PORTS.into_iter().find(|port| !self.ports.contains(port))?;
        self.ports.insert(free);
        Some(free)
    }

    /// Reserves this node port; false when it is taken.
    pub fn claim_port(&mut self, port: u16) -> bool {
        self.ports.insert(port)
    }

    /// Whether `port` may be a node port.
    #[must_use]
    pub fn port_in_range(port: u16) -> bool {
        NODE_PORTS.contains(&port)
    }

    /// Gives a node port back.
    pub fn release_port(&mut self, port: u16) {
        self.ports.remove(&port);
    }
}
