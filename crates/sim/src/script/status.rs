//! Writes a pod's status (phase, conditions, container states) as a kubelet does.

use serde_json::{Value, json};

use super::{CompletedRun, ContainerLifecycle, ContainerPhase};
use crate::clock::Instant;
use crate::tree;

/// State of a pod from which its status is written.
#[derive(Clone, Copy, Debug)]
pub struct PodStatusWriter<'a> {
    /// Lifecycle of the containers.
    pub lifecycle: &'a ContainerLifecycle,
    /// Time at which the pod was bound to a node.
    pub bound: Instant,
    /// IP of the pod.
    pub ip: &'a str,
    /// IP of the node.
    pub node_ip: &'a str,
}

/// Sets the condition `PodScheduled` to false with the reason `Unschedulable` and the message `text`.
pub fn mark_unschedulable(pod: &mut Value, now: Instant, text: &str) {
    let condition = PodCondition {
        reason: "Unschedulable",
        message: text,
        ..PodCondition::new("PodScheduled", false)
    };
    condition.set(pod, now);
}

pub(crate) struct PodCondition<'a> {
    /// Type of the condition.
    pub(crate) kind: &'a str,
    /// Whether the status is `True`.
    pub(crate) status: bool,
    /// Reason; empty if there is none.
    pub(crate) reason: &'a str,
    /// Message; empty if there is none.
    pub(crate) message: &'a str,
}

impl<'a> PodCondition<'a> {
    /// Creates a condition without reason and message.
    pub(crate) fn new(kind: &'a str, status: bool) -> Self {
        Self {
            kind,
            status,
            reason: "",
            message: "",
        }
    }

    /// Sets the condition in the status of a pod. The transition time changes only if the status differs.
    pub(crate) fn set(&self, pod: &mut Value, now: Instant) {
        let kind = self.kind;
        let status = if self.status { "True" } else { "False" };
        let mut conditions = tree::list(pod, &["status", "conditions"]).to_vec();
        let at = conditions
            .iter()
            .position(|one| tree::text(one, &["type"]) == kind);
        let old = at.and_then(|at| conditions.get(at));
        let since = old
            .filter(|old| tree::text(old, &["status"]) == status)
            .map_or_else(
                || now.rfc3339(),
                |old| tree::text(old, &["lastTransitionTime"]).to_owned(),
            );
        let mut new =
            json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since});
        if let Some(generation) = tree::int(pod, &["metadata", "generation"]) {
            tree::set(&mut new, &["observedGeneration"], generation);
        }
        for (key, text) in [("reason", self.reason), ("message", self.message)] {
            if !text.is_empty() {
                tree::set(&mut new, &[key], text);
            }
        }
        match at.and_then(|at| conditions.get_mut(at)) {
            Some(slot) => *slot = new,
            None => conditions.push(new),
        }
        tree::set(pod, &["status", "conditions"], conditions);
    }
}

