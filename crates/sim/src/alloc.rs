//! Allocates cluster IPs and node ports for Services. Always allocates the lowest free number, so that
//! results are deterministic.

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
    changes: Vec<Change>,
    /// Number of open savepoints.
    savepoints: usize,
}

/// A position in the recorded changes to roll back to: see [`ServiceIps::savepoint`].
#[derive(Debug)]
#[must_use = "a savepoint must be committed or rolled back"]
pub struct Savepoint(usize);

#[derive(Clone, Copy, Debug)]
enum Change {
    /// Address, and whether it was allocated or released.
    Ip(u32, bool),
    /// Node port, and whether it was allocated or released.
    Port(u32, bool),
}

/// A range of numbers and the allocated ones.
#[derive(Clone, Debug)]
struct Pool {
    range: Range<u32>,
    allocated: BTreeSet<u32>,
    /// Lower bound of the free numbers: all lower numbers are allocated.
    lowest: u32,
}

impl Pool {
    fn new(range: Range<u32>) -> Self {
        Self {
            lowest: range.start,
            range,
            allocated: BTreeSet::new(),
        }
    }

    /// Returns the lowest free number.
    fn find_free(&mut self) -> Option<u32> {
        let mut candidates = self.lowest..self.range.end;
        let found = candidates.find(|number| !self.allocated.contains(number));
        self.lowest = found.unwrap_or(self.range.end);
        found
    }

    /// Allocates or releases a number; returns false if it is in that state already.
    fn set_allocated(&mut self, number: u32, allocated: bool) -> bool {
        if allocated {
            return self.allocated.insert(number);
        }
        if self.range.contains(&number) {
            self.lowest = self.lowest.min(number);
        }
        self.allocated.remove(&number)
    }
}

/// Number of addresses in the Service range.
const SIZE: u32 = 1 << 16;
/// Range of node ports.
const NODE_PORTS: Range<u32> = 30_000..32_768;

impl Default for ServiceIps {
    /// Returns an allocator for 10.0.0.0/16. The first address belongs to the `kubernetes` Service.
    fn default() -> Self {
        let first = u32::from(Ipv4Addr::new(10, 0, 0, 0));
        Self {
            first,
            ips: Pool::new(first + 1..first + SIZE - 1),
            ports: Pool::new(NODE_PORTS),
            changes: Vec::new(),
            savepoints: 0,
        }
    }
}

impl ServiceIps {
    /// Starts recording changes, until the savepoint is committed or rolled back.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint(self.changes.len())
    }

    /// Keeps the changes made since the savepoint.
    pub fn commit(&mut self, _savepoint: Savepoint) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.changes.clear();
        }
    }

    /// Undoes the changes made since the savepoint.
    pub fn rollback(&mut self, savepoint: Savepoint) {
        while self.changes.len() > savepoint.0 {
            match self.changes.pop() {
                Some(Change::Ip(ip, allocated)) => self.ips.set_allocated(ip, !allocated),
                Some(Change::Port(port, allocated)) => self.ports.set_allocated(port, !allocated),
                None => break,
            };
        }
        self.commit(savepoint);
    }

    /// Applies a change, and records it if there is a savepoint. Returns whether anything changed.
    fn apply(&mut self, change: Change) -> bool {
        let changed = match change {
            Change::Ip(ip, allocated) => self.ips.set_allocated(ip, allocated),
            Change::Port(port, allocated) => self.ports.set_allocated(port, allocated),
        };
        if changed && self.savepoints > 0 {
            self.changes.push(change);
        }
        changed
    }

    /// Allocates the lowest free address.
    pub fn allocate_next_ip(&mut self) -> Option<Ipv4Addr> {
        let free = self.ips.find_free()?;
        self.apply(Change::Ip(free, true));
        Some(Ipv4Addr::from(free))
    }

    /// Allocates this address; returns false if it is allocated already or out of range.
    pub fn allocate_ip(&mut self, ip: Ipv4Addr) -> bool {
        self.contains(ip) && self.apply(Change::Ip(u32::from(ip), true))
    }

    /// Returns whether the address is in range.
    #[must_use]
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        (self.first..self.first + SIZE).contains(&u32::from(ip))
    }

    /// Returns the range of addresses in CIDR notation.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), 32 - SIZE.ilog2())
    }

    /// Releases an address.
    pub fn release_ip(&mut self, ip: Ipv4Addr) {
        self.apply(Change::Ip(u32::from(ip), false));
    }

    /// Allocates the lowest free node port.
    pub fn allocate_next_port(&mut self) -> Option<u16> {
        let free = self.ports.find_free()?;
        self.apply(Change::Port(free, true));
        u16::try_from(free).ok()
    }

    /// Allocates this node port; returns false if it is allocated already.
    pub fn allocate_port(&mut self, port: u16) -> bool {
        self.apply(Change::Port(port.into(), true))
    }

    /// Returns whether `port` is in the range of node ports.
    #[must_use]
    pub fn port_in_range(port: u16) -> bool {
        NODE_PORTS.contains(&port.into())
    }

    /// Releases a node port.
    pub fn release_port(&mut self, port: u16) {
        self.apply(Change::Port(port.into(), false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_releases_and_the_lowest_free_number_is_allocated() {
        let mut ips = ServiceIps::default();
        let ip = |last| Some(Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(
            (ips.allocate_next_ip(), ips.allocate_next_port()),
            (ip(1), Some(30_000))
        );
        let outer = ips.savepoint();
        assert!(ips.allocate_ip(Ipv4Addr::new(10, 0, 0, 2)));
        let inner = ips.savepoint();
        assert_eq!(
            (ips.allocate_next_ip(), ips.allocate_next_port()),
            (ip(3), Some(30_001))
        );
        ips.release_ip(Ipv4Addr::new(10, 0, 0, 1));
        ips.rollback(inner);
        assert!(!ips.allocate_ip(Ipv4Addr::new(10, 0, 0, 1)), "still allocated");
        assert_eq!(ips.allocate_next_ip(), ip(3));
        ips.rollback(outer);
        assert_eq!(
            (ips.allocate_next_ip(), ips.allocate_next_port()),
            (ip(2), Some(30_001))
        );
        assert!(!ips.allocate_ip(Ipv4Addr::new(10, 1, 0, 1)), "out of range");
    }
}
