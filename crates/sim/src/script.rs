//! How pods behave: scripts as data, the rules that choose one for a pod, and the life that follows from it. Knows no store and no
//! simulator, so that a hollow kubelet beside a real API server can play the same scripts.

use std::time::Duration;

use crate::selector::LabelSelector;

mod addresses;
mod life;
mod nodes;
mod text;
mod view;

pub use addresses::Addresses;
pub use life::{CompletedRun, ContainerLifecycle, ContainerPhase, RestartPolicy};
pub use nodes::{Nodes, node, tolerates};
pub use view::{PodStatusWriter, mark_unschedulable};

/// What becomes of a pod's containers once it has a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// From the node to running containers.
    pub start: Duration,
    /// From running to ready; never when `None`.
    pub ready: Option<Duration>,
    /// From ready to not ready again, for good.
    pub falter: Option<Duration>,
    /// How a run ends, if by itself.
    pub end: Option<End>,
    /// The image cannot be pulled.
    pub no_image: bool,
    /// From the request to stop to the end, within the grace period.
    pub stop: Duration,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// How long a run lasts.
    pub after: Duration,
    /// What it ends with; zero is success.
    pub exit_code: i32,
}

impl Default for Script {
    /// Runs at once, is ready after a second, and stops within one.
    fn default() -> Self {
        Self::ready_after(Duration::from_secs(1))
    }
}

impl Script {
    /// Ready so long after its start.
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

    /// Runs, but is never ready.
    #[must_use]
    pub fn never_ready() -> Self {
        Self {
            ready: None,
            ..Self::default()
        }
    }

    /// Takes so long until its containers run; ready at once then.
    #[must_use]
    pub fn slow_start(delay: Duration) -> Self {
        Self {
            start: delay,
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Ends with an error so long after each start, and is never ready.
    #[must_use]
    pub fn crash_loop(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 1 }),
            ..Self::never_ready()
        }
    }

    /// Ready at once; ends with an error so long after each start.
    #[must_use]
    pub fn fails_after(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 1 }),
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Ends well so long after its start, as the pods of a Job do.
    #[must_use]
    pub fn completes_after(after: Duration) -> Self {
        Self {
            end: Some(End { after, exit_code: 0 }),
            ..Self::ready_after(Duration::ZERO)
        }
    }

    /// Ready as default, but not any more so long after that.
    #[must_use]
    pub fn falters_after(after: Duration) -> Self {
        Self {
            falter: Some(after),
            ..Self::default()
        }
    }

    /// Its image cannot be pulled.
    #[must_use]
    pub fn image_pull_error() -> Self {
        Self {
            no_image: true,
            ..Self::default()
        }
    }

    /// The same, but so long to stop.
    #[must_use]
    pub fn stopping_after(mut self, delay: Duration) -> Self {
        self.stop = delay;
        self
    }
}

/// Which pods a script is for.
#[derive(Clone, Debug)]
pub enum PodMatcher {
    /// All of them.
    All,
    /// Those of a namespace whose labels are meant.
    Labels {
        /// The namespace; empty for all.
        namespace: String,
        /// The labels.
        selector: LabelSelector,
    },
    /// Those of a workload: a Deployment, stateful set, daemon set or Job of this name.
    Workload {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
}

/// The workload behind a pod's controller: of a replica set's name, what stands before the hash.
#[must_use]
pub fn workload_name<'a>(owner: &'a str, hash: &str) -> &'a str {
    let bare = owner.strip_suffix(hash).and_then(|name| name.strip_suffix('-'));
    bare.filter(|_| !hash.is_empty()).unwrap_or(owner)
}

/// A pod as far as the choice of its script goes.
#[derive(Clone, Copy)]
pub struct PodIdentity<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The name of its controller; of a replica set without the hash.
    pub workload: &'a str,
    /// Its labels.
    pub label: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl std::fmt::Debug for PodIdentity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.workload)
    }
}

/// The scripts in force: the last rule that means a pod decides, once, when the pod gets its node.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    rules: Vec<(PodMatcher, Script)>,
    default: Script,
}

impl Scripts {
    /// One more rule, before all others.
    pub fn add(&mut self, pods: PodMatcher, script: Script) {
        self.rules.push((pods, script));
    }

    /// A rule for the pods of a workload.
    pub fn add_workload(&mut self, namespace: &str, name: &str, script: Script) {
        let pods = PodMatcher::Workload {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.add(pods, script);
    }

    /// What pods do that no rule means.
    pub fn set_default(&mut self, script: Script) {
        self.default = script;
    }

    /// Forgets all rules.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// The script of a pod.
    #[must_use]
    pub fn choose(&self, pod: &PodIdentity<'_>) -> &Script {
        let found = self.rules.iter().rev().find(|(pods, _)| pods.matches(pod));
        found.map_or(&self.default, |(_, script)| script)
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
