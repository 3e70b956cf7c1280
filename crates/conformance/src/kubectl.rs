//! Sessions of `kubectl`: takes the program, a kubeconfig and a script of what a user types, gives the script with what it printed written in.
//!
//! ```text
//! # a comment
//! $ get pods -l app=web              types it; words in single quotes may hold blanks
//! < NAME  READY …                    what was printed; left out when a script is read, written when it is run
//! < (exit 1)                         when it failed
//! FIELDS explain pod.spec --recursive  types it, shows it without the description: that is the API's own prose
//! LAST rollout status deploy/web     types it, shows the last line: those before depend on the speed of the machine
//! UNTIL 3/3 get deploy web           types it again and again until it prints this; in single quotes it may hold blanks
//! FILE web.yaml … END                writes a file beside the session
//! EDIT web.yaml OLD NEW              changes it
//! WATCH w get pods -w                types it and goes on once it has printed what there is: nothing that follows is missed
//! STOP w 4                           waits until it has printed four lines, then ends it
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

mod mask;

use mask::mask;

/// The session of this crate.
pub const SESSION: &str = include_str!("../kubectl/session.txt");

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at something that is not ready yet.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a session could not be played.
#[derive(Debug)]
pub enum SessionError {
    /// A line is no step.
    Script(String),
    /// A file or the program.
    Io(String, io::Error),
    /// It took too long.
    Late(String),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script(line) => write!(f, "no step of a session: {line}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Late(line) => write!(f, "took longer than {} s: {line}", PATIENCE.as_secs()),
        }
    }
}

impl std::error::Error for SessionError {}

/// Where a session is played.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The program.
    pub kubectl: PathBuf,
    /// A kubeconfig of an administrator, to be copied: the session changes its copy.
    pub kubeconfig: PathBuf,
    /// An empty folder for files and caches.
    pub directory: PathBuf,
}

/// Plays `script`; answers that stand in it are left out and written anew.
pub fn run_session(config: &SessionConfig, script: &str) -> Result<String, SessionError> {
    fs::copy(&config.kubeconfig, config.directory.join("kubeconfig"))
        .map_err(|error| SessionError::Io("the kubeconfig".into(), error))?;
    let mut runner = SessionRunner {
        config,
        out: String::new(),
        watches: BTreeMap::new(),
    };
    let mut lines = script.lines().filter(|line| !line.starts_with('<'));
    while let Some(line) = lines.next() {
        let _ = writeln!(runner.out, "{line}");
        if let Some(name) = line.strip_prefix("FILE ") {
            let mut text = String::new();
            for line in lines.by_ref() {
                let _ = writeln!(runner.out, "{line}");
                if line == "END" {
                    break;
                }
                let _ = writeln!(text, "{line}");
            }
            runner.write(name, &text)?;
        } else if !line.is_empty() && !line.starts_with('#') {
            runner.step(line)?;
        }
    }
    Ok(runner.out)
}

struct SessionRunner<'a> {
    config: &'a SessionConfig,
    out: String,
    watches: BTreeMap<String, Watching>,
}

