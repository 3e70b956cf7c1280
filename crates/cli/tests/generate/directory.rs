//! Directories of manifests: contents, `mainstay generate` runs and results.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A pod that requests the initializer.
pub(crate) const POD: &str = "# mine
apiVersion: v1
kind: Pod
metadata:
  name: p  # the name
spec:
  runtimeClassName: contrast-cc
  containers:
  - name: c
    image: 'nginx'
";

/// [`POD`] after injection.
pub(crate) const INJECTED: &str = "# mine
apiVersion: v1
kind: Pod
metadata:
  name: p  # the name
spec:
  runtimeClassName: contrast-cc
  initContainers:
  - name: contrast-initializer  # mainstay:injected
    image: ghcr.io/edgelesssys/contrast/initializer:v0.7.0
    env:
    - name: COORDINATOR_HOST
      value: coordinator
    resources:
      requests:
        memory: 50Mi
    volumeMounts:
    - name: contrast-tls-certs
      mountPath: /tls-config
  containers:
  - name: c
    image: 'nginx'
    volumeMounts:
    - name: contrast-tls-certs  # mainstay:injected
      mountPath: /tls-config
  volumes:
  - name: contrast-tls-certs  # mainstay:injected
    emptyDir: {}
";

/// A pod whose mesh configuration has a port out of range.
pub(crate) const BAD: &str = "apiVersion: v1
kind: Pod
metadata:
  name: bad
  annotations:
    contrast.edgeless.systems/servicemesh-ingress: web#70000#false
spec:
  runtimeClassName: contrast-cc
  containers: [{name: c}]
";

pub(crate) const BAD_MESSAGE: &str = "Error: port 70000 is not between 1 and 65535
 --> bad.yaml:6:56 (mesh-port-range)
  |
6 |     contrast.edgeless.systems/servicemesh-ingress: web#70000#false
  |                                                        ^^^^^
";

pub(crate) const UNREADABLE: &str = "kind: Pod\nspec:\n  runtimeClassName: contrast-cc\n   containers: []\n";

pub(crate) fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

pub(crate) fn generate(directory: &Path, args: &[&str]) -> Output {
    piped(directory, args, "")
}

pub(crate) fn piped(directory: &Path, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .arg("generate")
        .args(args)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = stdin.to_owned();
    let feeder = std::thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

/// Returns exit code, standard output and standard error.
pub(crate) fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[track_caller]
pub(crate) fn check(output: &Output, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(outcome(output), (code, stdout.to_owned(), stderr.to_owned()));
}

/// Returns every file below `directory` with its text, sorted by path.
pub(crate) fn tree(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}
