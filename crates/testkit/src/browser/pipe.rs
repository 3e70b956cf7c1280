//! Communication with the browser process over a pipe: requests, responses and events. Messages end with a
//! zero byte.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::BrowserError;

/// Maximum time for a response. Generous, because tests share cores.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

/// Shell script that moves the pipes to descriptors 3 and 4, which the debugging protocol uses, and
/// executes the browser.
const SHELL: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >&2"#;

const FLAGS: [&str; 14] = [
    "--headless",
    // The sandbox is not required, because only pages of tests are opened, and does not work for root in
    // containers.
    "--no-sandbox",
    "--no-zygote",
    // A single process can be killed at the end of the test.
    "--single-process",
    "--in-process-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
];

/// A browser that is controlled over a pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    child: Child,
    requests: Option<ChildStdin>,
    responses: Receiver<Value>,
    events: Vec<Value>,
    last_id: u64,
    directory: tempfile::TempDir,
}

impl Pipe {
    pub(super) fn start(binary: &Path) -> Result<Self, BrowserError> {
        let directory = tempfile::tempdir().map_err(BrowserError::Start)?;
        let log = File::create(directory.path().join("log")).map_err(BrowserError::Start)?;
        let home = binary.parent().unwrap_or(binary);
        let mut child = Command::new("sh")
            .args(["-c", SHELL])
            .arg(binary)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", directory.path().display()))
            .arg("about:blank")
            .env("HOME", directory.path())
            .env("LD_LIBRARY_PATH", home.join("lib"))
            .env("FONTCONFIG_PATH", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(BrowserError::Start)?;
        let (sender, responses) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || listen(stdout, &sender));
        }
        Ok(Self {
            requests: child.stdin.take(),
            child,
            responses,
            events: Vec::new(),
            last_id: 0,
            directory,
        })
    }

    /// Sends a request and waits for its response.
    pub(super) fn call(
        &mut self,
        method: &str,
        parameters: &Value,
        session: &str,
    ) -> Result<Value, BrowserError> {
        self.last_id += 1;
        let mut request = json!({"id": self.last_id, "method": method, "params": parameters});
        if let (Value::Object(fields), false) = (&mut request, session.is_empty()) {
            fields.insert("sessionId".into(), json!(session));
        }
        let written = self.requests.as_mut().map(|to| {
            let written = to.write_all(format!("{request}\0").as_bytes());
            written.and_then(|()| to.flush())
        });
        if !matches!(written, Some(Ok(()))) {
            return Err(self.no_response(method));
        }
        let last_id = json!(self.last_id);
        let response = self.receive(method, |message| message.get("id") == Some(&last_id))?;
        response
            .get("result")
            .cloned()
            .ok_or_else(|| BrowserError::Rejected {
                method: method.to_owned(),
                response,
            })
    }

    /// Waits for an event.
    pub(super) fn wait_for(&mut self, event: &str) -> Result<(), BrowserError> {
        let is_match = |message: &Value| message.get("method").and_then(Value::as_str) == Some(event);
        if self.events.iter().any(is_match) {
            return Ok(());
        }
        self.receive(event, is_match).map(drop)
    }

    fn receive(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, BrowserError> {
        loop {
            let Ok(message) = self.responses.recv_timeout(RESPONSE_TIMEOUT) else {
                return Err(self.no_response(method));
            };
            if wanted(&message) {
                return Ok(message);
            }
            self.events.push(message);
        }
    }

    /// Returns the received events.
    pub(super) fn events(&self) -> &[Value] {
        &self.events
    }

    /// Clears the received events.
    pub(super) fn clear_events(&mut self) {
        self.events.clear();
    }

    fn no_response(&self, method: &str) -> BrowserError {
        let log = std::fs::read(self.directory.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default();
        BrowserError::NoResponse {
            method: method.to_owned(),
            log_tail: last.join("\n"),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(stdout: ChildStdout, sender: &Sender<Value>) {
    for message in BufReader::new(stdout).split(0) {
        let Ok(Ok(message)) = message.map(|bytes| serde_json::from_slice(&bytes)) else {
            return;
        };
        if sender.send(message).is_err() {
            return;
        }
    }
}