/// A command that goes on.
struct Watching {
    child: Child,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl SessionRunner<'_> {
    fn step(&mut self, line: &str) -> Result<(), SessionError> {
        let wrong = || SessionError::Script(line.to_owned());
        let (step, rest) = line.split_once(' ').ok_or_else(wrong)?;
        match step {
            "$" => {
                let printed = self.run(rest)?;
                self.show(&printed, usize::MAX);
            }
            "FIELDS" => {
                let printed = self.run(rest)?;
                self.show(&without_description(&printed), usize::MAX);
            }
            "LAST" => {
                let printed = self.run(rest)?;
                self.show(&printed, 1);
            }
            "UNTIL" => {
                let (text, rest) = match rest.strip_prefix('\'') {
                    Some(quoted) => quoted.split_once("' "),
                    None => rest.split_once(' '),
                }
                .ok_or_else(wrong)?;
                let printed = self.repeat(rest, text)?;
                self.show(&printed, usize::MAX);
            }
            "EDIT" => {
                let words = split(rest);
                let [name, old, new] = words.as_slice() else {
                    return Err(wrong());
                };
                let text = fs::read_to_string(self.config.directory.join(name));
                let text = text.map_err(|error| SessionError::Io(name.clone(), error))?;
                self.write(name, &text.replace(old, new))?;
            }
            "WATCH" => {
                let (name, rest) = rest.split_once(' ').ok_or_else(wrong)?;
                let watching = self.begin(rest)?;
                watching
                    .wait(1)
                    .ok_or_else(|| SessionError::Late(line.to_owned()))?;
                self.watches.insert(name.to_owned(), watching);
            }
            "STOP" => {
                let (name, count) = rest.split_once(' ').ok_or_else(wrong)?;
                let watching = self.watches.remove(name).ok_or_else(wrong)?;
                let count = count.parse().map_err(|_| wrong())?;
                let printed = watching
                    .wait(count)
                    .ok_or_else(|| SessionError::Late(line.to_owned()))?;
                self.show(&printed, usize::MAX);
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), SessionError> {
        fs::write(self.config.directory.join(name), text)
            .map_err(|error| SessionError::Io(name.to_owned(), error))
    }

    fn command(&self, line: &str) -> Command {
        let directory = &self.config.directory;
        let mut command = Command::new(&self.config.kubectl);
        command
            .args(split(line))
            .current_dir(directory)
            .env("KUBECONFIG", directory.join("kubeconfig"))
            .env("HOME", directory)
            .env("TMPDIR", directory)
            .env_remove("KUBECTL_EXTERNAL_DIFF")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command prints: its output, then its errors, then how it ended if not well.
    fn run(&self, line: &str) -> Result<String, SessionError> {
        let wrong = |error| SessionError::Io(line.to_owned(), error);
        let mut child = self.command(line).spawn().map_err(wrong)?;
        let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return Err(SessionError::Late(line.to_owned()));
            }
            // Polled: waiting for a child with a timeout needs polling.
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut printed = out.join().unwrap_or_default();
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed.push_str(&err.join().unwrap_or_default());
        if !status.success() {
            if !printed.is_empty() && !printed.ends_with('\n') {
                printed.push('\n');
            }
            let _ = writeln!(printed, "(exit {})", status.code().unwrap_or(-1));
        }
        Ok(printed)
    }

    fn repeat(&self, line: &str, text: &str) -> Result<String, SessionError> {
        let begun = Instant::now();
        loop {
            let printed = self.run(line)?;
            if printed.contains(text) {
                return Ok(printed);
            }
            if begun.elapsed() > PATIENCE {
                return Err(SessionError::Late(format!("{line}, which says: {printed}")));
            }
            // Polled: kubectl is repeated until the controllers have caught up.
            std::thread::sleep(PAUSE);
        }
    }

    fn begin(&self, line: &str) -> Result<Watching, SessionError> {
        let wrong = |error| SessionError::Io(line.to_owned(), error);
        let mut child = self.command(line).spawn().map_err(wrong)?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        if let Some(mut pipe) = child.stdout.take() {
            let printed = Arc::clone(&printed);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    let read = buffer.get(..count).unwrap_or(&[]);
                    printed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(read);
                }
            });
        }
        Ok(Watching { child, printed })
    }

    fn show(&mut self, printed: &str, last: usize) {
        let lines: Vec<&str> = printed.lines().collect();
        let skip = lines.len().saturating_sub(last);
        for line in lines.into_iter().skip(skip) {
            let masked = mask(line, &self.config.directory.display().to_string());
            let _ = writeln!(self.out, "{}", format!("< {masked}").trim_end());
        }
    }
}

impl Watching {
    /// What was printed once there are `count` lines.
    fn wait(&self, count: usize) -> Option<String> {
        let begun = Instant::now();
        loop {
            let printed = self
                .printed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let text = String::from_utf8_lossy(&printed);
            if text.matches('\n').count() >= count {
                return Some(text.into_owned());
            }
            if begun.elapsed() > PATIENCE {
                return None;
            }
            // Polled: the pipe is read without blocking.
            std::thread::sleep(PAUSE);
        }
    }
}

/// What `explain` says, without the API's own prose.
fn without_description(text: &str) -> String {
    let (mut out, mut skip) = (String::new(), false);
    for line in text.lines() {
        skip = (skip && !line.starts_with("FIELDS")) || line.starts_with("DESCRIPTION");
        if !skip {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn drain(pipe: Option<impl io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Words: blanks part them, unless between single quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => {
                if let Some(last) = words.last_mut() {
                    last.push(letter);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The first lines in which two transcripts differ, with the command above them; empty when they do not.
#[must_use]
pub fn differences(expected: &str, found: &str) -> Vec<String> {
    let (expected, found) = (blocks(expected), blocks(found));
    let mut out = Vec::new();
    for (at, (step, lines)) in expected.iter().enumerate() {
        let other = found.get(at).map_or(&[][..], |(_, lines)| lines.as_slice());
        if lines.as_slice() != other {
            out.push(format!(
                "{step}\n  expected:\n    {}\n  found:\n    {}",
                lines.join("\n    "),
                other.join("\n    ")
            ));
        }
    }
    out
}

/// Each step with what it printed.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('<'), blocks.last_mut()) {
            (Some(line), Some((_, lines))) => lines.push(line),
            _ => blocks.push((line, Vec::new())),
        }
    }
    blocks
}
