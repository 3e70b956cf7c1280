//! `mainstay` as a process: start, log, signals and exit code.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::stage::Stage;

/// Maximum time to wait for a state or an exit on a busy machine.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("POD_NAMESPACE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// An operator process, killed on drop.
pub(crate) struct Operator {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Operator {
    pub(crate) fn start(stage: &Stage, arguments: &[&str]) -> Self {
        let fixed = [
            "operator",
            "run",
            "-metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address",
            "127.0.0.1:0",
            "-zap-encoder=json",
        ];
        let mut child = command(&[&fixed, arguments].concat())
            .env("KUBECONFIG", stage.kubeconfig())
            .env("POD_NAMESPACE", "sail-operator")
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, captured) = (child.stderr.take().unwrap(), log.clone());
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut captured = captured.lock().unwrap();
                captured.push_str(&line);
                captured.push('\n');
            }
        });
        Self {
            child,
            log,
            reader: Some(reader),
        }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a log line that starts with `message`; returns its address.
    pub(crate) async fn address(&mut self, message: &str) -> SocketAddr {
        let mut found = None;
        self.wait(message, |operator| {
            let log = operator.log();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut lines =
                lines.filter(|line| line["msg"].as_str().is_some_and(|log| log.starts_with(message)));
            found = lines
                .next()
                .and_then(|line| line["address"].as_str()?.parse().ok());
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Waits until `holds` returns true; fails if the process exits or the timeout expires.
    pub(crate) async fn wait(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let exit = self.child.try_wait().unwrap();
            assert!(
                exit.is_none() && begun.elapsed() < EXIT_TIMEOUT,
                "{what}: {exit:?}\n{}",
                self.log()
            );
            // The operator is a separate process, so the test has to poll on the wall clock.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for the exit of the process; returns its exit code and log.
    pub(crate) async fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(begun.elapsed() < EXIT_TIMEOUT, "does not exit\n{}", self.log()),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.reader.take().unwrap().join().unwrap();
        (status.code(), self.log())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
