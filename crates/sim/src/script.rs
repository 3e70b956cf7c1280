//! Pod behavior: scripts as data, rules that select a script for a pod, and the resulting container
//! lifecycle. This module does not depend on the store or the simulator, so that the simulated kubelet for a
//! real API server can run the same scripts.

use std::time::Duration;

use crate::selector::LabelSelector;

mod addresses;
mod lifecycle;
mod nodes;
mod status;
mod text;

pub use addresses::Addresses;
pub use lifecycle::{CompletedRun, ContainerLifecycle, ContainerPhase, RestartPolicy};
pub(crate) use nodes::tolerates_taint;
pub use nodes::{Nodes, node_object, tolerates};
pub(crate) use status::PodCondition;
pub use status::{PodStatusWriter, mark_unschedulable};
pub use text::ScriptError;

/// Behavior of the containers of a pod after the pod is bound to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Time from binding until the containers run.
    pub start: Duration,
    /// Time from running until ready; `None` if the containers never become ready.
    pub ready: Option<Duration>,
    /// Time from ready until permanently unready; `None` if the containers remain ready.
    pub falter: Option<Duration>,
    /// End of each run; `None` if the containers run until they are stopped.
    pub end: Option<End>,
    /// Whether the image cannot be pulled.
    pub no_image: bool,
    /// Time from the stop request until termination, limited by the grace period.
    pub stop: Duration,
}

/// End of a container run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Duration of the run.
    pub after: Duration,
    /// The exit code; zero is success.
    pub exit_code: i32,
}

impl Default for Script {
    /// Returns a script that runs immediately, becomes ready after one second and takes one second to stop.
    fn default() -> Self {
        Self::ready_after(Duration::from_secs(1))
    }
}

impl Script {
    /// Returns a script that becomes ready `delay` after its start.
    #[must_use]
    pub fn ready_after(delay: Duration) -> Self {
        Self {
            start: Duration::ZERO,
            ready: Some(delay),
            falter: None,
            end: None,
            no_image: false,
            stop: Duration::from_secs(1),
        }
    }

    /// Returns a script that runs but never becomes ready.
    #[must_use]
    pub fn never_ready() -> Self {
        Self {
            ready: None,
            ..Self::default()
        }
    }

    /// Returns a script that starts after `delay` and is ready immediately.
    #[must_use]
    pub fn slow_start(delay: Duration) -> Self {
        Self {
            start: delay,
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Returns a script that exits with an error `after` each start and never becomes ready.
    #[must_use]
    pub fn crash_loop(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 1 }),
            ..Self::never_ready()
        }
    }

    /// Returns a script that is ready immediately and exits with an error `after` each start.
    #[must_use]
    pub fn fails_after(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 1 }),
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Returns a script that completes successfully `after` its start, as the pods of a Job do.
    #[must_use]
    pub fn completes_after(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 0 }),
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Returns a script that becomes ready as by default and permanently unready `after` that.
    #[must_use]
    pub fn falters_after(after: Duration) -> Self {
        Self {
            falter: Some(after),
            ..Self::default()
        }
    }

    /// Returns a script with an image that cannot be pulled.
    #[must_use]
    pub fn image_pull_error() -> Self {
        Self {
            no_image: true,
            ..Self::default()
        }
    }

    /// Sets the time that the containers take to stop.
    #[must_use]
    pub fn stopping_after(mut self, delay: Duration) -> Self {
        self.stop = delay;
        self
    }
}

/// Selects the pods that run a script.
#[derive(Clone, Debug)]
pub enum PodMatcher {
    /// All pods.
    All,
    /// Pods in a namespace with matching labels.
    Labels {
        /// The namespace; empty for all namespaces.
        namespace: String,
        /// The label selector.
        selector: LabelSelector,
    },
    /// Pods of the Deployment, `StatefulSet`, `DaemonSet` or Job with this name.
    Workload {
        /// The namespace of the workload.
        namespace: String,
        /// The name of the workload.
        name: String,
    },
}

/// Returns the name of the workload that owns a pod: for a `ReplicaSet`, its name without the hash.
#[must_use]
pub fn workload_name<'a>(owner: &'a str, hash: &str) -> &'a str {
    let bare = owner.strip_suffix(hash).and_then(|name| name.strip_suffix('-'));
    bare.filter(|_| !hash.is_empty()).unwrap_or(owner)
}

/// Properties of a pod that determine its script.
#[derive(Clone, Copy)]
pub struct PodIdentity<'a> {
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// Name of the workload that controls the pod: for a `ReplicaSet`, its name without the hash.
    pub workload: &'a str,
    /// Restart policy of the pod.
    pub restart: RestartPolicy,
    /// Function that returns the value of a label.
    pub label: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl std::fmt::Debug for PodIdentity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.workload)
    }
}

/// Rules that select the script of a pod. The last matching rule applies. Rules are evaluated once per pod,
/// when it is bound.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    rules: Vec<(PodMatcher, Script)>,
    default: Script,
    /// Script of pods that no rule matches and with a restart policy other than `Always`.
    completion: Option<Script>,
}

impl Scripts {
    /// Adds a rule with the highest precedence.
    pub fn add(&mut self, pods: PodMatcher, script: Script) {
        self.rules.push((pods, script));
    }

    /// Adds a rule for the pods of a workload.
    pub fn add_workload(&mut self, namespace: &str, name: &str, script: Script) {
        let pods = PodMatcher::Workload {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.add(pods, script);
    }

    /// Sets the script of pods that no rule matches.
    pub fn set_default(&mut self, script: Script) {
        self.default = script;
    }

    /// Sets the script of pods that no rule matches and that have a restart policy other than `Always`, such
    /// as the pods of Jobs.
    pub fn set_completion(&mut self, script: Script) {
        self.completion = Some(script);
    }

    /// Removes all rules.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Returns the script for a pod.
    #[must_use]
    pub fn choose(&self, pod: &PodIdentity<'_>) -> &Script {
        let found = self.rules.iter().rev().find(|(pods, _)| pods.matches(pod));
        let default = match &self.completion {
            Some(script) if pod.restart != RestartPolicy::Always => script,
            _ => &self.default,
        };
        found.map_or(default, |(_, script)| script)
    }
}

impl PodMatcher {
    fn matches(&self, pod: &PodIdentity<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Labels { namespace, selector } => {
                (namespace.is_empty() || namespace == pod.namespace) && selector.matches(pod.label)
            }
            Self::Workload { namespace, name } => namespace == pod.namespace && name == pod.workload,
        }
    }
}
