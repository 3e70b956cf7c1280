//! What is seen while a town is upgraded: which proxies hang on which istiod, whether a pod created now would be injected, what happened when.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kube::Client;
use mainstay_testkit::mesh::{APP_PORT, Mesh, http};
use serde_json::{Value, json};

use crate::made::SHOPS;

pub struct Witness {
    begin: Instant,
    /// What happened, and when.
    pub notes: Vec<(Duration, String)>,
    /// Proxies per revision.
    pub proxies: Vec<(Duration, BTreeMap<String, usize>)>,
    /// Whether pods are tried out, too.
    pub tries_pods: bool,
    pub tries: usize,
    /// Whether servers are asked without mTLS, too: how many refused, and who answered.
    pub tries_plaintext: bool,
    pub refused: usize,
    pub answered: Vec<String>,
    /// A pod that was refused, or came out without a proxy, or with that of a revision nobody answers for.
    pub misses: Vec<String>,
}

/// One look.
pub struct Look {
    at: Duration,
    proxies: BTreeMap<String, usize>,
    tries: Vec<Result<(), String>>,
    plaintext: Option<Result<(), String>>,
}

impl Witness {
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            notes: Vec::new(),
            proxies: Vec::new(),
            tries_pods: false,
            tries: 0,
            tries_plaintext: false,
            refused: 0,
            answered: Vec::new(),
            misses: Vec::new(),
        }
    }

    /// From now on.
    pub fn restart(&mut self) {
        *self = Self {
            tries_pods: self.tries_pods,
            tries_plaintext: self.tries_plaintext,
            ..Self::new()
        };
    }

    pub fn note(&mut self, what: &str) {
        println!("[{:6.2} s] {what}", self.begin.elapsed().as_secs_f64());
        self.notes.push((self.begin.elapsed(), what.to_owned()));
    }

    /// Asks everybody.
    pub async fn look(&self, mesh: &Mesh, client: &Client) -> Look {
        let proxies = mesh.proxies("istio-system").await.unwrap_or_default();
        let live: BTreeSet<&String> = proxies.keys().collect();
        let mut tries = Vec::new();
        if self.tries_pods {
            for shop in &SHOPS {
                let outcome = try_pod(client, shop.namespace, shop.pod_label).await;
                tries.push(outcome.and_then(|revision| {
                    let known = live.contains(&revision);
                    known.then_some(()).ok_or(format!(
                        "{} resolves to {revision}, which has no istiod",
                        shop.namespace
                    ))
                }));
            }
        }
        let plaintext = if self.tries_plaintext {
            try_plaintext(client, self.proxies.len()).await
        } else {
            None
        };
        Look {
            at: self.begin.elapsed(),
            proxies: proxies
                .into_iter()
                .map(|(revision, all)| (revision, all.len()))
                .collect(),
            tries,
            plaintext,
        }
    }

    pub fn keep(&mut self, look: Look) {
        self.tries += look.tries.len();
        let at = look.at.as_secs_f64();
        match look.plaintext {
            Some(Ok(())) => self.refused += 1,
            Some(Err(answer)) => self.answered.push(format!("[{at:.2} s] {answer}")),
            None => {}
        }
        let misses = look.tries.into_iter().filter_map(Result::err);
        self.misses
            .extend(misses.map(|miss| format!("[{at:.2} s] {miss}")));
        if self.proxies.last().is_none_or(|(_, last)| *last != look.proxies) {
            println!("[{at:6.2} s] proxies {:?}", look.proxies);
        }
        self.proxies.push((look.at, look.proxies));
    }

    pub fn story(&self) -> String {
        let notes = self
            .notes
            .iter()
            .map(|(at, what)| format!("[{:.2} s] {what}\n", at.as_secs_f64()));
        let misses = self.misses.iter().map(|miss| format!("{miss}\n"));
        notes.chain(misses).collect()
    }
}

/// Who would inject a pod that is created now; nothing is stored.
async fn try_pod(client: &Client, namespace: &str, label: Option<(&str, &str)>) -> Result<String, String> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "try-", "labels": {}},
        "spec": {"containers": [{"name": "app", "image": "nobody:1"}]},
    });
    if let Some((key, _)) = label {
        // Its owner writes whatever the workload's template says now.
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
    let made: Value = client
        .request(request)
        .await
        .map_err(|error| format!("{namespace}: {error}"))?;
    let containers = ["initContainers", "containers"]
        .map(|kind| made["spec"][kind].as_array().cloned().unwrap_or_default());
    if !containers
        .concat()
        .iter()
        .any(|container| container["name"] == "istio-proxy")
    {
        return Err(format!("{namespace}: a pod came out without a proxy"));
    }
    let revision = made["metadata"]["annotations"]["istio.io/rev"].as_str();
    revision
        .map(str::to_owned)
        .ok_or(format!("{namespace}: a pod does not say who injected it"))
}

/// Asks one of the servers without mTLS, another one every time: it must not answer.
async fn try_plaintext(client: &Client, time: usize) -> Option<Result<(), String>> {
    let shop = &SHOPS[time % SHOPS.len()];
    let request = ::http::Request::get(format!("/api/v1/namespaces/{}/pods", shop.namespace));
    let list: Value = client.request(request.body(Vec::new()).unwrap()).await.ok()?;
    let pods = list["items"].as_array()?;
    let ip = pods.get(time / SHOPS.len() % pods.len().max(1))?["status"]["podIP"]
        .as_str()?
        .to_owned();
    let address: SocketAddr = format!("{ip}:{APP_PORT}").parse().ok()?;
    let asked = tokio::task::spawn_blocking(move || http::get(address, "/", Duration::from_millis(500)));
    match asked.await.unwrap() {
        Ok(reply) => Some(Err(format!("{} answers without mTLS: {reply:?}", shop.name))),
        // Nobody there is no refusal.
        Err(error) if error.kind() == ErrorKind::TimedOut || error.kind() == ErrorKind::HostUnreachable => {
            None
        }
        Err(_) => Some(Ok(())),
    }
}
