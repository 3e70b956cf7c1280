//! `mainstay sandbox` as a process: its output, cleanup, and files that it must not modify.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A ready sandbox, killed on drop.
struct Sandbox {
    child: Child,
    stdout: BufReader<ChildStdout>,
    ready: Value,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .arg("sandbox")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Sandbox {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(&[arguments, &["-o", "json"]].concat()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_default();
        Self { child, stdout, ready }
    }

    fn kubeconfig(&self) -> &Path {
        Path::new(self.ready["kubeconfig"].as_str().unwrap())
    }

    /// Stops the sandbox with a signal; returns its exit code and remaining output.
    fn end(mut self, signal: Signal) -> (i32, String) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), rest)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a sandbox that must not start; returns its exit code and stderr.
fn rejected(arguments: &[&str]) -> (i32, String) {
    let output = command(arguments).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn the_kubeconfig_is_private_and_removed_at_the_end() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let sandbox = Sandbox::start(&[]);
        let path = sandbox.kubeconfig().to_owned();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(path.parent().unwrap())),
            (0o600, 0o700),
            "readable by the user only"
        );
        assert!(
            sandbox.ready["server"]
                .as_str()
                .unwrap()
                .starts_with("https://127.0.0.1:")
        );
        assert_eq!(sandbox.ready["nodes"], 3);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(sandbox.ready["server"].as_str().unwrap()));
        assert_eq!(sandbox.end(signal), (0, String::new()));
        assert!(!path.parent().unwrap().exists(), "{signal}");
    }
}

#[test]
fn a_snapshot_is_loaded_and_a_dump_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("cluster.yaml");
    let text = "\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}
- {apiVersion: v1, kind: Node, metadata: {name: own}}
- {apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}
";
    fs::write(&snapshot, text).unwrap();
    let dump = directory.path().join("dump");
    let sandbox = Sandbox::start(&[
        "--snapshot",
        snapshot.to_str().unwrap(),
        "--dump",
        dump.to_str().unwrap(),
    ]);
    let ready = &sandbox.ready;
    assert_eq!((&ready["nodes"], &ready["objects"]), (&1.into(), &3.into()));
    assert_eq!(ready["skipped"][0], "example.com/v1 Thing (1)");
    assert_eq!(sandbox.end(Signal::SIGTERM).0, 0);
    let kept = fs::read_to_string(dump.join("configmaps/shop/c.yaml")).unwrap();
    assert!(kept.contains("a: b"), "{kept}");
    let expected = format!(
        "Error: {} is not empty\nhint: name a new directory: a dump never replaces files\n",
        dump.display()
    );
    assert_eq!(rejected(&["--dump", dump.to_str().unwrap()]), (1, expected));
}

#[test]
fn other_kubeconfigs_are_not_modified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let name = path.to_str().unwrap();
    fs::write(&path, "apiVersion: v1\n").unwrap();
    let expected = format!(
        "Error: {name} exists and was not written by a sandbox\nhint: choose a new file: a sandbox does not overwrite other kubeconfigs\n"
    );
    assert_eq!(rejected(&["--kubeconfig", name]), (1, expected));
    assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");

    // A kubeconfig that a killed sandbox left behind may be replaced.
    fs::remove_file(&path).unwrap();
    let first = Sandbox::start(&["--kubeconfig", name]);
    let left = fs::read_to_string(&path).unwrap();
    drop(first);
    assert!(path.exists(), "a killed process leaves the file");
    let second = Sandbox::start(&["--kubeconfig", name]);
    assert_ne!(fs::read_to_string(&path).unwrap(), left);
    assert_eq!(second.end(Signal::SIGINT).0, 0);
    assert!(!path.exists());
}

#[test]
fn invalid_arguments_are_rejected() {
    let (code, text) = rejected(&["--speed", "fast"]);
    assert_eq!(
        (code, text.as_str()),
        (
            1,
            "Error: invalid argument \"fast\" for \"--speed\" flag: not a number\nhint: use a number from 0 to 10000; run `mainstay sandbox --help` for examples\n"
        )
    );
    let (_, text) = rejected(&["--speed=-1"]);
    assert!(text.contains("must be between 0 and 10000"), "{text}");
    let (code, text) = rejected(&["--snapshot", "/no/such/file"]);
    assert_eq!(
        (code, text.as_str()),
        (
            1,
            "Error: /no/such/file: No such file or directory (os error 2)\nhint: name a file or directory that exists and can be read, or `-` for stdin\n"
        )
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, text) = rejected(&["--port", &port.to_string()]);
    let expected = format!(
        "Error: cannot listen on 127.0.0.1:{port}: Address already in use (os error 98)\nhint: use --port 0 to select a free port\n"
    );
    assert_eq!((code, text), (1, expected));
}
