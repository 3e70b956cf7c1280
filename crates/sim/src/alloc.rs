//! Allocates cluster IPs and node ports for Services. Deterministic: always the lowest free one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Range;

/// Cluster IPs and node ports allocated to Services.
#[derive(Clone, Debug)]
pub struct ServiceIps {
    first: u32,
    ips: Pool,
    ports: Pool,
    /// Changes since the outermost [`Savepoint`], in the order they were made.
    done: Vec<Step>,
    savepoints: usize,
}

/// A state to roll back to: see [`ServiceIps::savepoint`].
#[derive(Debug)]
#[must_use = "a mark is to be kept or gone back to"]
pub struct Savepoint(usize);

#[derive(Clone, Copy, Debug)]
enum Step {
    Ip(u32, bool),
    Port(u32, bool),
}

/// A range of numbers, some of them allocated.
#[derive(Clone, Debug)]
struct Pool {
    range: Range<u32>,
    taken: BTreeSet<u32>,
    /// All lower numbers are allocated.
    lowest: u32,
}

impl Pool {
    fn new(range: Range<u32>) -> Self {
        Self {
            lowest: range.start,
            range,
            taken: BTreeSet::new(),
        }
    }

    fn free(&mut self) -> Option<u32> {
        let mut left = self.lowest..self.range.end;
        let found = left.find(|number| !self.taken.contains(number));
        self.lowest = found.unwrap_or(self.range.end);
        found
    }

    /// Allocates or releases a number; returns false if that changes nothing.
    fn set(&mut self, number: u32, taken: bool) -> bool {
        if taken {
            return self.taken.insert(number);
        }
        if self.range.contains(&number) {
            self.lowest = self.lowest.min(number);
        }
        self.taken.remove(&number)
    }
}

/// Number of addresses in the Service range.
const SIZE: u32 = 1 << 16;
/// The range of node ports.
const NODE_PORTS: Range<u32> = 30_000..32_768;

impl Default for ServiceIps {
    /// 10.0.0.0/16; the first address belongs to the `kubernetes` Service.
    fn default() -> Self {
        let first = u32::from(Ipv4Addr::new(10, 0, 0, 0));
        Self {
            first,
            ips: Pool::new(first + 1..first + SIZE - 1),
            ports: Pool::new(NODE_PORTS),
            done: Vec::new(),
            savepoints: 0,
        }
    }
}

impl ServiceIps {
    /// Records changes from now on, until the savepoint is committed or rolled back.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint(self.done.len())
    }

    /// Keeps the changes made since the savepoint.
    pub fn commit(&mut self, _savepoint: Savepoint) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.done.clear();
        }
    }

    /// Undoes the changes made since the savepoint.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        while self.done.len() > savepoint.0 {
            match self.done.pop() {
                Some(Step::Ip(ip, taken)) => self.ips.set(ip, !taken),
                Some(Step::Port(port, taken)) => self.ports.set(port, !taken),
                None => break,
            };
        }
        self.commit(savepoint);
    }

    fn note(&mut self, step: Step) -> bool {
        let changed = match step {
            Step::Ip(ip, taken) => self.ips.set(ip, taken),
            Step::Port(port, taken) => self.ports.set(port, taken),
        };
        if changed && self.savepoints > 0 {
            self.done.push(step);
        }
        changed
    }

    /// Allocates the lowest free address.
    pub fn take_ip(&mut self) -> Option<Ipv4Addr> {
        let free = self.ips.free()?;
        self.note(Step::Ip(free, true));
        Some(Ipv4Addr::from(free))
    }

    /// Allocates this address; returns false if it is allocated already or out of range.
    pub fn claim_ip(&mut self, ip: Ipv4Addr) -> bool {
        self.contains(ip) && self.note(Step::Ip(u32::from(ip), true))
    }

    /// Returns whether the address is in range.
    #[must_use]
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        (self.first..self.first + SIZE).contains(&u32::from(ip))
    }

    /// The range in CIDR notation.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), 32 - SIZE.ilog2())
    }

    /// Releases an address.
    pub fn release_ip(&mut self, ip: Ipv4Addr) {
        self.note(Step::Ip(u32::from(ip), false));
    }

    /// Allocates the lowest free node port.
    pub fn take_port(&mut self) -> Option<u16> {
        let free = self.ports.free()?;
        self.note(Step::Port(free, true));
        u16::try_from(free).ok()
    }

    /// Allocates this node port; returns false if it is allocated already.
    pub fn claim_port(&mut self, port: u16) -> bool {
        self.note(Step::Port(port.into(), true))
    }

    /// Returns whether `port` is in the range of node ports.
    #[must_use]
    pub fn port_in_range(port: u16) -> bool {
        NODE_PORTS.contains(&port.into())
    }

    /// Releases a node port.
    pub fn release_port(&mut self, port: u16) {
        self.note(Step::Port(port.into(), false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_releases_and_the_lowest_free_number_is_allocated() {
        let mut ips = ServiceIps::default();
        let ip = |last| Some(Ipv4Addr::new(10, 0, 0, last));
        assert_eq!((ips.take_ip(), ips.take_port()), (ip(1), Some(30_000)));
        let outer = ips.savepoint();
        assert!(ips.claim_ip(Ipv4Addr::new(10, 0, 0, 2)));
        let inner = ips.savepoint();
        assert_eq!((ips.take_ip(), ips.take_port()), (ip(3), Some(30_001)));
        ips.release_ip(Ipv4Addr::new(10, 0, 0, 1));
        ips.rollback(inner);
        assert!(!ips.claim_ip(Ipv4Addr::new(10, 0, 0, 1)), "still held");
        assert_eq!(ips.take_ip(), ip(3));
        ips.rollback(outer);
        assert_eq!((ips.take_ip(), ips.take_port()), (ip(2), Some(30_001)));
        assert!(!ips.claim_ip(Ipv4Addr::new(10, 1, 0, 1)), "outside");
    }
}
