//! Observations during an upgrade: proxies per istiod, injection of new pods, plaintext requests, and notes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kube::Client;
use mainstay_testkit::http;
use mainstay_testkit::mesh::{APP_PORT, Mesh};
use serde_json::{Value, json};

use crate::fixtures::APPS;

pub struct PodObserver {
    begin: Instant,
    /// Notes with times since the start.
    pub notes: Vec<(Duration, String)>,
    /// Number of proxies per revision.
    pub proxies: Vec<(Duration, BTreeMap<String, usize>)>,
    /// Whether to check the injection of new pods.
    pub checks_injection: bool,
    pub injection_checks: usize,
    /// Whether to send plaintext requests.
    pub checks_plaintext: bool,
    pub rejected: usize,
    pub accepted: Vec<String>,
    /// Pods that were rejected, not injected, or injected by a revision without an istiod.
    pub injection_failures: Vec<String>,
}

/// One observation.
pub struct Sample {
    at: Duration,
    proxies: BTreeMap<String, usize>,
    injection_checks: Vec<Result<(), String>>,
    plaintext: Option<Result<(), String>>,
}

impl PodObserver {
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            notes: Vec::new(),
            proxies: Vec::new(),
            checks_injection: false,
            injection_checks: 0,
            checks_plaintext: false,
            rejected: 0,
            accepted: Vec::new(),
            injection_failures: Vec::new(),
        }
    }

    /// Discards all observations.
    pub fn restart(&mut self) {
        *self = Self {
            checks_injection: self.checks_injection,
            checks_plaintext: self.checks_plaintext,
            ..Self::new()
        };
    }

    pub fn note(&mut self, what: &str) {
        println!("[{:6.2} s] {what}", self.begin.elapsed().as_secs_f64());
        self.notes.push((self.begin.elapsed(), what.to_owned()));
    }

    /// Returns an observation of the current state.
    pub async fn sample(&self, mesh: &Mesh, client: &Client) -> Sample {
        let proxies = mesh.proxies("istio-system").await.unwrap_or_default();
        let live: BTreeSet<&String> = proxies.keys().collect();
        let mut injection_checks = Vec::new();
        if self.checks_injection {
            for app in &APPS {
                let outcome = injecting_revision(client, app.namespace, app.pod_label).await;
                injection_checks.push(outcome.and_then(|revision| {
                    let known = live.contains(&revision);
                    known.then_some(()).ok_or(format!(
                        "{} resolves to {revision}, which has no istiod",
                        app.namespace
                    ))
                }));
            }
        }
        let plaintext = if self.checks_plaintext {
            send_plaintext(client, self.proxies.len()).await
        } else {
            None
        };
        Sample {
            at: self.begin.elapsed(),
            proxies: proxies
                .into_iter()
                .map(|(revision, all)| (revision, all.len()))
                .collect(),
            injection_checks,
            plaintext,
        }
    }

    pub fn record(&mut self, sample: Sample) {
        self.injection_checks += sample.injection_checks.len();
        let at = sample.at.as_secs_f64();
        match sample.plaintext {
            Some(Ok(())) => self.rejected += 1,
            Some(Err(response)) => self.accepted.push(format!("[{at:.2} s] {response}")),
            None => {}
        }
        let injection_failures = sample.injection_checks.into_iter().filter_map(Result::err);
        self.injection_failures
            .extend(injection_failures.map(|failure| format!("[{at:.2} s] {failure}")));
        if self
            .proxies
            .last()
            .is_none_or(|(_, last)| *last != sample.proxies)
        {
            println!("[{at:6.2} s] proxies {:?}", sample.proxies);
        }
        self.proxies.push((sample.at, sample.proxies));
    }

    pub fn description(&self) -> String {
        let notes = self
            .notes
            .iter()
            .map(|(at, what)| format!("[{:.2} s] {what}\n", at.as_secs_f64()));
        let injection_failures = self
            .injection_failures
            .iter()
            .map(|failure| format!("{failure}\n"));
        notes.chain(injection_failures).collect()
    }
}

/// Returns the revision that injects a new pod, which is created as a dry run.
async fn injecting_revision(
    client: &Client,
    namespace: &str,
    label: Option<(&str, &str)>,
) -> Result<String, String> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "try-", "labels": {}},
        "spec": {"containers": [{"name": "app", "image": "none:1"}]},
    });
    if let Some((key, _)) = label {
        // The label comes from the current template of the workload.
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        let request = ::http::Request::get(path).body(Vec::new()).unwrap();
        let list: Value = client.request(request).await.map_err(|error| error.to_string())?;
        pod["metadata"]["labels"][key] =
            list["items"][0]["spec"]["template"]["metadata"]["labels"][key].clone();
    }
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let request = ::http::Request::post(path)
        .header("content-type", "application/json")
        .body(pod.to_string().into_bytes())
        .unwrap();
    let created: Value = client
        .request(request)
        .await
        .map_err(|error| format!("{namespace}: {error}"))?;
    let containers = ["initContainers", "containers"]
        .map(|kind| created["spec"][kind].as_array().cloned().unwrap_or_default());
    if !containers
        .concat()
        .iter()
        .any(|container| container["name"] == "istio-proxy")
    {
        return Err(format!("{namespace}: a pod was created without a proxy"));
    }
    let revision = created["metadata"]["annotations"]["istio.io/rev"].as_str();
    revision
        .map(str::to_owned)
        .ok_or(format!("{namespace}: a pod has no revision annotation"))
}

/// Sends a plaintext request to a different server each time, which must reject it. Returns `None` if no
/// server was reached, and an error with the response if the request was accepted.
async fn send_plaintext(client: &Client, time: usize) -> Option<Result<(), String>> {
    let app = &APPS[time % APPS.len()];
    let request = ::http::Request::get(format!("/api/v1/namespaces/{}/pods", app.namespace));
    let list: Value = client.request(request.body(Vec::new()).unwrap()).await.ok()?;
    let pods = list["items"].as_array()?;
    let ip = pods.get(time / APPS.len() % pods.len().max(1))?["status"]["podIP"]
        .as_str()?
        .to_owned();
    let address: SocketAddr = format!("{ip}:{APP_PORT}").parse().ok()?;
    let response = tokio::task::spawn_blocking(move || http::get(address, "/", Duration::from_millis(500)));
    match response.await.unwrap() {
        Ok(reply) => Some(Err(format!("{} responds without mTLS: {reply:?}", app.name))),
        // An unreachable server does not count as a rejection.
        Err(error) if error.kind() == ErrorKind::TimedOut || error.kind() == ErrorKind::HostUnreachable => {
            None
        }
        Err(_) => Some(Ok(())),
    }
}
