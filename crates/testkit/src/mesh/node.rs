//! The node of the mesh: a bridge between pods and Services, removed when dropped.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::namespace::ip;
use crate::isolation::LOCAL_RANGE;

/// Name of the bridge.
pub(super) const BRIDGE: &str = "pods";

/// Link group of all pods.
pub(super) const POD_LINKS: u32 = 244;

/// The bridge and the name resolution files.
#[derive(Debug)]
pub(super) struct Node {
    services: String,
    mounts: Vec<PathBuf>,
}

impl Node {
    /// Sets up the node; `directory` holds files that replace system files in this mount namespace.
    pub(super) fn set_up(address: Ipv4Addr, services: &str, directory: &Path) -> io::Result<Self> {
        // All addresses were local so far; pods are now behind the bridge.
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
        // Traffic between pods through a Service passes the node on purpose.
        fs::write("/proc/sys/net/ipv4/conf/all/send_redirects", "0")?;
        fs::write(format!("/proc/sys/net/ipv4/conf/{BRIDGE}/send_redirects"), "0")?;
        // Two concurrent DNS queries from one port may collide in the connection table, where one is dropped;
        // the five-second retry would look like an outage.
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

/// Bind-mounts a file to another path, also readable where the original path is not.
pub(super) fn bind(file: &Path, at: &Path) -> io::Result<()> {
    mount(Some(file), at, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(())
}

impl Drop for Node {
    fn drop(&mut self) {
        for path in &self.mounts {
            let _ = umount2(path, MntFlags::MNT_DETACH);
        }
        // The kernel removes pod networks lazily; their links must not wait for that.
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
