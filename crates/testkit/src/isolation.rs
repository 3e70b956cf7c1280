//! Runs the program again inside a network namespace with loopback only, and verifies that no packet can
//! leave it.
//!
//! For an API server, a `ClusterIP` or a pod IP is an ordinary address: outside such a namespace a webhook
//! call would leave the machine. Therefore [`Cluster::start`](crate::cluster::Cluster::start) fails outside
//! an isolated namespace.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Environment variable that is set for the program inside the namespace.
pub const ISOLATED: &str = "MAINSTAY_ISOLATED";

/// Addresses of all nodes, pods and Services. They are local, so any process can bind them.
pub(crate) const LOCAL_RANGE: &str = "10.0.0.0/8";

/// Addresses reserved for documentation. They must be unreachable.
const EXTERNAL_ADDRESSES: [SocketAddr; 2] = [
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 443),
    SocketAddr::new(
        std::net::IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        443,
    ),
];

/// Errors of the isolation.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// A tool could not be started.
    #[error("cannot start {tool} (Debian: util-linux, iproute2)")]
    Tool {
        /// Name of the tool.
        tool: &'static str,
        /// System error.
        source: io::Error,
    },
    /// The path of the program cannot be determined, or its temporary directory cannot be created.
    #[error("cannot prepare the isolated namespace")]
    Prepare(#[source] io::Error),
    /// The program does not run as root.
    #[error("needs root")]
    NeedsRoot,
    /// Configuring the loopback interface failed.
    #[error("`ip {0}` failed inside the namespace")]
    Loopback(String),
    /// The interfaces cannot be listed.
    #[error("cannot list the network interfaces")]
    Interfaces(#[source] nix::Error),
    /// An interface other than loopback is up.
    #[error(
        "the interface {0} is up; run the program through `isolation::enter`, in a namespace with loopback only"
    )]
    Interface(String),
    /// A connection to an external address succeeds, or fails for a reason other than a missing route.
    #[error("{address} must not be reachable: {seen}")]
    Leak {
        /// External address.
        address: SocketAddr,
        /// Result of the connection attempt.
        seen: String,
    },
}

/// Returns if the program runs in a verified isolated namespace. Otherwise the process is replaced by the
/// same program inside a new namespace.
///
/// Must be called first in `main`. When the first process of the new pid namespace exits, all its processes
/// are killed. Temporary files are on a tmpfs that is removed with the mount namespace.
pub fn enter() -> Result<(), IsolationError> {
    enter_with(MAP_ROOT)
}

/// Like [`enter`], but keeps the users of the machine, which requires root: a mesh runs its proxies as a
/// separate user, and each of its pods has a separate network.
pub fn enter_as_root() -> Result<(), IsolationError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(IsolationError::NeedsRoot);
    }
    enter_with(MOUNT_PROC)
}

/// Flag of `unshare` that maps the user to root inside the namespace.
const MAP_ROOT: &str = "--map-root-user";
/// Flag of `unshare` that mounts a `/proc` of the new pid namespace. Only root can mount it.
const MOUNT_PROC: &str = "--mount-proc";

fn enter_with(users: &str) -> Result<(), IsolationError> {
    if std::env::var_os(ISOLATED).is_none() {
        return Err(exec_in_namespace(users));
    }
    ip(&["link", "set", "lo", "up"])?;
    ip(&["route", "replace", "local", LOCAL_RANGE, "dev", "lo"])?;
    mount_tmpfs();
    check()
}

/// Replaces the process by `unshare`, so that killing the process ends the run. Returns only on failure.
fn exec_in_namespace(users: &str) -> IsolationError {
    match (std::env::current_exe(), create_scratch_directory()) {
        (Ok(program), Ok(scratch)) => {
            let source = Command::new("unshare")
                .args([users, "--net", "--mount", "--pid", "--fork", "--kill-child"])
                .arg("--")
                .arg(program)
                .args(std::env::args_os().skip(1))
                .env(ISOLATED, "1")
                .env("TMPDIR", scratch)
                .exec();
            IsolationError::Tool {
                tool: "unshare",
                source,
            }
        }
        (Err(error), _) | (_, Err(error)) => IsolationError::Prepare(error),
    }
}

/// Creates the mount point of the temporary file system.
fn create_scratch_directory() -> io::Result<PathBuf> {
    let directory = std::env::temp_dir().join("mainstay-clusters");
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Mounts a tmpfs for temporary files. If mounting is not permitted, temporary files are on disk and are
/// not removed when the run is killed.
fn mount_tmpfs() {
    let _ = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(std::env::temp_dir())
        .status();
}

fn ip(arguments: &[&str]) -> Result<(), IsolationError> {
    let status = Command::new("ip").args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(IsolationError::Loopback(arguments.join(" "))),
        Err(source) => Err(IsolationError::Tool { tool: "ip", source }),
    }
}

/// Verifies that no packet can leave the namespace: only loopback is up, and there is no route to external
/// addresses.
pub fn check() -> Result<(), IsolationError> {
    let interfaces = getifaddrs().map_err(IsolationError::Interfaces)?;
    let mut others = interfaces.filter(|interface| {
        interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    match others.next() {
        Some(other) => Err(IsolationError::Interface(other.interface_name)),
        None => EXTERNAL_ADDRESSES.into_iter().try_for_each(expect_no_route),
    }
}

fn expect_no_route(address: SocketAddr) -> Result<(), IsolationError> {
    let seen = match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        Err(error) if is_no_route(&error) => return Ok(()),
        Err(error) => error.to_string(),
        Ok(_) => "it responded".to_owned(),
    };
    Err(IsolationError::Leak { address, seen })
}

/// Whether an error means that there is no route to the address. This includes kernels without IPv6.
fn is_no_route(error: &io::Error) -> bool {
    let unsupported = [nix::libc::EAFNOSUPPORT, nix::libc::EADDRNOTAVAIL];
    error.kind() == io::ErrorKind::NetworkUnreachable
        || error
            .raw_os_error()
            .is_some_and(|code| unsupported.contains(&code))
}

/// Returns the pid in `/proc` of the process that has the pid `inside` in this program's pid namespace.
#[must_use]
pub fn pid_outside(inside: u32) -> u32 {
    let ours = fs::read_link("/proc/self/ns/pid").ok();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found = all.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let last: u32 = names.split_whitespace().last()?.parse().ok()?;
        let same = fs::read_link(entry.path().join("ns/pid")).ok() == ours;
        (last == inside && same).then_some(number)
    });
    found.next().unwrap_or(inside)
}
