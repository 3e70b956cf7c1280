//! Runs a pod as processes: starts containers in order, reports readiness, stops containers in order.
//!
//! ```text
//! network, redirect ─▶ sidecars, each ready ─▶ containers ─▶ probes
//! stop ─▶ hooks ─▶ containers end ─▶ sidecars end
//! ```
//!
//! Unlike a kubelet, it restarts the whole pod when a container exits, and probes more often than the pod
//! specifies.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join_all, select_all};
use mainstay_sim::tree;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use super::container::{Process, all_succeed};
use super::namespace::NetworkNamespace;
use super::pod::{Container, Hook, Program, RunnablePod};
use super::registry::RunningPod;
use super::rules;
use super::runtime::MeshRuntime;
use crate::kubelet::{KILLED, KubeletChannel, NOT_STARTED, PROBE_INTERVAL, Probe, STARTUP_PROBE_INTERVAL};

/// A pod that is being started.
pub(super) struct StartingPod {
    pub(super) runtime: MeshRuntime,
    pub(super) pod: Value,
    pub(super) runnable: RunnablePod,
    pub(super) ip: Ipv4Addr,
}

/// Number of consecutive failed probes after which a ready pod becomes unready.
const FAILURE_THRESHOLD: u32 = 3;

/// Runs a pod until it has stopped, and returns the exit code.
pub(super) async fn run_pod(starting: StartingPod, mut channel: KubeletChannel) -> i32 {
    let (runtime, name) = (starting.runtime.clone(), full_name(&starting.pod));
    let log = runtime.log(&starting.pod, "life");
    let begun = tokio::select! {
        begun = starting.start() => begun,
        _ = channel.stopped() => Err(io::Error::other("stopped before it had started")),
    };
    let code = match begun {
        Ok(running) => running.run(channel).await,
        Err(error) => {
            let _ = std::fs::write(log, error.to_string());
            NOT_STARTED
        }
    };
    runtime.registry.remove(&name);
    code
}

fn full_name(pod: &Value) -> String {
    let text = |key| tree::text(pod, &["metadata", key]);
    format!("{}/{}", text("namespace"), text("name"))
}

impl StartingPod {
    async fn start(self) -> io::Result<Running> {
        let (ip, gateway, redirected) = (self.ip, self.runtime.node, self.runnable.redirected);
        let home = self
            .runtime
            .create_pod_directory(&self.pod, self.runnable.proxy())
            .await?;
        let namespace = tokio::task::spawn_blocking(move || {
            let namespace = NetworkNamespace::open(ip, gateway)?;
            if redirected {
                namespace.inside(|| rules::redirect().commit())?;
            }
            Ok::<_, io::Error>(namespace)
        });
        let running_pod = RunningPod::new(namespace.await.map_err(io::Error::other)??);
        self.runtime.registry.add(&full_name(&self.pod), &running_pod);
        let context = PodContext {
            runtime: self.runtime,
            pod: self.pod,
            home,
            running_pod,
        };
        let mut sidecars = Vec::new();
        for sidecar in self.runnable.sidecars {
            let process = context.start(sidecar).await?;
            let probe: Vec<Probe> = process.probe(ip).into_iter().collect();
            sidecars.push(process);
            while !all_succeed(&probe).await {
                sleep(STARTUP_PROBE_INTERVAL).await;
            }
        }
        let mut containers = Vec::new();
        for container in self.runnable.containers {
            containers.push(context.start(container).await?);
        }
        Ok(Running {
            context,
            ip,
            sidecars,
            containers,
        })
    }
}

impl RunnablePod {
    /// Returns the version of the pod's proxy, or `None` if it has no proxy.
    fn proxy(&self) -> Option<&str> {
        let mut all = self.sidecars.iter().chain(&self.containers);
        all.find_map(|container| match &container.program {
            Program::Agent(version) => Some(version.as_str()),
            _ => None,
        })
    }
}

/// Network and files of a running pod.
struct PodContext {
    runtime: MeshRuntime,
    pod: Value,
    home: PathBuf,
    running_pod: Arc<RunningPod>,
}

impl PodContext {
    async fn start(&self, container: Container) -> io::Result<Process> {
        let command = self.runtime.command(&self.pod, &container, &self.home).await?;
        let process = Process::new(container, self.spawn(command)?);
        self.running_pod
            .add_process(&process.container.name, process.group());
        Ok(process)
    }

    /// Spawns a command inside the pod's network.
    fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let runtime = tokio::runtime::Handle::current();
        self.running_pod.namespace.inside(move || {
            let _entered = runtime.enter();
            command.spawn()
        })
    }

    /// Runs the preStop hook of a container.
    async fn run_pre_stop(&self, container: &Container) {
        match &container.pre_stop {
            None => {}
            Some(Hook::Sleep(time)) => sleep(*time).await,
            Some(Hook::Run(arguments)) => {
                let mut hook = container.clone();
                hook.name = format!("{}-before-stop", hook.name);
                hook.arguments.clone_from(arguments);
                if let Ok(mut process) = self.start(hook).await {
                    process.wait().await;
                }
            }
        }
    }
}

/// A running pod.
struct Running {
    context: PodContext,
    ip: Ipv4Addr,
    sidecars: Vec<Process>,
    containers: Vec<Process>,
}

impl Running {
    async fn run(mut self, mut channel: KubeletChannel) -> i32 {
        let (mut ready, mut failures) = (false, 0);
        let all = self.sidecars.iter().chain(&self.containers);
        let probes: Vec<Probe> = all.filter_map(|process| process.probe(self.ip)).collect();
        let running_pod = Arc::clone(&self.context.running_pod);
        loop {
            let probe_all = async {
                sleep(if ready {
                    PROBE_INTERVAL
                } else {
                    STARTUP_PROBE_INTERVAL
                })
                .await;
                all_succeed(&probes).await
            };
            tokio::select! {
                grace = channel.stopped() => return self.stop(grace).await,
                code = self.end() => if !running_pod.is_unsupervised() {
                    return code;
                },
                found = probe_all => {
                    failures = if found { 0 } else { failures + 1 };
                    let is_ready = found || (ready && failures < FAILURE_THRESHOLD);
                    if is_ready != ready && !running_pod.is_unsupervised() {
                        ready = is_ready;
                        channel.set_ready(ready);
                    }
                }
            }
        }
    }

    /// Waits for the first process to exit and returns its exit code.
    async fn end(&mut self) -> i32 {
        let all = self.sidecars.iter_mut().chain(&mut self.containers);
        let waits: Vec<_> = all
            .filter(|process| !process.has_ended)
            .map(|process| Box::pin(process.wait()))
            .collect();
        if waits.is_empty() {
            return std::future::pending().await;
        }
        select_all(waits).await.0
    }

    /// Runs the preStop hooks, then stops the containers, then the sidecars.
    async fn stop(mut self, grace: Duration) -> i32 {
        let (context, deadline) = (&self.context, Instant::now() + grace);
        let hooks = join_all(
            self.sidecars
                .iter()
                .map(|one| context.run_pre_stop(&one.container)),
        );
        let ends = join_all(self.containers.iter_mut().map(|process| async move {
            let _ = timeout_at(deadline, context.run_pre_stop(&process.container)).await;
            process.stop(deadline).await
        }));
        let (_, codes) = futures::join!(timeout_at(deadline, hooks), ends);
        for sidecar in self.sidecars.iter_mut().rev() {
            sidecar.stop(deadline).await;
        }
        codes.into_iter().max().unwrap_or(KILLED)
    }
}
