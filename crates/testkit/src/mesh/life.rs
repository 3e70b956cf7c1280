//! Lifecycle of a pod as processes: starts containers in order, reports readiness, stops them in order.
//!
//! ```text
//! network, redirect ─▶ sidecars, each ready ─▶ containers ─▶ probes … told to stop ─▶ hooks ─▶ containers end ─▶ sidecars end
//! ```
//!
//! Unlike a kubelet it restarts the whole pod when a container ends, and probes more often than the pod
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
use super::pod::{Container, Hook, Household, Program};
use super::registry::Resident;
use super::room::Room;
use super::rules;
use super::works::Works;
use crate::kubelet::{CALM, EAGER, KILLED, Line, NOT_STARTED, Probe};

/// A pod that is being started.
pub(super) struct Newborn {
    pub(super) works: Works,
    pub(super) pod: Value,
    pub(super) household: Household,
    pub(super) ip: Ipv4Addr,
}

/// Number of consecutive failed probes that make a ready pod unready.
const TOLERANCE: u32 = 3;

/// Runs the pod to its end; returns the exit code.
pub(super) async fn live(newborn: Newborn, mut line: Line) -> i32 {
    let (works, name) = (newborn.works.clone(), full_name(&newborn.pod));
    let log = works.log(&newborn.pod, "life");
    let begun = tokio::select! {
        begun = newborn.begin() => begun,
        _ = line.stopped() => Err(io::Error::other("told to stop before it had begun")),
    };
    let code = match begun {
        Ok(running) => running.last(line).await,
        Err(error) => {
            let _ = std::fs::write(log, error.to_string());
            NOT_STARTED
        }
    };
    works.registry.remove(&name);
    code
}

fn full_name(pod: &Value) -> String {
    let text = |key| tree::text(pod, &["metadata", key]);
    format!("{}/{}", text("namespace"), text("name"))
}

impl Newborn {
    async fn begin(self) -> io::Result<Running> {
        let (ip, gateway, redirected) = (self.ip, self.works.node, self.household.redirected);
        let home = self.works.furnish(&self.pod, self.household.proxy()).await?;
        let room = tokio::task::spawn_blocking(move || {
            let room = Room::open(ip, gateway)?;
            if redirected {
                room.inside(|| rules::redirect().commit())?;
            }
            Ok::<_, io::Error>(room)
        });
        let resident = Resident::new(room.await.map_err(io::Error::other)??);
        self.works.registry.add(&full_name(&self.pod), &resident);
        let place = Place {
            works: self.works,
            pod: self.pod,
            home,
            resident,
        };
        let mut sidecars = Vec::new();
        for sidecar in self.household.sidecars {
            let process = place.start(sidecar).await?;
            let probe: Vec<Probe> = process.probe(ip).into_iter().collect();
            sidecars.push(process);
            while !all_succeed(&probe).await {
                sleep(EAGER).await;
            }
        }
        let mut containers = Vec::new();
        for container in self.household.containers {
            containers.push(place.start(container).await?);
        }
        Ok(Running {
            place,
            ip,
            sidecars,
            containers,
        })
    }
}

impl Household {
    /// Version of its proxy.
    fn proxy(&self) -> Option<&str> {
        let mut all = self.sidecars.iter().chain(&self.containers);
        all.find_map(|container| match &container.program {
            Program::Agent(version) => Some(version.as_str()),
            _ => None,
        })
    }
}

/// Network and files of a running pod.
struct Place {
    works: Works,
    pod: Value,
    home: PathBuf,
    resident: Arc<Resident>,
}

impl Place {
    async fn start(&self, container: Container) -> io::Result<Process> {
        let command = self.works.command(&self.pod, &container, &self.home).await?;
        let process = Process::new(container, self.spawn(command)?);
        self.resident.note(&process.container.name, process.group());
        Ok(process)
    }

    /// Runs a command inside the pod's network.
    fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let runtime = tokio::runtime::Handle::current();
        self.resident.room.inside(move || {
            let _entered = runtime.enter();
            command.spawn()
        })
    }

    /// Runs the preStop hook of a container.
    async fn prepare_end(&self, container: &Container) {
        match &container.before_stop {
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
    place: Place,
    ip: Ipv4Addr,
    sidecars: Vec<Process>,
    containers: Vec<Process>,
}

impl Running {
    async fn last(mut self, mut line: Line) -> i32 {
        let (mut ready, mut failures) = (false, 0);
        let all = self.sidecars.iter().chain(&self.containers);
        let probes: Vec<Probe> = all.filter_map(|process| process.probe(self.ip)).collect();
        let resident = Arc::clone(&self.place.resident);
        loop {
            let look = async {
                sleep(if ready { CALM } else { EAGER }).await;
                all_succeed(&probes).await
            };
            tokio::select! {
                grace = line.stopped() => return self.stop(grace).await,
                code = self.end() => if !resident.is_neglected() {
                    return code;
                },
                found = look => {
                    failures = if found { 0 } else { failures + 1 };
                    let shown = found || (ready && failures < TOLERANCE);
                    if shown != ready && !resident.is_neglected() {
                        ready = shown;
                        line.tell_ready(ready);
                    }
                }
            }
        }
    }

    /// Waits for the first process to end.
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

    /// Stops the pod: hooks, then containers, then sidecars.
    async fn stop(mut self, grace: Duration) -> i32 {
        let (place, deadline) = (&self.place, Instant::now() + grace);
        let hooks = join_all(self.sidecars.iter().map(|one| place.prepare_end(&one.container)));
        let ends = join_all(self.containers.iter_mut().map(|process| async move {
            let _ = timeout_at(deadline, place.prepare_end(&process.container)).await;
            process.stop(deadline).await
        }));
        let (_, codes) = futures::join!(timeout_at(deadline, hooks), ends);
        for sidecar in self.sidecars.iter_mut().rev() {
            sidecar.stop(deadline).await;
        }
        codes.into_iter().max().unwrap_or(KILLED)
    }
}
