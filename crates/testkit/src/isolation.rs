//! Runs the program again inside a network namespace with loopback only, and verifies that nothing can leave.
//!
//! To an API server a `ClusterIP` or a pod IP is an ordinary address: outside such a namespace a webhook call
//! would leave the machine. So [`Cluster::start`](crate::cluster::Cluster::start) fails anywhere else.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Set in the environment of the inner run.
pub const INSIDE: &str = "MAINSTAY_ISOLATED";

/// All addresses of nodes, pods and Services: they are local, so any process can bind one.
pub(crate) const LOCAL_RANGE: &str = "10.0.0.0/8";

/// Addresses reserved for documentation, which must be unreachable.
const OUTSIDE: [SocketAddr; 2] = [
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
        /// The name.
        tool: &'static str,
        /// The system error.
        source: io::Error,
    },
    /// The path of the program is unknown, or it has no temporary directory.
    #[error("preparing the run inside the namespace")]
    Prepare(#[source] io::Error),
    /// Root is required.
    #[error("needs root")]
    NeedsRoot,
    /// Setting up loopback failed.
    #[error("`ip {0}` failed inside the namespace")]
    Loopback(String),
    /// The interfaces could not be listed.
    #[error("listing the network interfaces")]
    Interfaces(#[source] nix::Error),
    /// An interface beside loopback is up.
    #[error(
        "the interface {0} is up: a real API server starts only where loopback is all there is (run it through `isolation::enter`)"
    )]
    Interface(String),
    /// An address outside can be dialled, or the attempt fails for another reason than the lack of a route.
    #[error("{address} is not out of reach: {seen}")]
    Leak {
        /// The address.
        address: SocketAddr,
        /// The result.
        seen: String,
    },
}

/// Returns inside a verified isolated namespace; outside, the process is replaced by that inner run.
///
/// Call it first in `main`. The pid namespace ends every process of the run with its first one, and temporary
/// files are on a tmpfs that ends with the mount namespace.
pub fn enter() -> Result<(), IsolationError> {
    enter_with(MAP_ROOT)
}

/// Like [`enter`] with all users of the machine, which needs root: a mesh runs its proxies as a separate
/// user, and pods have networks.
pub fn enter_as_root() -> Result<(), IsolationError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(IsolationError::NeedsRoot);
    }
    enter_with(MOUNT_PROC)
}

/// The user is mapped to root inside the namespace.
const MAP_ROOT: &str = "--map-root-user";
/// A `/proc` of the new pid namespace, which only its root can mount.
const MOUNT_PROC: &str = "--mount-proc";

fn enter_with(users: &str) -> Result<(), IsolationError> {
    if std::env::var_os(INSIDE).is_none() {
        return Err(exec_in_namespace(users));
    }
    ip(&["link", "set", "lo", "up"])?;
    ip(&["route", "replace", "local", LOCAL_RANGE, "dev", "lo"])?;
    keep_files_in_memory();
    check()
}

/// Replaces the process by `unshare`, so that killing it ends the run. Returns only on failure.
fn exec_in_namespace(users: &str) -> IsolationError {
    match (std::env::current_exe(), make_scratch()) {
        (Ok(program), Ok(scratch)) => {
            let source = Command::new("unshare")
                .args([users, "--net", "--mount", "--pid", "--fork", "--kill-child"])
                .arg("--")
                .arg(program)
                .args(std::env::args_os().skip(1))
                .env(INSIDE, "1")
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

/// The mount point of the temporary file system.
fn make_scratch() -> io::Result<PathBuf> {
    let directory = std::env::temp_dir().join("mainstay-clusters");
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Mounts a tmpfs for temporary files. If that is not permitted, files stay on disk and remain when the run
/// is killed.
fn keep_files_in_memory() {
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

/// Verifies that nothing can leave: only loopback is up, and connections to the outside find no route.
pub fn check() -> Result<(), IsolationError> {
    let interfaces = getifaddrs().map_err(IsolationError::Interfaces)?;
    let mut others = interfaces.filter(|interface| {
        interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    match others.next() {
        Some(other) => Err(IsolationError::Interface(other.interface_name)),
        None => OUTSIDE.into_iter().try_for_each(expect_no_route),
    }
}

fn expect_no_route(address: SocketAddr) -> Result<(), IsolationError> {
    let seen = match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
        Err(error) if no_route(&error) => return Ok(()),
        Err(error) => error.to_string(),
        Ok(_) => "it responded".to_owned(),
    };
    Err(IsolationError::Leak { address, seen })
}

/// Whether an error means that there is no route, which includes a kernel without IPv6.
fn no_route(error: &io::Error) -> bool {
    let unsupported = [nix::libc::EAFNOSUPPORT, nix::libc::EADDRNOTAVAIL];
    error.kind() == io::ErrorKind::NetworkUnreachable
        || error
            .raw_os_error()
            .is_some_and(|code| unsupported.contains(&code))
}

/// Returns the pid in `/proc` of a process with pid `inside` in this program's pid namespace.
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
