//! Network namespace of a pod, connected to the bridge. The kernel removes the namespace after the value is
//! dropped and the last process in the namespace has exited.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns, unshare};

use super::node::{BRIDGE, POD_LINKS};

/// A network namespace.
#[derive(Debug)]
pub(super) struct NetworkNamespace {
    space: File,
}

/// Counter for link names. They are never reused, because the kernel may remove a link late.
static LINKS: AtomicU32 = AtomicU32::new(0);

impl NetworkNamespace {
    /// Creates a namespace that is reachable at `address`.
    pub(super) fn open(address: Ipv4Addr, gateway: Ipv4Addr) -> io::Result<Self> {
        let link = format!("pod{}", LINKS.fetch_add(1, Ordering::Relaxed));
        let node = std::process::id();
        let inner = format!(
            "link set lo up\n\
             link add eth0 address {} type veth peer name {link} netns {node}\n\
             addr add {address}/16 dev eth0\n\
             link set eth0 up\n\
             route add default via {gateway}\n",
            hardware_address(address)
        );
        let space = on_new_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ip(&inner)?;
            // Proxies without root privileges listen on port 80, as the sysctl of the pods allows.
            std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
            File::open("/proc/thread-self/ns/net")
        })?;
        ip(&format!(
            "link set {link} group {POD_LINKS}\nlink set {link} master {BRIDGE}\nlink set {link} up\n"
        ))?;
        Ok(Self { space })
    }

    /// Runs a closure inside the namespace. Sockets and processes that it creates belong to the namespace.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_new_thread(|| {
            setns(&self.space, CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }
}

/// Returns a MAC address derived from the IP address. Neighbours cache the MAC address of a removed pod for
/// half a minute, so a new pod with the same IP address must have the same MAC address.
fn hardware_address(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}

/// Runs a closure on a new thread, because a network namespace is a property of a thread.
fn on_new_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let joined = std::thread::scope(|scope| scope.spawn(work).join());
    joined.unwrap_or_else(|_| Err(io::Error::other("the thread inside a pod's network panicked")))
}

/// Runs `ip` commands in the network namespace of the calling thread.
pub(super) fn ip(commands: &str) -> io::Result<()> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!(
        "`ip` failed: {said}; commands:\n{commands}"
    )))
}
