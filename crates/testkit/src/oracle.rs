//! The Go oracle: a process that evaluates requests with Go's own libraries. Requests are sent in batches,
//! so that the pipes never block.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::peer::{PeerError, peer};

/// The oracle process. It is stopped when dropped.
pub struct Oracle {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct OracleRequest {
    /// Operation: `template`, `toYaml`, `unmarshal`, `strvals`, …
    pub op: &'static str,
    /// Text of a template, of YAML or of `--set`.
    pub text: Vec<u8>,
    /// Data as JSON text.
    pub json: Vec<u8>,
    /// Functions for `template`: `none`, `sprig` or `helm`.
    pub funcs: &'static str,
    /// Mode of `strvals`: `set`, `string`, `json`, `literal` or `file`.
    pub mode: &'static str,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleResponse {
    /// Output. If the request failed, the output up to the error.
    pub out: Vec<u8>,
    /// Error text; empty if the request succeeded.
    pub err: String,
}

/// Errors of the oracle.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The oracle is not available.
    #[error("the oracle is not available")]
    Peer(#[from] PeerError),
    /// Writing to or reading from the process failed.
    #[error("cannot communicate with the oracle")]
    Pipe(#[from] io::Error),
    /// The response cannot be parsed.
    #[error("the oracle's response cannot be parsed: {0}")]
    InvalidResponse(String),
}

/// Maximum number of requests in flight: small enough for the pipe buffers, large enough that neither
/// process waits.
const BATCH: usize = 64;

impl Oracle {
    /// Starts the oracle. Builds it first if necessary.
    pub fn start() -> Result<Self, OracleError> {
        let mut child = Command::new(peer("oracle")?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// Sends one request and returns its response.
    pub fn query(&mut self, request: &OracleRequest) -> Result<OracleResponse, OracleError> {
        self.write(std::slice::from_ref(request))?;
        self.read()
    }

    /// Sends requests and returns their responses in the same order.
    pub fn query_all(&mut self, requests: &[OracleRequest]) -> Result<Vec<OracleResponse>, OracleError> {
        let mut responses = Vec::with_capacity(requests.len());
        for batch in requests.chunks(BATCH) {
            self.write(batch)?;
            for _ in batch {
                responses.push(self.read()?);
            }
        }
        Ok(responses)
    }

    /// Sends a request that [`OracleRequest`] cannot represent, such as `bench`, and returns its response.
    pub fn query_raw(&mut self, request: &serde_json::Value) -> Result<OracleResponse, OracleError> {
        self.send(format!("{request}\n").as_bytes())?;
        self.read()
    }

    fn write(&mut self, batch: &[OracleRequest]) -> Result<(), OracleError> {
        let mut text = String::new();
        for request in batch {
            let line = serde_json::json!({
                "op": request.op, "funcs": request.funcs, "mode": request.mode,
                "text": STANDARD.encode(&request.text), "json": STANDARD.encode(&request.json),
            });
            text.push_str(&line.to_string());
            text.push('\n');
        }
        self.send(text.as_bytes())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), OracleError> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("closed"))?;
        input.write_all(bytes)?;
        Ok(input.flush()?)
    }

    fn read(&mut self) -> Result<OracleResponse, OracleError> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let wire: Wire =
            serde_json::from_str(&line).map_err(|_| OracleError::InvalidResponse(line.clone()))?;
        let out = STANDARD
            .decode(wire.out.unwrap_or_default())
            .map_err(|_| OracleError::InvalidResponse(line))?;
        Ok(OracleResponse { out, err: wire.err })
    }
}

#[derive(Deserialize)]
struct Wire {
    out: Option<String>,
    #[serde(default)]
    err: String,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_in_order_and_contain_go_error_texts() {
        let mut oracle = Oracle::start().unwrap();
        let template = |text: &str| OracleRequest {
            op: "template",
            text: text.into(),
            json: br#"{"a":1}"#.to_vec(),
            ..OracleRequest::default()
        };
        let responses = oracle
            .query_all(&[template("{{.a}}"), template("{{.a.b}}"), template("{{")])
            .unwrap();
        assert_eq!(responses[0].out, b"1");
        assert_eq!(
            responses[1].err,
            "template: t:1:4: executing \"t\" at <.a.b>: can't evaluate field b in type interface {}"
        );
        assert_eq!(responses[2].err, "template: t:1: unclosed action");
    }

    #[test]
    fn thousands_of_long_requests_do_not_block_the_pipes() {
        let request = OracleRequest {
            op: "toJson",
            json: format!("\"{}\"", "x".repeat(2_000)).into_bytes(),
            ..OracleRequest::default()
        };
        let responses = Oracle::start().unwrap().query_all(&vec![request; 2_000]).unwrap();
        assert!(responses.iter().all(|response| response.out.len() == 2_002));
    }
}