impl PodStatusWriter<'_> {
    /// Writes the status of the pod for the current phase.
    pub fn write(&self, pod: &mut Value, now: Instant) {
        tree::set(pod, &["status", "phase"], self.phase());
        tree::set(pod, &["status", "hostIP"], self.node_ip);
        tree::set(pod, &["status", "hostIPs"], json!([{"ip": self.node_ip}]));
        tree::set(pod, &["status", "startTime"], self.bound.rfc3339());
        if self.has_run() {
            tree::set(pod, &["status", "podIP"], self.ip);
            tree::set(pod, &["status", "podIPs"], json!([{"ip": self.ip}]));
        }
        if let Some(generation) = tree::int(pod, &["metadata", "generation"]) {
            tree::set(pod, &["status", "observedGeneration"], generation);
        }
        self.set_conditions(pod, now);
        for (spec, field) in [
            ("containers", "containerStatuses"),
            ("initContainers", "initContainerStatuses"),
        ] {
            let shown: Vec<Value> = tree::list(pod, &["spec", spec])
                .iter()
                .map(|container| match spec {
                    "containers" => self.container_status(container),
                    _ => self.init_container_status(container),
                })
                .collect();
            if !shown.is_empty() {
                tree::set(pod, &["status", field], shown);
            }
        }
        self.write_ephemeral(pod, now);
    }

    /// Writes the status of ephemeral containers, which run from the time at which the kubelet first observes
    /// them.
    fn write_ephemeral(&self, pod: &mut Value, now: Instant) {
        let known = tree::list(pod, &["status", "ephemeralContainerStatuses"]);
        let shown: Vec<Value> = tree::list(pod, &["spec", "ephemeralContainers"])
            .iter()
            .map(|container| {
                let name = tree::text(container, &["name"]);
                let old = known.iter().find(|one| tree::text(one, &["name"]) == name);
                old.cloned()
                    .unwrap_or_else(|| self.ephemeral_container_status(container, now))
            })
            .collect();
        if !shown.is_empty() && self.has_run() {
            tree::set(pod, &["status", "ephemeralContainerStatuses"], shown);
        }
    }

    fn ephemeral_container_status(&self, container: &Value, now: Instant) -> Value {
        let name = tree::text(container, &["name"]);
        json!({
            "name": name, "image": tree::text(container, &["image"]), "imageID": "", "ready": false,
            "restartCount": 0, "lastState": {}, "containerID": format!("sim://{}/{name}/0", self.ip),
            "state": {"running": {"startedAt": now.rfc3339()}},
        })
    }

    fn phase(&self) -> &'static str {
        match self.lifecycle.phase() {
            ContainerPhase::Creating | ContainerPhase::NoImage { .. } => "Pending",
            ContainerPhase::Running { .. } | ContainerPhase::BackOff => "Running",
            ContainerPhase::Ended(CompletedRun { exit_code: 0, .. }) => "Succeeded",
            ContainerPhase::Ended(_) => "Failed",
        }
    }

    fn has_run(&self) -> bool {
        !matches!(self.lifecycle.phase(), ContainerPhase::Creating)
    }

    fn set_conditions(&self, pod: &mut Value, now: Instant) {
        let ready = self.lifecycle.phase() == ContainerPhase::Running { ready: true };
        let ended = matches!(
            self.lifecycle.phase(),
            ContainerPhase::Ended(CompletedRun { exit_code: 0, .. })
        );
        let (reason, text) = if ready {
            ("", String::new())
        } else if ended {
            ("PodCompleted", String::new())
        } else if matches!(self.lifecycle.phase(), ContainerPhase::Ended(_)) {
            ("PodFailed", String::new())
        } else {
            let names: Vec<&str> = tree::list(pod, &["spec", "containers"])
                .iter()
                .map(|one| tree::text(one, &["name"]))
                .collect();
            let text = format!("containers with unready status: [{}]", names.join(" "));
            ("ContainersNotReady", text)
        };
        let sandbox = self.has_run() && !matches!(self.lifecycle.phase(), ContainerPhase::Ended(_));
        let readiness = |kind| PodCondition {
            reason,
            message: &text,
            ..PodCondition::new(kind, ready)
        };
        let initialized = PodCondition {
            reason: if ended { "PodCompleted" } else { "" },
            ..PodCondition::new("Initialized", true)
        };
        let conditions = [
            PodCondition::new("PodReadyToStartContainers", sandbox),
            initialized,
            readiness("Ready"),
            readiness("ContainersReady"),
            PodCondition::new("PodScheduled", true),
        ];
        for condition in &conditions {
            condition.set(pod, now);
        }
        // Binding wrote this condition first. A kubelet moves it to the end.
        if let Some(conditions) = tree::list_mut(pod, &["status", "conditions"]) {
            conditions.sort_by_key(|one| tree::text(one, &["type"]) == "PodScheduled");
        }
    }

    fn container_status(&self, container: &Value) -> Value {
        let life = self.lifecycle;
        let name = tree::text(container, &["name"]);
        let ready = life.phase() == ContainerPhase::Running { ready: true };
        let started = matches!(life.phase(), ContainerPhase::Running { .. });
        let mut shown = json!({
            "name": name, "image": tree::text(container, &["image"]), "imageID": "", "ready": ready,
            "started": started, "restartCount": life.reported_restarts(), "state": self.container_state(container), "lastState": {},
        });
        if self.has_run() && !matches!(life.phase(), ContainerPhase::NoImage { .. }) {
            let id = format!("sim://{}/{name}/{}", self.ip, life.restarts);
            tree::set(&mut shown, &["containerID"], id);
        }
        if let Some(last) = life.last {
            tree::set(&mut shown, &["lastState"], terminated_state(last));
        }
        shown
    }

    fn container_state(&self, container: &Value) -> Value {
        let image = tree::text(container, &["image"]);
        match self.lifecycle.phase() {
            ContainerPhase::Creating => waiting_state("ContainerCreating", ""),
            ContainerPhase::NoImage { backing_off: false } => waiting_state(
                "ErrImagePull",
                &format!("failed to pull and unpack image {image:?}: not found"),
            ),
            ContainerPhase::NoImage { backing_off: true } => {
                waiting_state("ImagePullBackOff", &format!("Back-off pulling image {image:?}"))
            }
            ContainerPhase::Running { .. } => {
                json!({"running": {"startedAt": self.lifecycle.since().rfc3339()}})
            }
            ContainerPhase::BackOff => waiting_state(
                "CrashLoopBackOff",
                &format!(
                    "back-off restarting failed container={}",
                    tree::text(container, &["name"])
                ),
            ),
            ContainerPhase::Ended(stopped) => terminated_state(stopped),
        }
    }

    /// Returns the status of an init container. A regular init container completes before the other
    /// containers start; a sidecar runs together with them.
    fn init_container_status(&self, container: &Value) -> Value {
        let mut shown = self.container_status(container);
        if tree::text(container, &["restartPolicy"]) == "Always" {
            return shown;
        }
        if self.has_run() {
            let done = CompletedRun {
                started: self.bound,
                finished: self.bound,
                exit_code: 0,
            };
            tree::set(&mut shown, &["state"], terminated_state(done));
            tree::set(&mut shown, &["ready"], true);
            tree::set(&mut shown, &["started"], false);
        }
        tree::set(&mut shown, &["lastState"], json!({}));
        tree::set(&mut shown, &["restartCount"], 0);
        shown
    }
}

fn waiting_state(reason: &str, message: &str) -> Value {
    let mut state = json!({"waiting": {"reason": reason}});
    if !message.is_empty() {
        tree::set(&mut state, &["waiting", "message"], message);
    }
    state
}

fn terminated_state(stopped: CompletedRun) -> Value {
    let reason = if stopped.exit_code == 0 {
        "Completed"
    } else {
        "Error"
    };
    json!({"terminated": {
        "exitCode": stopped.exit_code, "reason": reason,
        "startedAt": stopped.started.rfc3339(), "finishedAt": stopped.finished.rfc3339(),
    }})
}
