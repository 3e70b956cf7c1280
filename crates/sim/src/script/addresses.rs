//! Allocates the pod IPs of a network. A released IP is reused as late as possible.

use std::collections::HashSet;

/// Allocator of the addresses in `10.N.0.0/16`.
#[derive(Debug)]
pub struct Addresses {
    network: u8,
    used: HashSet<u16>,
    last: u16,
}

impl Default for Addresses {
    /// Creates an allocator for `10.244.0.0/16`.
    fn default() -> Self {
        Self::for_network(244)
    }
}

impl Addresses {
    /// Creates an allocator for `10.network.0.0/16`.
    #[must_use]
    pub fn for_network(network: u8) -> Self {
        Self {
            network,
            used: HashSet::new(),
            last: 0,
        }
    }

    /// Allocates an address.
    pub fn allocate(&mut self) -> String {
        for _ in 0..u16::MAX {
            self.last = self.last.wrapping_add(1).max(2);
            if self.used.insert(self.last) {
                break;
            }
        }
        format!("10.{}.{}.{}", self.network, self.last >> 8, self.last & 0xFF)
    }

    /// Releases an address.
    pub fn release(&mut self, ip: &str) {
        let mut parts = ip.rsplit('.').map(|part| part.parse::<u16>().unwrap_or(0));
        if let (Some(low), Some(high)) = (parts.next(), parts.next()) {
            self.used.remove(&(high << 8 | low));
        }
    }
}
