//! Whether everything ends with the test: takes a running mesh, interrupts or kills it, gives how many of its processes are left.

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
use crate::prove::row::{Rank, Row};

/// Ctrl-C, and a death that nobody can prepare for.
pub(super) fn row() -> Row {
    let (text, goal) = ("Ctrl-C and kill -9 in the middle", "no process is left");
    match [Signal::SIGINT, Signal::SIGKILL].map(end_by) {
        [Ok(first), Ok(second)] => {
            let figure = format!("Ctrl-C: {first}; kill -9: {second}");
            Row::correct(text, figure, goal, first.left == 0 && second.left == 0)
        }
        [Err(error), _] | [_, Err(error)] => Row::broken(text, goal, Rank::Correctness, &error),
    }
}

struct End {
    before: usize,
    left: usize,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} processes left", self.left, self.before)
    }
}

/// What the test program says once the mesh is up.
const UP: &str = "first answer";
/// How long the end may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn end_by(signal: Signal) -> anyhow::Result<End> {
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

fn interrupt(child: &mut Child, signal: Signal) -> anyhow::Result<End> {
    let output = child.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    if !lines.by_ref().map_while(Result::ok).any(|line| line.contains(UP)) {
        bail!("the mesh did not come up");
    }
    let space = space_of_descendants(child.id()).context("no process in a namespace of its own")?;
    let before = inhabitants(&space);
    killpg(group(child)?, signal).context("sending the signal")?;
    let end = Instant::now() + PATIENCE;
    while inhabitants(&space) > 0 && Instant::now() < end {
        // Polled: no event reports an empty PID namespace.
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(End {
        before,
        left: inhabitants(&space),
    })
}

/// The pid namespace that a descendant lives in, which is not ours.
fn space_of_descendants(ancestor: u32) -> Option<PathBuf> {
    let own = space(&Path::new("/proc").join(std::process::id().to_string()))?;
    let mut family = vec![ancestor];
    while let Some(parent) = family.pop() {
        for process in processes().filter(|process| parent_of(process) == Some(parent)) {
            match space(&process) {
                Some(space) if space != own => return Some(space),
                _ => family.extend(number(&process)),
            }
        }
    }
    None
}

fn inhabitants(wanted: &Path) -> usize {
    processes()
        .filter(|process| space(process).is_some_and(|space| space == wanted) && !is_dead(process))
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

fn space(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

/// The fields of `stat` after the name, which is in brackets and may hold anything.
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
