//! The complete state of a cluster: objects, served resources, clock, random numbers and trace. Requests
//! change it through `api` and `write` only.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::admission::Hooks;
use crate::alloc::ServiceIps;
use crate::auth::Access;
use crate::clock::{Clock, Instant};
use crate::events::Recorder;
use crate::fault::Faults;
use crate::random::Random;
use crate::resource::Resources;
use crate::schema::Schema;
use crate::script::Scripts;
use crate::store::Store;
use crate::trace::Trace;

/// Initial settings of a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random values.
    pub seed: u64,
    /// Initial time of the clock.
    pub start: Instant,
    /// Number of events that each table retains. Watches from an older version fail with 410.
    pub history: usize,
    /// Whether the trace contains a line per request.
    pub trace: bool,
    /// Whether controllers run automatically after each write; otherwise
    /// [`Cluster::settle`](crate::Cluster::settle) runs them.
    pub automatic: bool,
    /// Whether controllers and kubelets write Event objects.
    pub events: bool,
    /// Kubernetes version that `/version` reports.
    pub git_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            start: Clock::default().now(),
            history: 10_000,
            trace: true,
            automatic: true,
            events: false,
            git_version: "v1.36.4".into(),
        }
    }
}

/// The state of a cluster, without the lock around it.
#[derive(Debug)]
pub struct State {
    /// Initial settings.
    pub options: Options,
    /// Virtual clock.
    pub clock: Clock,
    /// Random number generator.
    pub random: Random,
    /// Trace of requests and controllers.
    pub trace: Trace,
    /// Types of builtin kinds.
    pub schema: &'static Schema,
    /// Served resources.
    pub resources: Resources,
    /// Stored objects and their history.
    pub store: Store,
    /// Cluster IPs and node ports allocated to Services.
    pub ips: ServiceIps,
    /// Authentication and authorization.
    pub access: Access,
    /// Admission webhooks.
    pub webhooks: Hooks,
    /// Fault rules.
    pub faults: Faults,
    /// Scripts of pods, which the simulated kubelet runs.
    pub scripts: Scripts,
    /// Compiled admission policies.
    pub policies: crate::admission::policy::Policies,
    /// Uids of owners that a loaded snapshot refers to but does not contain. Their dependents are not garbage
    /// collected.
    pub absent_owners: BTreeSet<Box<str>>,
    /// Recorder of Event objects.
    pub events: Recorder,
    /// Version of the store at which controllers pause, so that requests do not wait for them.
    pub(crate) pause_at: u64,
}

impl State {
    /// Creates a state without any objects, including namespaces.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let schema = Schema::builtin();
        Self {
            clock: Clock::new(options.start),
            random: Random::new(options.seed),
            trace: Trace::new(options.trace),
            schema,
            resources: Resources::builtin(schema),
            store: Store::new(options.history),
            ips: ServiceIps::default(),
            access: Access::from_seed(options.seed),
            webhooks: Hooks::default(),
            faults: Faults::default(),
            scripts: Scripts::default(),
            policies: crate::admission::policy::Policies::default(),
            absent_owners: BTreeSet::new(),
            events: Recorder::default(),
            pause_at: u64::MAX,
            options,
        }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns whether controllers must pause.
    pub(crate) fn is_paused(&self) -> bool {
        self.store.version() >= self.pause_at
    }

    /// Advances the clock and notifies all watches.
    pub fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        self.store.notify_all();
    }
}
