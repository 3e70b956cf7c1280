//! Addresses and ports for Services: takes wishes, gives free ones. Deterministic: the lowest free one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::Range;

/// What Services hold.
#[derive(Clone, Debug)]
pub struct ServiceIps {
    first: u32,
    ips: Pool,
    ports: Pool,
    /// What was done since the outermost [`Savepoint`], the last first to be undone.
    done: Vec<Step>,
    savepoints: usize,
}

/// Where to go back to: see [`ServiceIps::mark`].
#[derive(Debug)]
#[must_use = "a mark is to be kept or gone back to"]
pub struct Savepoint(usize);

#[derive(Clone, Copy, Debug)]
enum Step {
    Ip(u32, bool),
    Port(u32, bool),
}

/// Numbers of a range, some of them taken.
#[derive(Clone, Debug)]
struct Pool {
    range: Range<u32>,
    taken: BTreeSet<u32>,
    /// All below are taken.
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

    /// Takes or gives back a number; false when that changes nothing.
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

/// Addresses of Services.
const SIZE: u32 = 1 << 16;
/// Node ports come from this range.
const NODE_PORTS: Range<u32> = 30_000..32_768;

impl Default for ServiceIps {
    /// 10.0.0.0/16; the first address is the `kubernetes` Service's.
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
    /// Remembers what is done from now on, until the mark is kept or gone back to.
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints += 1;
        Savepoint(self.done.len())
    }

    /// Lets what was done since the mark be.
    pub fn commit(&mut self, _savepoint: Savepoint) {
        self.savepoints = self.savepoints.saturating_sub(1);
        if self.savepoints == 0 {
            self.done.clear();
        }
    }

    /// Undoes what was done since the mark.
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

    /// The lowest free address.
    pub fn take_ip(&mut self) -> Option<Ipv4Addr> {
        let free = self.ips.free()?;
        self.note(Step::Ip(free, true));
        Some(Ipv4Addr::from(free))
    }

    /// Reserves this address; false when it is taken or outside.
    pub fn claim_ip(&mut self, ip: Ipv4Addr) -> bool {
        self.contains(ip) && self.note(Step::Ip(u32::from(ip), true))
    }

    /// Whether the address belongs to the range.
    #[must_use]
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        (self.first..self.first + SIZE).contains(&u32::from(ip))
    }

    /// The range in CIDR notation.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), 32 - SIZE.ilog2())
    }

    /// Gives an address back.
    pub fn release_ip(&mut self, ip: Ipv4Addr) {
        self.note(Step::Ip(u32::from(ip), false));
    }

    /// The lowest free node port.
    pub fn take_port(&mut self) -> Option<u16> {
        let free = self.ports.free()?;
        self.note(Step::Port(free, true));
        u16::try_from(free).ok()
    }

    /// Reserves this node port; false when it is taken.
    pub fn claim_port(&mut self, port: u16) -> bool {
        self.note(Step::Port(port.into(), true))
    }

    /// Whether `port` may be a node port.
    #[must_use]
    pub fn port_in_range(port: u16) -> bool {
        NODE_PORTS.contains(&port.into())
    }

    /// Gives a node port back.
    pub fn release_port(&mut self, port: u16) {
        self.note(Step::Port(port.into(), false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undone_is_free_again_and_the_lowest_free_one_is_taken() {
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
