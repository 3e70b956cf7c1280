//! Random event sequences on random meshes: every plan satisfies all invariants, and a settled mesh needs no
//! further plans.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "../../mesh/tests/support/mod.rs"]
mod support;

use mainstay_api::{CniSpec, IstioSpec, RevisionSpec, TagSpec, ZTunnelSpec};
use mainstay_check::check;
use mainstay_mesh::snapshot::{Failure, ReleaseFact, Source, SourceState};
use mainstay_mesh::workload::{WorkloadKey, WorkloadKind};
use mainstay_mesh::{Action, ErrorClass, Observation, Requeue, Subject};
use mainstay_testkit::{Random, case_count};
use serde_json::{Value, json};
use support::{World, revision_spec};

const VERSIONS: [&str; 6] = [
    "v1.27.9",
    "v1.28.2",
    "v1.29.1",
    "v1.29-latest",
    "v1.23.4",
    "v1.30.3",
];
const ISTIOS: [&str; 3] = ["default", "mesh", "prod"];
const NAMES: [&str; 8] = [
    "default",
    "mesh",
    "prod",
    "canary",
    "default-v1-28-2",
    "default-v1-29-1",
    "mesh-v1-28-2",
    "mesh-v1-29-1",
];
const LABELS: [&str; 6] = [
    "",
    "istio-injection=enabled",
    "istio.io/rev=NAME",
    "istio-injection=enabled istio.io/rev=NAME",
    "sidecar.istio.io/inject=true",
    "sidecar.istio.io/inject=false istio.io/rev=NAME",
];

struct Simulation {
    world: World,
    random: Random,
    plans: usize,
    failed: bool,
}

