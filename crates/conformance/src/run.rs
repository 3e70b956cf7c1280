//! Runs a script and returns its transcript.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::hook::{Hook, HookAddress};
use crate::host::{Host, HostError};
use crate::mask::Mask;
use crate::script::{Command, Script, parse_method};

/// Error of running a script.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A command is invalid.
    #[error("invalid command: {0}")]
    Command(String),
    /// The host does not support a command.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A request cannot be built.
    #[error("invalid request: {0}")]
    Request(http::Error),
    /// A request failed without a response.
    #[error("request failed: {0}")]
    Transport(kube::Error),
    /// A response was not as expected after the maximum number of attempts.
    #[error("unexpected response after {limit} attempts: {0}", limit = MAX_ATTEMPTS)]
    Timeout(String),
}

/// Maximum number of attempts of a repeated request.
const MAX_ATTEMPTS: usize = 300;

/// Creates a namespace, runs a script in it and returns the script with the actual responses.
pub async fn run<H: Host>(host: &H, namespace: &str, text: &str) -> Result<String, RunError> {
    let mut run = Run {
        host,
        client: host.client("admin"),
        mask: Mask {
            namespace: namespace.to_owned(),
            ..Mask::default()
        },
        variables: BTreeMap::from([("ns".to_owned(), namespace.to_owned())]),
        watches: BTreeMap::new(),
        hooks: BTreeMap::new(),
        headers: Vec::new(),
        last: Value::Null,
        out: String::new(),
    };
    run.prepare(namespace).await?;
    for command in Script::parse(text).0 {
        run.out.push_str(&command.line);
        run.out.push('\n');
        run.out.push_str(&command.body);
        run.command(&command).await?;
    }
    Ok(run.out)
}

struct Run<'a, H> {
    host: &'a H,
    client: Client,
    mask: Mask,
    variables: BTreeMap<String, String>,
    watches: BTreeMap<String, Watch>,
    hooks: BTreeMap<String, (Arc<Hook>, HookAddress)>,
    headers: Vec<(String, String)>,
    last: Value,
    out: String,
}

struct Watch {
    body: Pin<Box<Body>>,
    buffer: Vec<u8>,
}

/// A request that is repeated until its response is as expected.
struct RepeatedRequest<'a> {
    method: Method,
    path: &'a str,
    body: &'a str,
    /// The stored response.
    response: &'a str,
}

