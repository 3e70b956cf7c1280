//! Interrupts and kills a running mesh and counts the processes that are left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mainstay_testkit::repository_root;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::TEST;
use crate::build;
use crate::prove::row::{Row, RowKind};

/// Returns the row of SIGINT and SIGKILL.
pub(super) fn row() -> Row {
    let (text, goal) = ("Ctrl-C and kill -9 in the middle", "no process is left");
    match [Signal::SIGINT, Signal::SIGKILL].map(terminate) {
        [Ok(first), Ok(second)] => {
            let figure = format!("Ctrl-C: {first}; kill -9: {second}");
            Row::correct(text, figure, goal, first.left == 0 && second.left == 0)
        }
        [Err(error), _] | [_, Err(error)] => Row::not_measured(text, goal, RowKind::Correctness, &error),
    }
}

struct Termination {
    before: usize,
    left: usize,
}

impl std::fmt::Display for Termination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} processes left", self.left, self.before)
    }
}

/// Printed by the test program once the mesh is up.
const UP: &str = "first response";
/// Maximum time until all processes have exited.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

fn terminate(signal: Signal) -> anyhow::Result<Termination> {
    let mut child = build::cargo()
        .args(TEST)
        .args(["--", "controls"])
        .current_dir(repository_root())
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("starting cargo test")?;
    let outcome = interrupt(&mut child, signal);
    let _ = killpg(group(&child)?, Signal::SIGKILL);
    let _ = child.wait();
    outcome
}

fn group(child: &Child) -> anyhow::Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(child.id())?))
}

fn interrupt(child: &mut Child, signal: Signal) -> anyhow::Result<Termination> {
    let output = child.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    if !lines.by_ref().map_while(Result::ok).any(|line| line.contains(UP)) {
        bail!("the mesh did not come up");
    }
    let pid_namespace =
        descendant_pid_namespace(child.id()).context("no descendant in its own PID namespace")?;
    let before = count_processes(&pid_namespace);
    killpg(group(child)?, signal).context("sending the signal")?;
    let end = Instant::now() + EXIT_TIMEOUT;
    while count_processes(&pid_namespace) > 0 && Instant::now() < end {
        // Polled: no event reports an empty PID namespace.
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Termination {
        before,
        left: count_processes(&pid_namespace),
    })
}

/// Returns the PID namespace of a descendant that differs from ours.
fn descendant_pid_namespace(ancestor: u32) -> Option<PathBuf> {
    let own = pid_namespace(&Path::new("/proc").join(std::process::id().to_string()))?;
    let mut family = vec![ancestor];
    while let Some(parent) = family.pop() {
        for process in processes().filter(|process| parent_of(process) == Some(parent)) {
            match pid_namespace(&process) {
                Some(found) if found != own => return Some(found),
                _ => family.extend(number(&process)),
            }
        }
    }
    None
}

fn count_processes(wanted: &Path) -> usize {
    processes()
        .filter(|process| pid_namespace(process).is_some_and(|found| found == wanted) && !is_dead(process))
        .count()
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.map(|entry| entry.path())
        .filter(|path| number(path).is_some())
}

fn number(process: &Path) -> Option<u32> {
    process.file_name()?.to_str()?.parse().ok()
}

fn pid_namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

/// Returns the fields of `stat` after the name, which is in parentheses and may contain anything.
fn stat(process: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

fn parent_of(process: &Path) -> Option<u32> {
    stat(process)?.get(1)?.parse().ok()
}

fn is_dead(process: &Path) -> bool {
    stat(process).is_none_or(|fields| fields.first().is_some_and(|state| state == "Z"))
}
