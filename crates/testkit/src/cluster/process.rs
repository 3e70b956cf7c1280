//! A process of a control plane. It is killed when dropped.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process with its output in a file in its directory.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the process with an empty environment, so that the user's proxy settings have no effect.
    pub(crate) fn start(binary: &Path, flags: &[String], directory: &Path) -> io::Result<Self> {
        let name = binary.file_name().unwrap_or_else(|| OsStr::new("process"));
        let log = directory.join(name).with_extension("log");
        let output = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(binary)
            .args(flags)
            .current_dir(directory)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        Ok(Self { child, log })
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> = text.lines().rev().take(15).collect();
        lines.reverse();
        lines.join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
