//! Ports and address ranges of clusters that run concurrently in one network namespace.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports and address ranges of one cluster. They are released when dropped.
#[derive(Debug)]
pub(crate) struct ClusterSlot(u8);

/// Maximum number of concurrent clusters. Limited by the address ranges below.
const MAX_CLUSTERS: u8 = 10;

static RESERVED: Mutex<[bool; MAX_CLUSTERS as usize]> = Mutex::new([false; MAX_CLUSTERS as usize]);

impl ClusterSlot {
    /// Reserves the first free slot. Returns `None` if all slots are in use.
    pub(crate) fn reserve() -> Option<Self> {
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slots = (0..MAX_CLUSTERS).zip(reserved.iter_mut());
        let (number, slot) = slots.find(|(number, slot)| !**slot && Self::has_free_ports(*number))?;
        *slot = true;
        Some(Self(number))
    }

    /// Whether the ports of a slot are free. Another program in the same namespace may use them.
    fn has_free_ports(number: u8) -> bool {
        let slot = std::mem::ManuallyDrop::new(Self(number));
        let ports = [slot.etcd_port(), slot.etcd_peer_port(), slot.server_port()];
        ports
            .iter()
            .all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
    }

    // The ports are below the ephemeral range, so that no outgoing connection occupies them.

    pub(crate) fn etcd_port(&self) -> u16 {
        2_379 + 10 * u16::from(self.0)
    }

    pub(crate) fn etcd_peer_port(&self) -> u16 {
        self.etcd_port() + 1
    }

    pub(crate) fn server_port(&self) -> u16 {
        6_443 + u16::from(self.0)
    }

    /// Returns the address range of Services: 10.96.0.0/16, 10.97.0.0/16, …
    pub(crate) fn service_range(&self) -> String {
        format!("10.{}.0.0/16", 96 + self.0)
    }

    /// Returns the second byte of the pod network: 10.244.0.0/16, 10.245.0.0/16, …
    pub(crate) fn pod_network(&self) -> u8 {
        244 + self.0
    }

    /// Returns the advertised address of the API server. Loopback would be rejected.
    pub(crate) fn advertised(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.pod_network(), 0, 1)
    }
}

impl Drop for ClusterSlot {
    fn drop(&mut self) {
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = reserved.get_mut(usize::from(self.0)) {
            *slot = false;
        }
    }
}
