//! One shell per page, with a new directory and a new sandbox.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::blocks::Step;

/// Maximum run time of a page in seconds.
const LIMIT: &str = "480";
/// File with line, exit code and seconds of each block.
const BLOCKS: &str = ".blocks";
/// Functions for `setup` comments.
const SETUP: &str = include_str!("setup.sh");
/// Exit code of `timeout` when the maximum run time is exceeded.
const TIMED_OUT: i32 = 124;

/// Where pages and the binary come from.
pub(crate) struct Source {
    /// Directory with `README.md`, `docs` and `deploy`.
    pub(crate) root: PathBuf,
    binary: PathBuf,
}

impl Source {
    /// Returns the unpacked archive in `$MAINSTAY_BOOK_ROOT`, or the repository with the binary of this
    /// build.
    pub(crate) fn from_environment() -> Self {
        match std::env::var_os("MAINSTAY_BOOK_ROOT").map(PathBuf::from) {
            Some(root) => Self {
                binary: root.join("mainstay"),
                root,
            },
            None => Self {
                root: mainstay_testkit::repository_root(),
                binary: PathBuf::from(env!("CARGO_BIN_EXE_mainstay")),
            },
        }
    }
}

/// Working directory, sandbox and programs for the blocks of one page.
pub(crate) struct Session {
    directory: tempfile::TempDir,
    sandbox: Child,
    path: String,
}

impl Session {
    /// Starts the sandbox of a page.
    pub(crate) fn start(source: &Source, page: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Pages name files by their path in the repository or the archive.
        let add_link = |from: PathBuf, name: &str| {
            std::os::unix::fs::symlink(from, directory.path().join(name)).unwrap();
        };
        add_link(source.root.join("deploy"), "deploy");
        add_link(source.root.join("docs"), "docs");
        // Istio's charts, from which `setup` comments install the mesh of another installer.
        add_link(mainstay_testkit::repository_root().join("resources"), "resources");
        let programs = directory.path().join(".programs");
        fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(&source.binary, programs.join("mainstay")).unwrap();
        link_peers(&programs);
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut sandbox = Command::new(&source.binary)
            .args(["sandbox", "--inject", "-o", "json", "--kubeconfig"])
            .arg(directory.path().join(".kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{page}: {error}"));
        let mut line = String::new();
        let mut stdout = BufReader::new(sandbox.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert!(line.contains("kubeconfig"), "{page}: the sandbox did not start");
        Self {
            directory,
            sandbox,
            path,
        }
    }

    /// Runs the steps of a page; the error names the block that failed and quotes its output. Returns line,
    /// exit code and seconds of each block.
    pub(crate) fn run(&self, steps: &[Step]) -> Result<Vec<String>, String> {
        let script = self.directory.path().join(".script");
        fs::write(&script, text(steps)).unwrap();
        let log = self.directory.path().join(".log");
        let output = fs::File::create(&log).unwrap();
        let mut shell = Command::new("timeout")
            .args(["--kill-after=5", LIMIT, "bash"])
            .arg(&script)
            .current_dir(self.directory.path())
            .env("PATH", &self.path)
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.directory.path().join(".kubeconfig"))
            .env("XDG_DATA_HOME", self.directory.path().join(".data"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap();
        let code = shell.wait().unwrap().code();
        // Killing the process group also ends background processes of the page.
        let group = nix::unistd::Pid::from_raw(shell.id() as i32);
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        match code {
            Some(0) => {
                let blocks = fs::read_to_string(self.directory.path().join(BLOCKS)).unwrap_or_default();
                Ok(blocks.lines().map(str::to_owned).collect())
            }
            code => {
                let log = fs::read(&log).unwrap();
                let log = String::from_utf8_lossy(&log);
                let end: Vec<&str> = log.lines().rev().take(40).collect();
                let end: Vec<&str> = end.into_iter().rev().collect();
                let code = if code == Some(TIMED_OUT) {
                    format!("no end after {LIMIT} s")
                } else {
                    format!("exit {code:?}")
                };
                Err(format!("{code}\n{}", end.join("\n")))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.sandbox.kill();
        let _ = self.sandbox.wait();
    }
}

/// The script of a page: it stops at the first block that ends with another exit code than expected.
fn text(steps: &[Step]) -> String {
    let mut script = format!("set -u -o pipefail\n{SETUP}\n");
    for step in steps {
        let (line, text, exit) = match step {
            Step::Shell { line, text, exit } => (*line, text.clone(), *exit),
            Step::Setup { line, command } => (*line, format!("{command}\n"), 0),
            Step::File { path, text } => {
                let _ = writeln!(
                    script,
                    "mkdir -p \"$(dirname {path})\"; cat > {path} <<'END_OF_FILE'\n{text}END_OF_FILE"
                );
                continue;
            }
            Step::Skipped { .. } => continue,
        };
        // A block stops at its first failing command, except one whose failure is expected.
        let stop = if exit == 0 { "set -e" } else { "set +e" };
        let _ = writeln!(
            script,
            "echo '--- line {line}'; begin=$EPOCHREALTIME; {stop}\n{text}code=$?; set +e"
        );
        if matches!(step, Step::Shell { .. }) {
            let _ = writeln!(script, "report_block {line} $code $begin >> \"$HOME/{BLOCKS}\"");
        }
        let _ = writeln!(
            script,
            "[ $code = {exit} ] || {{ echo \"line {line}: exit $code, expected {exit}\"; exit 1; }}"
        );
    }
    script
}

/// Makes the real `kubectl`, `helm` and `istioctl` available under their names.
fn link_peers(programs: &Path) {
    for (peer, name) in [
        ("kubectl", "kubectl"),
        ("helm4", "helm"),
        ("istioctl", "istioctl"),
    ] {
        let path = mainstay_testkit::peer(peer).unwrap_or_else(|error| panic!("{name}: {error}"));
        std::os::unix::fs::symlink(path, programs.join(name)).unwrap();
    }
}
