//! Scripted `kubectl` sessions: runs the commands of a script and inserts their output.
//!
//! ```text
//! # a comment
//! $ get pods -l app=web              runs kubectl; words in single quotes may contain spaces
//! < NAME  READY …                    the output; ignored when a script is parsed, written when it runs
//! < (exit 1)                         the exit code of a failed command
//! FIELDS explain pod.spec --recursive  shows the output without the description, which is upstream's text
//! LAST rollout status deploy/web     shows the last line only: earlier ones depend on timing
//! UNTIL 3/3 get deploy web           repeats until the output contains this text (quoted if it has spaces)
//! FILE web.yaml … END                writes a file to the directory of the session
//! EDIT web.yaml OLD NEW              replaces text in a file
//! WATCH w get pods -w                starts a command and waits for its first output, so no event is missed
//! STOP w 4                           waits until it has printed four lines, then stops it
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

use mask::mask_line;

/// Script of the session in this crate, with the expected output.
pub const SESSION: &str = include_str!("../kubectl/session.txt");

/// Maximum duration of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Error of running a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A line is not a valid step.
    #[error("invalid step: {0}")]
    Script(String),
    /// A file cannot be accessed, or kubectl cannot be run.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// A command timed out.
    #[error("timed out after {limit} s: {0}", limit = COMMAND_TIMEOUT.as_secs())]
    Timeout(String),
}

/// Environment of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Path of the `kubectl` binary.
    pub kubectl: PathBuf,
    /// Kubeconfig of an administrator. It is copied, because the session modifies it.
    pub kubeconfig: PathBuf,
    /// An empty directory for files and caches.
    pub directory: PathBuf,
}

/// Runs `script` and returns it with the actual output. Output in `script` is ignored.
pub fn run_session(config: &SessionConfig, script: &str) -> Result<String, SessionError> {
    fs::copy(&config.kubeconfig, config.directory.join("kubeconfig"))
        .map_err(|error| SessionError::Io("kubeconfig".into(), error))?;
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
            runner.run_step(line)?;
        }
    }
    Ok(runner.out)
}

struct SessionRunner<'a> {
    config: &'a SessionConfig,
    out: String,
    watches: BTreeMap<String, BackgroundCommand>,
}

/// A command that runs in the background. It is killed when dropped.
struct BackgroundCommand {
    child: Child,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Drop for BackgroundCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl SessionRunner<'_> {
    fn run_step(&mut self, line: &str) -> Result<(), SessionError> {
        let wrong = || SessionError::Script(line.to_owned());
        let (step, rest) = line.split_once(' ').ok_or_else(wrong)?;
        match step {
            "$" => {
                let printed = self.run(rest)?;
                self.write_output(&printed, usize::MAX);
            }
            "FIELDS" => {
                let printed = self.run(rest)?;
                self.write_output(&without_description(&printed), usize::MAX);
            }
            "LAST" => {
                let printed = self.run(rest)?;
                self.write_output(&printed, 1);
            }
            "UNTIL" => {
                let (text, rest) = match rest.strip_prefix('\'') {
                    Some(quoted) => quoted.split_once("' "),
                    None => rest.split_once(' '),
                }
                .ok_or_else(wrong)?;
                let printed = self.run_until(rest, text)?;
                self.write_output(&printed, usize::MAX);
            }
            "EDIT" => {
                let words = split_words(rest);
                let [name, old, new] = words.as_slice() else {
                    return Err(wrong());
                };
                let text = fs::read_to_string(self.config.directory.join(name));
                let text = text.map_err(|error| SessionError::Io(name.clone(), error))?;
                self.write(name, &text.replace(old, new))?;
            }
            "WATCH" => {
                let (name, rest) = rest.split_once(' ').ok_or_else(wrong)?;
                let watching = self.start(rest)?;
                watching
                    .wait_for_lines(1)
                    .ok_or_else(|| SessionError::Timeout(line.to_owned()))?;
                self.watches.insert(name.to_owned(), watching);
            }
            "STOP" => {
                let (name, count) = rest.split_once(' ').ok_or_else(wrong)?;
                let watching = self.watches.remove(name).ok_or_else(wrong)?;
                let count = count.parse().map_err(|_| wrong())?;
                let printed = watching
                    .wait_for_lines(count)
                    .ok_or_else(|| SessionError::Timeout(line.to_owned()))?;
                self.write_output(&printed, usize::MAX);
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
            .args(split_words(line))
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

    /// Runs kubectl and returns its output: stdout, then stderr, then the exit code if it failed.
    fn run(&self, line: &str) -> Result<String, SessionError> {
        let wrong = |error| SessionError::Io(line.to_owned(), error);
        let mut child = self.command(line).spawn().map_err(wrong)?;
        let (out, err) = (
            read_in_background(child.stdout.take()),
            read_in_background(child.stderr.take()),
        );
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(wrong)? {
                break status;
            }
            if started.elapsed() > COMMAND_TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(SessionError::Timeout(line.to_owned()));
            }
            // Polled: std has no function that waits for a child with a timeout.
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

    fn run_until(&self, line: &str, text: &str) -> Result<String, SessionError> {
        let started = Instant::now();
        loop {
            let printed = self.run(line)?;
            if printed.contains(text) {
                return Ok(printed);
            }
            if started.elapsed() > COMMAND_TIMEOUT {
                return Err(SessionError::Timeout(format!("{line}, output: {printed}")));
            }
            // Polled: kubectl is repeated until the controllers have caught up.
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn start(&self, line: &str) -> Result<BackgroundCommand, SessionError> {
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
        Ok(BackgroundCommand { child, printed })
    }

    fn write_output(&mut self, printed: &str, last: usize) {
        let lines: Vec<&str> = printed.lines().collect();
        let skip = lines.len().saturating_sub(last);
        for line in lines.into_iter().skip(skip) {
            let masked = mask_line(line, &self.config.directory.display().to_string());
            let _ = writeln!(self.out, "{}", format!("< {masked}").trim_end());
        }
    }
}

impl BackgroundCommand {
    /// Waits until the output has `count` lines, and returns it. Returns `None` after [`COMMAND_TIMEOUT`].
    fn wait_for_lines(&self, count: usize) -> Option<String> {
        let started = Instant::now();
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
            if started.elapsed() > COMMAND_TIMEOUT {
                return None;
            }
            // Polled: another thread reads the pipe.
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Removes the description from the output of `explain`.
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

fn read_in_background(pipe: Option<impl io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Splits a line into words at spaces. Single quotes enclose words that contain spaces.
fn split_words(line: &str) -> Vec<String> {
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

/// Returns descriptions of the steps whose output differs between two transcripts.
#[must_use]
pub fn differences(expected: &str, found: &str) -> Vec<String> {
    let (expected, found) = (split_steps(expected), split_steps(found));
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

/// Returns each step with the lines of its output.
fn split_steps(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('<'), blocks.last_mut()) {
            (Some(line), Some((_, lines))) => lines.push(line),
            _ => blocks.push((line, Vec::new())),
        }
    }
    blocks
}
