//! Everything a cluster is: the objects, the served resources, time, chance and the trace. Takes requests only through `api`
//! and `write`.

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

/// How a cluster starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Everything random follows from it.
    pub seed: u64,
    /// What the clock shows at first.
    pub start: Instant,
    /// Events remembered per table before the oldest are forgotten (and old watches end in 410).
    pub history: usize,
    /// Whether a line per call is kept.
    pub trace: bool,
    /// Whether the cluster's controllers run by themselves after each write; otherwise only when told to.
    pub automatic: bool,
    /// Whether controllers and kubelets also write Event objects for people.
    pub events: bool,
    /// The Kubernetes version it claims to be.
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

/// A cluster without the lock around it.
#[derive(Debug)]
pub struct State {
    /// How it started.
    pub options: Options,
    /// Its time.
    pub clock: Clock,
    /// Its chance.
    pub random: Random,
    /// What was called, in order.
    pub trace: Trace,
    /// The types of builtin kinds.
    pub schema: &'static Schema,
    /// What it serves.
    pub resources: Resources,
    /// The objects.
    pub store: Store,
    /// Addresses and ports handed to Services.
    pub ips: ServiceIps,
    /// Who may do what, and who is recognised.
    pub access: Access,
    /// Whom to ask before a write is stored.
    pub webhooks: Hooks,
    /// What goes wrong, and when.
    pub faults: Faults,
    /// How pods behave, for the kubelet if there is one.
    pub scripts: Scripts,
    /// Admission policies, compiled.
    pub policies: crate::admission::policy::Policies,
    /// Owners that a loaded snapshot names but lacks; what they own is no garbage.
    pub absent_owners: BTreeSet<Box<str>>,
    /// What was told about objects lately.
    pub events: Recorder,
}

impl State {
    /// A cluster with nothing in it, not even namespaces.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let schema = Schema::builtin();
        Self {
            clock: Clock::starting_at(options.start),
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
            options,
        }
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Lets time pass.
    pub fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        self.store.notify_all();
    }
}
