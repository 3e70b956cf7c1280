//! The node of the mesh: a bridge between pods and Services. It is removed when dropped.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::namespace::ip;
use crate::isolation::LOCAL_RANGE;

/// Name of the bridge.
pub(super) const BRIDGE: &str = "pods";

/// Link group of the links of all pods.
pub(super) const POD_LINKS: u32 = 244;

/// The bridge, and the files that configure name resolution.
#[derive(Debug)]
pub(super) struct Node {
    services: String,
    mounts: Vec<PathBuf>,
}

impl Node {
    /// Creates the bridge and configures name resolution. `directory` holds the files that replace system
    /// files in this mount namespace.
    pub(super) fn set_up(address: Ipv4Addr, services: &str, directory: &Path) -> io::Result<Self> {
        // Until now, all addresses were local. From here on, pods are reached through the bridge.
        ip(&format!(
            "route del local {LOCAL_RANGE} dev lo\n\
             link add {BRIDGE} type bridge\n\
             addr add {address}/16 dev {BRIDGE}\n\
             link set {BRIDGE} up\n\
             route add local {services} dev lo\n"
        ))?;
        let mut node = Self {
            services: services.to_owned(),
            mounts: Vec::new(),
        };
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        // Packets between pods that use a Service pass the node on purpose, so that their addresses are
        // translated.
        fs::write("/proc/sys/net/ipv4/conf/all/send_redirects", "0")?;
        fs::write(format!("/proc/sys/net/ipv4/conf/{BRIDGE}/send_redirects"), "0")?;
        // Two concurrent DNS queries from one port may collide in the connection tracking table, in which
        // case one is dropped. The retry after five seconds would look like an outage.
        let resolver = format!(
            "nameserver {address}\nsearch svc.cluster.local cluster.local\noptions timeout:1 attempts:5 single-request\n"
        );
        node.replace("/etc/resolv.conf", &directory.join("resolv.conf"), &resolver)?;
        node.replace("/etc/hosts", &directory.join("hosts"), "127.0.0.1 localhost\n")?;
        Ok(node)
    }

    fn replace(&mut self, path: &str, by: &Path, text: &str) -> io::Result<()> {
        fs::write(by, text)?;
        bind(by, Path::new(path))?;
        self.mounts.push(path.into());
        Ok(())
    }
}

/// Bind-mounts a file to another path. The file can then be read even if its original path is not
/// accessible.
pub(super) fn bind(file: &Path, at: &Path) -> io::Result<()> {
    mount(Some(file), at, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(())
}

impl Drop for Node {
    fn drop(&mut self) {
        for path in &self.mounts {
            let _ = umount2(path, MntFlags::MNT_DETACH);
        }
        // The links must be deleted explicitly, because the kernel removes pod networks with a delay.
        let services = &self.services;
        for command in [
            format!("link del group {POD_LINKS}\n"),
            format!("link del {BRIDGE}\n"),
            format!("route del local {services} dev lo\n"),
            format!("route add local {LOCAL_RANGE} dev lo\n"),
        ] {
            let _ = ip(&command);
        }
    }
}
