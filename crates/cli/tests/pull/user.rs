//! A user with a separate data directory: runs `mainstay` and lists the files it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::VERSION;

/// A user with an empty data directory.
pub(crate) struct User(pub(crate) PathBuf);

impl User {
    pub(crate) fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("mainstay-pull-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    /// Runs the binary; returns exit code, stdout and stderr.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
        for name in [
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ] {
            command.env_remove(name);
        }
        let done = command
            .args(arguments)
            .env("XDG_DATA_HOME", &self.0)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let messages = without_progress(&text(done.stderr));
        (done.status.code().unwrap(), text(done.stdout), messages)
    }

    pub(crate) fn pull(&self, source: &str) -> (i32, String, String) {
        self.run(&["charts", "pull", VERSION, source, "--plain-http"])
    }

    /// Checks that the pull fails with this message and writes nothing.
    pub(crate) fn check_rejected(&self, source: &str, message: &str) {
        let (code, out, err) = self.pull(source);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert_eq!(
            err.lines().next().unwrap_or_default(),
            format!("Error: {message}")
        );
        assert!(err.lines().any(|line| line.starts_with("hint: ")), "{err}");
        assert_eq!(files(&self.0), Vec::<String>::new());
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the progress lines, which appear only on a slow machine.
fn without_progress(messages: &str) -> String {
    let is_progress = |line: &str| line.starts_with("pulling ") && line.trim_end().ends_with("s)");
    let lines = messages.split_inclusive('\n');
    lines.filter(|line| !is_progress(line)).collect()
}

/// Returns the paths of all files below `top`, relative to it.
pub(crate) fn files(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(top).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}
