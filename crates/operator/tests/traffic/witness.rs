//! What is seen while a town is upgraded: which proxies hang on which istiod, whether a pod created now would be injected, what happened when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::Client;
use mainstay_testkit::mesh::Mesh;
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
    /// A pod that was refused, or came out without a proxy, or with that of a revision nobody answers for.
    pub misses: Vec<String>,
}

/// One look.
pub struct Look {
    at: Duration,
    proxies: BTreeMap<String, usize>,
    tries: Vec<Result<(), String>>,
}

impl Witness {
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            notes: Vec::new(),
            proxies: Vec::new(),
            tries_pods: false,
            tries: 0,
            misses: Vec::new(),
        }
    }

    /// From now on.
    pub fn restart(&mut self) {
        *self = Self {
            tries_pods: self.tries_pods,
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
                let tried = try_pod(client, shop.namespace, shop.pod_label).await;
                tries.push(tried.and_then(|revision| {
                    let known = live.contains(&revision);
                    known.then_some(()).ok_or(format!(
                        "{} resolves to {revision}, which has no istiod",
                        shop.namespace
                    ))
                }));
            }
        }
        Look {
            at: self.begin.elapsed(),
            proxies: proxies
                .into_iter()
                .map(|(revision, all)| (revision, all.len()))
                .collect(),
            tries,
        }
    }

    pub fn keep(&mut self, look: Look) {
        self.tries += look.tries.len();
        let at = look.at.as_secs_f64();
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