impl<H: Host> Run<'_, H> {
    async fn prepare(&mut self, namespace: &str) -> Result<(), RunError> {
        let object = json!({"metadata": {"name": namespace}}).to_string();
        self.send(Method::POST, "", "/api/v1/namespaces", object).await?;
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        self.wait_for_code(Method::GET, StatusCode::OK, &account, "")
            .await
            .map(drop)
    }

    async fn command(&mut self, command: &Command) -> Result<(), RunError> {
        let arguments: Vec<String> = command
            .arguments()
            .map(|argument| self.substitute(argument))
            .collect();
        let body = self.substitute(&command.body);
        let invalid = || RunError::Command(command.line.clone());
        match (command.word(), arguments.as_slice()) {
            ("#", _) => Ok(()),
            ("SHOW", shown) => {
                self.mask.shown = shown.to_vec();
                Ok(())
            }
            ("AS", [user]) => {
                self.client = self.host.client(user);
                Ok(())
            }
            ("HEADER", [name]) => {
                self.headers.retain(|(have, _)| have != name);
                Ok(())
            }
            ("HEADER", [name, value @ ..]) => {
                self.headers.push((name.clone(), value.join(" ")));
                Ok(())
            }
            ("POD_BEHAVIOR", [workload, script @ ..]) => {
                let namespace = self.mask.namespace.clone();
                self.host
                    .set_pod_behavior(&namespace, workload, &script.join(" "))
                    .map_err(RunError::Host)
            }
            ("SET", [name, pointer]) => {
                let value = self.last.pointer(pointer).cloned().unwrap_or_default();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                self.variables.insert(name.clone(), text);
                Ok(())
            }
            ("HOOK", [name]) => self.serve_hook(name, &body).await,
            ("PROBE", [name, path]) => self.probe_hook(name, path, &body).await,
            ("HOOK_CALLS", [name]) => self.show_hook_calls(name),
            ("WATCH", [name, path]) => self.start_watch(name, path).await,
            ("EVENTS", [name, count]) => {
                let count = count.parse().map_err(|_| invalid())?;
                self.write_events(name, count).await
            }
            ("UNTIL", [code, path]) => {
                let method = command.method().ok_or_else(invalid)?;
                let code: StatusCode = code.parse().map_err(|_| invalid())?;
                let response = self.wait_for_code(method, code, path, &body).await?;
                self.write_response(&response);
                Ok(())
            }
            ("AWAIT", [path, pointer, expected @ ..]) => {
                let method = command.method().ok_or_else(invalid)?;
                let repeated = RepeatedRequest {
                    method,
                    path,
                    body: &body,
                    response: &command.response,
                };
                let response = self
                    .wait_for_value(&repeated, pointer, &expected.join(" "))
                    .await?;
                self.write_response(&response);
                Ok(())
            }
            (word @ ("GET" | "POST" | "PUT" | "PATCH" | "DELETE"), [path]) => {
                let method = parse_method(word).ok_or_else(invalid)?;
                let is_post = method == Method::POST;
                let response = self.send(method, command.variant(), path, body).await?;
                self.wait_for_cache(path, is_post, &response).await?;
                self.write_response(&response);
                Ok(())
            }
            _ => Err(invalid()),
        }
    }

    async fn serve_hook(&mut self, name: &str, rule: &str) -> Result<(), RunError> {
        let rule: Value = serde_json::from_str(rule).map_err(|error| RunError::Command(error.to_string()))?;
        if let Some((hook, _)) = self.hooks.get(name) {
            hook.set_rule(rule);
            return Ok(());
        }
        let hook = Arc::new(Hook::new(name, rule));
        let address = self
            .host
            .serve_hook(Arc::clone(&hook))
            .await
            .map_err(RunError::Host)?;
        let authority = address.url.split('/').nth(2).unwrap_or("").to_owned();
        for (part, value) in [("url", &address.url), ("ca", &address.ca), ("host", &authority)] {
            let key = format!("hook.{name}.{part}");
            self.mask.known.push((value.clone(), format!("{{{key}}}")));
            self.variables.insert(key, value.clone());
        }
        self.hooks.insert(name.to_owned(), (hook, address));
        Ok(())
    }

    async fn probe_hook(&mut self, name: &str, path: &str, body: &str) -> Result<(), RunError> {
        let Some((hook, _)) = self.hooks.get(name) else {
            return Err(RunError::Command(name.to_owned()));
        };
        let hook = Arc::clone(hook);
        let last = self.last.clone();
        for _ in 0..MAX_ATTEMPTS {
            let dry = format!("{path}?dryRun=All");
            self.send(Method::POST, "", &dry, body.to_owned()).await?;
            if hook.was_called() {
                self.last = last;
                for (hook, _) in self.hooks.values() {
                    drop(hook.take_received());
                }
                return Ok(());
            }
            self.host.pause().await;
        }
        Err(RunError::Timeout(format!(
            "{path}: webhook {name} was not called"
        )))
    }

    fn show_hook_calls(&mut self, name: &str) -> Result<(), RunError> {
        let Some((hook, _)) = self.hooks.get(name) else {
            return Err(RunError::Command(name.to_owned()));
        };
        for review in hook.take_received() {
            self.mask.record_object(&review);
            self.write_line("called");
            for line in self.mask.format_object(&review) {
                self.write_line(&format!(" {line}"));
            }
        }
        Ok(())
    }

    fn substitute(&self, text: &str) -> String {
        self.variables
            .iter()
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
    }

    async fn send(
        &mut self,
        method: Method,
        variant: &str,
        path: &str,
        body: String,
    ) -> Result<ApiResponse, RunError> {
        let sent = serde_json::from_str(&body).unwrap_or_default();
        let response = self.request(method, variant, path, body).await?;
        let code = response.status();
        let warnings = response
            .headers()
            .get_all("warning")
            .iter()
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        let mut body = Box::pin(response.into_body());
        let mut bytes = Vec::new();
        while let Some(chunk) = next_chunk(&mut body).await? {
            bytes.extend_from_slice(&chunk);
        }
        let mut value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        sort_conditions(&mut value);
        for uid in self.hooks.values().flat_map(|(hook, _)| hook.uids()) {
            self.mask.record_object(&json!({"uid": uid}));
        }
        self.mask.record_object(&value);
        self.mask
            .record_generated_names(&sent, &String::from_utf8_lossy(&bytes));
        self.last = value.clone();
        Ok(ApiResponse {
            code,
            warnings,
            value,
        })
    }

    async fn request(
        &self,
        method: Method,
        variant: &str,
        path: &str,
        body: String,
    ) -> Result<Response<Body>, RunError> {
        let accept = match variant {
            "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
            "meta" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "metalist" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            _ => "application/json",
        };
        let sent = match variant {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept", accept)
            .header("user-agent", "conformance");
        let headers = self.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        let request = request
            .header("content-type", sent)
            .body(Body::from(body.into_bytes()))
            .map_err(RunError::Request)?;
        self.client.send(request).await.map_err(RunError::Transport)
    }

    /// Writes a line of a response.
    fn write_line(&mut self, text: &str) {
        self.out.push_str("< ");
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn write_response(&mut self, response: &ApiResponse) {
        let text = self.format_response(response);
        self.out.push_str(&text);
    }

    fn format_response(&self, response: &ApiResponse) -> String {
        let mut text = format!("< {}\n", response.code.as_str());
        for warning in &response.warnings {
            let _ = writeln!(text, "< warning: {}", self.mask.mask_text(warning));
        }
        for line in self.mask.format_object(&response.value) {
            let _ = writeln!(text, "<  {line}");
        }
        text
    }

    /// Waits until the server's cache contains a written object. A server passes the object from its cache to
    /// webhooks first, and calls them again if that object is outdated.
    async fn wait_for_cache(
        &self,
        path: &str,
        is_post: bool,
        response: &ApiResponse,
    ) -> Result<(), RunError> {
        let written = resource_version(&response.value);
        if written == 0 || self.hooks.is_empty() || !self.host.is_concurrent() || path.contains("dryRun") {
            return Ok(());
        }
        let mut object = path.split('?').next().unwrap_or_default().to_owned();
        if is_post {
            object.push('/');
            object.push_str(object_name(&response.value));
        }
        let client = self.host.client("admin");
        for _ in 0..MAX_ATTEMPTS {
            let request = Request::get(format!("{object}?resourceVersion=0"));
            let request = request.body(Vec::new()).map_err(RunError::Request)?;
            match client.request::<Value>(request).await {
                Ok(cached) if resource_version(&cached) >= written => return Ok(()),
                // The write removed the last finalizer of a deleted object.
                Err(kube::Error::Api(status)) if status.code == 404 && !is_post => return Ok(()),
                _ => {}
            }
            self.host.pause().await;
        }
        Err(RunError::Timeout(format!("{object}: the cache is outdated")))
    }

    async fn wait_for_code(
        &mut self,
        method: Method,
        code: StatusCode,
        path: &str,
        body: &str,
    ) -> Result<ApiResponse, RunError> {
        for _ in 0..MAX_ATTEMPTS {
            let response = self.send(method.clone(), "", path, body.to_owned()).await?;
            if response.code == code {
                return Ok(response);
            }
            self.host.pause().await;
        }
        Err(RunError::Timeout(format!(
            "{path}: expected code {}",
            code.as_u16()
        )))
    }

    /// Repeats a request until the value at `pointer` equals `expected`, and on a concurrent server until the
    /// response equals the stored one, too. A missing value counts as `null`.
    async fn wait_for_value(
        &mut self,
        repeated: &RepeatedRequest<'_>,
        pointer: &str,
        expected: &str,
    ) -> Result<ApiResponse, RunError> {
        let mut last = String::new();
        let mut found = None;
        let path = repeated.path;
        for _ in 0..MAX_ATTEMPTS {
            let (method, body) = (repeated.method.clone(), repeated.body.to_owned());
            let response = self.send(method, "", path, body).await?;
            let part = response.value.pointer(pointer).cloned().unwrap_or_default();
            last = part.as_str().map_or_else(|| part.to_string(), str::to_owned);
            if last == expected {
                if !self.host.is_concurrent() || self.format_response(&response) == repeated.response {
                    return Ok(response);
                }
                found = Some(response);
            }
            self.host.pause().await;
        }
        found.ok_or_else(|| {
            RunError::Timeout(format!("{path}: expected {expected} at {pointer}, found {last}"))
        })
    }

    async fn start_watch(&mut self, name: &str, path: &str) -> Result<(), RunError> {
        let response = self.request(Method::GET, "", path, String::new()).await?;
        let watch = Watch {
            body: Box::pin(response.into_body()),
            buffer: Vec::new(),
        };
        self.watches.insert(name.to_owned(), watch);
        Ok(())
    }

    async fn write_events(&mut self, name: &str, count: usize) -> Result<(), RunError> {
        for _ in 0..count {
            let Some(watch) = self.watches.get_mut(name) else {
                return Err(RunError::Command(name.to_owned()));
            };
            let Some(line) = watch.next_line().await? else {
                self.write_line("end");
                return Ok(());
            };
            let event: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
            let mut object = event.get("object").cloned().unwrap_or_default();
            sort_conditions(&mut object);
            self.mask.record_object(&object);
            self.last = object.clone();
            self.write_line(event.get("type").and_then(Value::as_str).unwrap_or("?"));
            for line in self.mask.format_object(&object) {
                self.write_line(&format!(" {line}"));
            }
        }
        Ok(())
    }
}

/// Returns the name of an object, or an empty text.
fn object_name(object: &Value) -> &str {
    let name = object.pointer("/metadata/name");
    name.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the resource version of an object, or 0.
fn resource_version(object: &Value) -> u64 {
    let version = object.pointer("/metadata/resourceVersion");
    let number = version
        .and_then(Value::as_str)
        .and_then(|version| version.parse().ok());
    number.unwrap_or_default()
}

/// Sorts the conditions of a Deployment by type. The real controller appends a condition whenever it changes,
/// so that the order depends on the changes that it observes at once.
fn sort_conditions(object: &mut Value) {
    if object.get("kind").and_then(Value::as_str) != Some("Deployment") {
        return;
    }
    let conditions = object
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    if let Some(conditions) = conditions {
        conditions.sort_by_key(|condition| {
            let kind = condition.get("type").and_then(Value::as_str);
            kind.unwrap_or_default().to_owned()
        });
    }
}

struct ApiResponse {
    code: StatusCode,
    warnings: Vec<String>,
    value: Value,
}

impl Watch {
    async fn next_line(&mut self) -> Result<Option<String>, RunError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            match next_chunk(&mut self.body).await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

async fn next_chunk(body: &mut Pin<Box<Body>>) -> Result<Option<Vec<u8>>, RunError> {
    loop {
        match std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(error)) => return Err(RunError::Transport(error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data.to_vec()));
                }
            }
        }
    }
}