/// Whether an action writes nothing on a settled cluster: an installation finds no difference, an
/// uninstallation finds no objects, and a probe only reads.
fn is_read_only(action: &Action) -> bool {
    matches!(
        action,
        Action::Install(_) | Action::Uninstall(_) | Action::Probe(_)
    )
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut world = World::default();
        world.observe(Observation::Source(Source::Workloads, SourceState::Ready));
        Self {
            world,
            random: Random::new(seed),
            plans: 0,
            failed: false,
        }
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(NAMES.len())]
    }

    fn labels(&mut self) -> String {
        let name = self.name();
        self.random.pick(&LABELS).replace("NAME", name)
    }

    fn istio_spec(&mut self) -> Value {
        let mut spec = json!({"version": *self.random.pick(&VERSIONS), "namespace": "istio-system"});
        if self.random.chance(2, 3) {
            spec["updateStrategy"] = json!({"type": *self.random.pick(&["InPlace", "RevisionBased"])});
            if self.random.chance(1, 2) {
                let tags: Vec<&str> = (0..self.random.below(3)).map(|_| self.name()).collect();
                spec["updateStrategy"]["revisionTags"] = json!(tags);
            }
            if self.random.chance(1, 2) {
                spec["updateStrategy"]["workloadMigration"] = self.migration();
            }
            if self.random.chance(1, 3) {
                let seconds = [-5, 0, 10, 100][self.random.below(4)];
                spec["updateStrategy"]["inactiveRevisionDeletionGracePeriodSeconds"] = json!(seconds);
            }
        }
        match self.random.below(8) {
            0 => spec["values"] = json!({"pilot": {"env": {"EXTERNAL_ISTIOD": "true"}}}),
            1 => spec["values"] = json!({"pilot": {"cni": {"enabled": true}}}),
            2 => spec["values"] = json!({"sidecarInjectorWebhook": {"enableNamespacesByDefault": true}}),
            3 => spec["profile"] = "remote".into(),
            4 => spec["profile"] = "external".into(),
            _ => {}
        }
        spec
    }

    /// Applies a random event to a mesh that migrates its workloads.
    fn migration_event(&mut self) {
        let space = format!("app{}", self.random.below(4));
        match self.random.below(18) {
            0..=2 => {
                let mut spec =
                    json!({"version": VERSIONS[self.random.below(3)], "namespace": "istio-system"});
                let tags: &[&str] = if self.random.chance(1, 2) {
                    &["default", "prod"]
                } else {
                    &[]
                };
                spec["updateStrategy"] = json!({"type": "RevisionBased", "revisionTags": tags,
                    "workloadMigration": self.migration()});
                let name = *self.random.pick(&["mesh", "mesh", "mesh", "default"]);
                self.world.istio(name, spec);
            }
            3..=4 => {
                let labels = self.revision_label();
                self.world.namespace(&space, &labels);
            }
            5 if self.random.chance(1, 4) => self.fail_randomly(),
            6 => {
                let (name, kind) = (
                    self.existing_name(),
                    *self.random.pick(&["Istio", "IstioRevision"]),
                );
                let target = if kind == "Istio" { "mesh".to_owned() } else { name };
                self.world.tag("stable", kind, &target);
            }
            7..=12 => self.workload_event(),
            13..=14 => {
                let now = self.world.snapshot.now;
                let index = self.world.snapshot.migration_index("mesh");
                let moving = index.into_iter().flat_map(|index| index.moving(now));
                let moving: Vec<WorkloadKey> = moving.map(|(_, key)| key.clone()).collect();
                for key in &moving {
                    self.world.complete_rollout(key);
                }
                self.settle();
            }
            _ => {
                let seconds = [1, 10, 31, 1000][self.random.below(4)];
                self.world.advance(seconds);
            }
        }
    }

    /// Returns the name of a random revision or tag that exists, or `nowhere`.
    fn existing_name(&mut self) -> String {
        let revisions = self.world.revisions().into_iter().map(str::to_owned);
        let tags = self.world.tags().into_iter().map(str::to_owned);
        let names: Vec<String> = revisions.chain(tags).chain(["nowhere".to_owned()]).collect();
        self.random.pick(&names).clone()
    }

    fn revision_label(&mut self) -> String {
        let name = self.existing_name();
        self.random.pick(&LABELS[..3]).replace("NAME", &name)
    }

    fn migration(&mut self) -> Value {
        let bad = self.random.chance(1, 12);
        let size = if bad { 0 } else { 1 + self.random.below(4) };
        let delay = if bad {
            "?"
        } else {
            *self.random.pick(&["0s", "0s", "10s", "30s"])
        };
        let kinds: &[&str] = if self.random.chance(1, 3) {
            &["Deployment", "StatefulSet"]
        } else {
            &[]
        };
        let mut wanted = json!({
            "strategy": *if bad { "" } else { "Batched" },
            "failurePolicy": *self.random.pick(&["ContinueOnError", "FailFast"]),
            "paused": self.random.chance(1, 12),
            "kinds": kinds,
            "batched": {"batchSize": size, "delayBetweenBatches": delay, "readinessTimeout": "20s"},
        });
        if self.random.chance(1, 12) {
            wanted["batched"]["maxVersion"] = (*self.random.pick(&["1.28.999", "1.29.1", "x"])).into();
        }
        wanted
    }

    /// Applies a random event to a workload.
    fn workload_event(&mut self) {
        let namespace = format!("app{}", self.random.below(4));
        let kind = *self.random.pick(&[
            WorkloadKind::Deployment,
            WorkloadKind::Deployment,
            WorkloadKind::StatefulSet,
        ]);
        let key = WorkloadKey::new(namespace, kind, format!("w{}", self.random.below(4)));
        if !self.world.workloads.contains_key(&key) || self.random.chance(1, 6) {
            let labels = self.revision_label();
            let note = *self.random.pick(&[
                "",
                "",
                "",
                "sailoperator.io/skip-migration=true",
                "sailoperator.io/migration-batch=-1",
            ]);
            self.world.workload(key, &labels, note);
            return;
        }
        match self.random.below(8) {
            0 => self.world.delete_workload(&key),
            1 => self.world.stall_rollout(&key),
            2 => self.world.complete_rollout_uninjected(&key),
            3 => {
                let paused = self.random.chance(1, 2);
                self.world
                    .change_workload(&key, |object| object["spec"]["paused"] = paused.into());
            }
            4 => {
                let replicas = self.random.below(3);
                self.world
                    .change_workload(&key, |object| object["spec"]["replicas"] = replicas.into());
            }
            _ => self.world.complete_rollout(&key),
        }
    }

    /// Applies a random event to the cluster.
    fn cluster_event(&mut self) {
        let space = format!("app{}", self.random.below(4));
        let pod = format!("p{}", self.random.below(4));
        match self.random.below(26) {
            0..=3 => {
                let spec = self.istio_spec();
                let name = *self.random.pick(&ISTIOS);
                self.world.istio(name, spec);
            }
            4 => {
                let name = *self.random.pick(&ISTIOS);
                self.world.delete::<IstioSpec>(name);
            }
            5 => {
                let name = self.name();
                self.world.revision(name, revision_spec(name));
            }
            6 => {
                let name = self.name();
                self.world.delete::<RevisionSpec>(name);
            }
            7 => {
                let (name, target) = (self.name(), self.name());
                let kind = *self.random.pick(&["Istio", "IstioRevision", ""]);
                self.world.tag(name, kind, target);
            }
            8 => {
                let name = self.name();
                self.world.delete::<TagSpec>(name);
            }
            9..=11 => {
                let labels = self.labels();
                self.world.namespace(&space, &labels);
            }
            12..=13 => {
                let (labels, name) = (self.labels(), self.name());
                let annotations = if self.random.chance(1, 2) {
                    format!("istio.io/rev={name}")
                } else {
                    String::new()
                };
                self.world.pod(&space, &pod, &labels, &annotations);
            }
            14 => {
                self.world.pod_gone(&space, &pod);
            }
            15 => {
                let revision = self.name();
                let name = mainstay_api::names::istiod(if revision == "default" { "" } else { revision });
                let ready = i32::from(self.random.chance(1, 2));
                if self.world.snapshot.deployment("istio-system", &name).is_some() {
                    self.world.deployment("istio-system", &name, 1, ready);
                }
                self.world.ready = self.random.chance(2, 3);
            }
            16 => self.component_event(),
            17 => self.fail_randomly(),
            18..=23 => self.workload_event(),
            _ => {
                let seconds = [1, 10, 31, 1000][self.random.below(4)];
                self.world.advance(seconds);
            }
        }
    }

    fn component_event(&mut self) {
        let spec = json!({"version": *self.random.pick(&VERSIONS), "namespace": *self.random.pick(&["istio-system", "ztunnel"])});
        match self.random.below(4) {
            0 => drop(self.world.cni(spec)),
            1 => drop(self.world.ztunnel(spec)),
            2 => self.world.delete::<CniSpec>("default"),
            _ => self.world.delete::<ZTunnelSpec>("default"),
        }
    }

    /// Makes a source fail or recover, a release drift or a step fail.
    fn fail_randomly(&mut self) {
        let source = *self.random.pick(&Source::ALL);
        match self.random.below(3) {
            0 => {
                let recovers = self.world.snapshot.readable(source).is_err();
                let state = if recovers {
                    SourceState::Ready
                } else {
                    SourceState::Failing("simulated error".into())
                };
                self.world.observe(Observation::Source(source, state));
            }
            1 => {
                let owners = self
                    .world
                    .snapshot
                    .revisions()
                    .iter()
                    .map(|one| one.metadata.uid.clone());
                let keys: Vec<_> = owners
                    .flat_map(|uid| {
                        self.world
                            .snapshot
                            .releases_of(&uid)
                            .map(|(key, _)| key.clone())
                            .collect::<Vec<_>>()
                    })
                    .collect();
                if !keys.is_empty() {
                    let key = self.random.pick(&keys).clone();
                    self.world
                        .observe(Observation::Release(key, ReleaseFact::Drifted));
                }
            }
            _ => self.fail_a_step(),
        }
    }

    fn fail_a_step(&mut self) {
        let subjects: Vec<_> = self.world.queue.iter().cloned().collect();
        for subject in subjects {
            if let Some(step) = self.world.plan(&subject).steps.first() {
                let failure = Failure {
                    action: step.action.clone(),
                    class: ErrorClass::Other,
                    message: "simulated error".into(),
                    retry_at: self.world.snapshot.now + jiff::SignedDuration::from_secs(20),
                };
                self.world.observe(Observation::Failed(subject, failure));
                self.failed = true;
                return;
            }
        }
    }

    /// Plans for the next enqueued subject, checks the plan and executes it. Returns false if the queue is
    /// empty.
    fn step(&mut self) -> bool {
        let Some(subject) = self.world.queue.pop_first() else {
            return false;
        };
        let plan = self.world.plan(&subject);
        self.plans += 1;
        let violations = check(&self.world.snapshot, &plan);
        assert!(
            violations.is_empty(),
            "{violations:#?}
{:#?}",
            self.recent_steps()
        );
        self.world.execute(&plan);
        true
    }

    /// Runs steps until the queue is empty.
    fn settle(&mut self) {
        for _ in 0..2000 {
            if !self.step() {
                return;
            }
        }
        panic!("not settled after 2000 steps: {:#?}", self.recent_steps());
    }

    /// Returns the most recent steps, for failure messages.
    fn recent_steps(&self) -> &[String] {
        &self.world.executed[self.world.executed.len().saturating_sub(25)..]
    }

    /// Settles, then checks that planning all subjects again returns empty plans.
    fn check_settled(&mut self) {
        self.settle();
        for subject in self.world.snapshot.subjects() {
            let plan = self.world.plan(&subject);
            assert!(
                plan.is_empty(),
                "{subject} was not enqueued for {:#?}
{:#?}",
                support::actions(&plan),
                self.recent_steps()
            );
        }
    }

    /// Checks that an operator that restarts on a settled cluster compares releases and writes nothing: no
    /// progress is kept only in memory. Skipped after a failed step, which a restarted operator retries.
    fn check_restart(&mut self) {
        if self.failed {
            return;
        }
        let fresh = self.world.with_restarted_operator();
        assert_eq!(fresh.snapshot.references(), self.world.snapshot.references());
        for name in ISTIOS {
            assert_eq!(
                fresh.snapshot.migration_index(name),
                self.world.snapshot.migration_index(name),
                "{name}"
            );
        }
        for subject in fresh.snapshot.subjects() {
            let plan = fresh.plan(&subject);
            let violations = check(&fresh.snapshot, &plan);
            assert!(violations.is_empty(), "{violations:#?}");
            let writes: Vec<_> = plan.actions().filter(|action| !is_read_only(action)).collect();
            assert!(
                writes.is_empty(),
                "after a restart the plan of {subject} writes {writes:#?}\n{:#?}",
                self.recent_steps()
            );
        }
    }

    /// Enqueues the subjects whose requeue is due.
    fn enqueue_due(&mut self) {
        for subject in self.world.snapshot.subjects() {
            if let Requeue::At(time) = self.world.plan(&subject).requeue
                && time <= self.world.snapshot.now
            {
                self.world.queue.insert(subject);
            }
        }
        // A requeue in the past is allowed only in a plan with steps.
        for subject in self.world.snapshot.subjects() {
            if !self.world.plan(&subject).is_empty() {
                self.world.queue.insert(subject);
            }
        }
    }
}

#[test]
fn every_plan_satisfies_the_invariants_and_a_settled_mesh_stays_settled() {
    let cases = case_count(120);
    let (mut plans, mut writes) = (0, 0);
    for seed in 0..cases {
        let mut simulation = Simulation::new(seed as u64);
        for _ in 0..40 {
            let now = simulation.world.snapshot.now;
            simulation.cluster_event();
            // The next event may arrive before the queue is empty.
            for _ in 0..simulation.random.below(6) {
                simulation.step();
            }
            if simulation.world.snapshot.now != now {
                simulation.enqueue_due();
            }
            if simulation.random.chance(1, 3) {
                simulation.check_settled();
            }
            if simulation.random.chance(1, 12) {
                simulation.check_settled();
                simulation.check_restart();
            }
        }
        simulation.check_settled();
        simulation.check_restart();
        plans += simulation.plans;
        writes += simulation.world.executed.len();
    }
    println!("random sequences: {cases} run, {plans} plans checked, {writes} steps");
}

/// Checks random sequences on meshes with workloads that always have a target revision.
#[test]
fn invariants_hold_while_workloads_move() {
    let cases = case_count(60);
    let (mut plans, mut moves, mut ended) = (0, 0, 0);
    for seed in 0..cases {
        let mut simulation = Simulation::new(seed as u64 + 2_000_000);
        for _ in 0..60 {
            let now = simulation.world.snapshot.now;
            simulation.migration_event();
            for _ in 0..simulation.random.below(8) {
                simulation.step();
            }
            if simulation.world.snapshot.now != now {
                simulation.enqueue_due();
            }
            if simulation.random.chance(1, 3) {
                simulation.check_settled();
            }
            if simulation.random.chance(1, 8) {
                simulation.check_settled();
                simulation.check_restart();
            }
        }
        plans += simulation.plans;
        let executed = &simulation.world.executed;
        let is_move = |line: &&String| line.contains(": restart ") || line.contains(": relabel ");
        moves += executed.iter().filter(is_move).count();
        ended += executed
            .iter()
            .filter(|line| line.contains("MigrationEnded"))
            .count();
    }
    assert!(
        moves > cases * 2 && ended > cases,
        "{moves} moves, {ended} completed migrations in {cases} sequences"
    );
    println!("random migrations: {cases} run, {plans} plans checked, {moves} moves, {ended} ended");
}

#[test]
fn the_final_state_does_not_depend_on_the_order_of_plans() {
    for seed in 0..case_count(60) {
        let mut simulation = Simulation::new(seed as u64 + 1_000_000);
        for _ in 0..25 {
            simulation.cluster_event();
        }
        let mut reversed = Simulation {
            world: simulation.world.clone(),
            random: Random::new(1),
            plans: 0,
            failed: false,
        };
        reversed.world.queue.extend(reversed.world.snapshot.subjects());
        let full: Vec<Subject> = simulation.world.snapshot.subjects().into_iter().collect();
        simulation.world.queue.extend(full);
        simulation.check_settled();
        for _ in 0..50 {
            // In reverse order: the simulation plans the first subject first.
            let Some(subject) = reversed.world.queue.pop_last() else {
                break;
            };
            let plan = reversed.world.plan(&subject);
            reversed.world.execute(&plan);
        }
        reversed.check_settled();
        let end = |world: &World| {
            let revisions: Vec<_> = world
                .snapshot
                .revisions()
                .iter()
                .map(|one| (one.name().to_owned(), one.spec.clone(), one.status.state.clone()))
                .collect();
            let tags: Vec<_> = world
                .snapshot
                .tags()
                .iter()
                .map(|one| (one.name().to_owned(), one.spec.clone(), one.status.state.clone()))
                .collect();
            (revisions, tags)
        };
        assert_eq!(end(&simulation.world), end(&reversed.world), "seed {seed}");
    }
}
