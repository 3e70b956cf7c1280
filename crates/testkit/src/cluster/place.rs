//! Ports and address ranges of several clusters in one namespace, reserved until dropped.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports and address ranges of one cluster, released when dropped.
#[derive(Debug)]
pub(crate) struct Place(u8);

/// Maximum number of concurrent clusters, limited by the ranges below.
const PLACES: u8 = 10;

static TAKEN: Mutex<[bool; PLACES as usize]> = Mutex::new([false; PLACES as usize]);

impl Place {
    /// Reserves the first free slot.
    pub(crate) fn claim() -> Option<Self> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut places = (0..PLACES).zip(taken.iter_mut());
        let (number, slot) = places.find(|(number, slot)| !**slot && Self::has_free_ports(*number))?;
        *slot = true;
        Some(Self(number))
    }

    /// Whether the ports are free. Another program may run in the same namespace.
    fn has_free_ports(number: u8) -> bool {
        let place = std::mem::ManuallyDrop::new(Self(number));
        let ports = [place.etcd_port(), place.etcd_peer_port(), place.server_port()];
        ports
            .iter()
            .all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
    }

    // Ports below the ephemeral range, so that no outgoing connection occupies them.

    pub(crate) fn etcd_port(&self) -> u16 {
        2_379 + 10 * u16::from(self.0)
    }

    pub(crate) fn etcd_peer_port(&self) -> u16 {
        self.etcd_port() + 1
    }

    pub(crate) fn server_port(&self) -> u16 {
        6_443 + u16::from(self.0)
    }

    /// Services: 10.96.0.0/16, 10.97.0.0/16, …
    pub(crate) fn service_range(&self) -> String {
        format!("10.{}.0.0/16", 96 + self.0)
    }

    /// Pods: 10.244.0.0/16, 10.245.0.0/16, …; the second byte.
    pub(crate) fn pod_network(&self) -> u8 {
        244 + self.0
    }

    /// The advertised address of the API server: loopback would be rejected.
    pub(crate) fn advertised(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.pod_network(), 0, 1)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = taken.get_mut(usize::from(self.0)) {
            *slot = false;
        }
    }
}
