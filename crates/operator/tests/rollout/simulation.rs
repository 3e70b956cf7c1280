//! Random rollouts on five simulated API servers with random faults: crashes of the controllers, rejected and
//! lost calls, missed events, partitions, rotated tokens and different clocks. The invariants are checked
//! every quarter of a second.

use std::time::Duration;

use jiff::SignedDuration;
use mainstay_harness::{FleetOptions, cluster_secret};
use mainstay_sim::fault::RequestCounts;
use mainstay_sim::script::Script;
use mainstay_sim::snapshot;
use mainstay_testkit::{Random, case_count};
use serde_json::{Value, json};

use crate::fleet::{CLIENT, Fleet, options};
use crate::objects::{API, DEPLOYMENT, NAMESPACE, deployment_of, with_traffic};
use crate::sim_faults::faults_between;
use crate::virtual_time::run;

const DEPLOYMENTS: &str = "applicationdeployments";
const REVISIONS: [&str; 2] = ["example-app-v1", "example-app-v2"];
const MEMBERS: [&str; 4] = ["east", "north", "south", "west"];
const LABEL: &str = "delivery.mainstay.dev/deployment";
const REVISION_LABEL: &str = "delivery.mainstay.dev/revision";

/// Number of simulations by default.
const SIMULATIONS: usize = 3;
/// Number of future calls of a cluster among which the calls with faults are selected.
const FAULTY_CALLS: u64 = 80;
/// Number of future watches of a cluster among which the watches with faults are selected.
const FAULTY_WATCHES: u64 = 4;
/// Number of random events of a simulation.
const EVENTS: usize = 40;
/// Interval of the checks of invariants.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum difference of the controllers' clock from the host's, in seconds.
const MAX_CLOCK_OFFSET: usize = 300;

/// A simulation.
struct Simulation {
    fleet: Fleet,
    random: Random,
    strategy: Value,
    /// Replicas in each cluster.
    replicas: u32,
    max_unavailable: u32,
    /// Maximum number of replicas above the larger of source and target; `None` for no limit.
    max_surge: Option<u64>,
    /// Tokens of members that the cluster accepts and the Secret does not contain yet.
    rotated: Vec<(&'static str, String)>,
    counts: Counts,
}

/// Numbers of what happened.
#[derive(Default)]
struct Counts {
    faults: usize,
    crashes: usize,
    partitions: usize,
    rotations: usize,
    actions: usize,
    checks: usize,
    writes: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.faults += other.faults;
        self.crashes += other.crashes;
        self.partitions += other.partitions;
        self.rotations += other.rotations;
        self.actions += other.actions;
        self.checks += other.checks;
        self.writes += other.writes;
    }
}

impl Simulation {
    async fn start(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = FleetOptions {
            clock_offset: SignedDuration::from_secs(random.below(1200) as i64 - 600),
            ..options(&MEMBERS)
        };
        let fleet = Fleet::with_options(options).await;
        let surge = 1 + random.below(2) as u32;
        let max_unavailable = random.below(2) as u32;
        let kind = *random.pick(&["Direct", "Rolling", "Canary", "BlueGreen"]);
        let mut strategy = json!({
            "type": kind, "maxSurge": surge, "maxUnavailable": max_unavailable, "progressDeadlineSeconds": 100_000,
        });
        if kind == "Canary" {
            strategy["steps"] = json!([
                {"setWeight": 10}, {"pause": {"durationSeconds": 20}}, {"setWeight": 60}, {"setWeight": 100},
            ]);
        }
        if random.chance(1, 3) {
            strategy["waves"] = json!([
                {"name": "first", "clusterSelector": {"name": *random.pick(&MEMBERS)}, "soakSeconds": 5},
                {"name": "rest", "maxConcurrentClusters": *random.pick(&["1", "50%", "100%"])},
            ]);
        }
        // A share of less than one replica is rounded up to one for each step of the weights.
        let max_surge = matches!(kind, "Rolling" | "Canary").then_some(u64::from(surge.max(2)));
        let mut simulation = Self {
            replicas: 1 + random.below(3) as u32,
            fleet,
            random,
            strategy,
            max_unavailable,
            max_surge,
            rotated: Vec::new(),
            counts: Counts::default(),
        };
        simulation.set_readiness();
        simulation.restart_with_another_clock();
        simulation.fleet.record_two_revisions().await;
        simulation
            .fleet
            .create(&simulation.deployment(REVISIONS[0]))
            .await;
        simulation.fleet.until_phase("Healthy").await;
        simulation
    }

    /// Starts the controllers as on another node, whose clock differs from the previous one's.
    fn restart_with_another_clock(&mut self) {
        let offset = self.random.below(2 * MAX_CLOCK_OFFSET) as i64 - MAX_CLOCK_OFFSET as i64;
        self.fleet.kill_controllers();
        self.fleet.controller_clock_offset = SignedDuration::from_secs(offset);
        self.fleet.start_controllers();
    }

    /// Sets the time until pods are ready: some seconds, different for each cluster and revision.
    fn set_readiness(&mut self) {
        for cluster in self.fleet.clusters.values() {
            for revision in REVISIONS {
                let script = Script::ready_after(Duration::from_secs(1 + self.random.below(8) as u64));
                let workload = format!("{revision}-testsvc");
                cluster
                    .sim()
                    .with(|state| state.scripts.add_workload(NAMESPACE, &workload, script));
            }
        }
    }

    fn deployment(&self, revision: &str) -> Value {
        let places: Vec<(&str, u32)> = [""]
            .iter()
            .chain(&MEMBERS)
            .map(|name| (*name, self.replicas))
            .collect();
        let mut deployment = with_traffic(deployment_of(&[(revision, &places)]), "Istio", &[(revision, 100)]);
        deployment["spec"]["strategy"] = self.strategy.clone();
        deployment
    }

    /// Ends the faults, and counts those that were injected.
    fn end_faults(&mut self) {
        for cluster in self.fleet.clusters.values() {
            let pending = cluster.sim().with(|state| {
                let pending = state.faults.pending();
                state.faults.clear();
                pending
            });
            self.counts.faults -= pending;
        }
    }

    /// Adds faults to random future calls of all clusters.
    fn add_faults(&mut self) {
        let names: Vec<String> = self.fleet.clusters.keys().cloned().collect();
        for _ in 0..4 + self.random.below(8) {
            let name = self.random.pick(&names).clone();
            let cluster = &self.fleet.clusters[&name];
            let now = cluster.sim().with(|state| state.faults.counts(CLIENT));
            let end = RequestCounts {
                requests: now.requests + FAULTY_CALLS,
                watches: now.watches + FAULTY_WATCHES,
                ..now
            };
            let faults = faults_between(&name, now, end);
            cluster.sim().add_fault(self.random.pick(&faults).rule(CLIENT));
            self.counts.faults += 1;
        }
    }

    fn restart_if_crashed(&mut self) {
        let clusters = self.fleet.clusters.values();
        let has_crashed = |cluster: &std::sync::Arc<mainstay_harness::SimulatedCluster>| {
            cluster.sim().with(|state| state.faults.has_crashed(CLIENT))
        };
        if !clusters.into_iter().any(has_crashed) {
            return;
        }
        self.counts.crashes += 1;
        for cluster in self.fleet.clusters.values() {
            cluster.sim().with(|state| state.faults.restart_client(CLIENT));
        }
        self.restart_with_another_clock();
    }

    /// Lets time pass and checks the invariants.
    async fn pass(&mut self, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            self.fleet.sleep(CHECK_INTERVAL).await;
            self.restart_if_crashed();
            self.check_invariants();
        }
    }

    /// Checks P3 and P4 in every cluster: capacity is never below the floor or above the surge, and no weight
    /// points to a revision without available pods.
    fn check_invariants(&mut self) {
        self.counts.checks += 1;
        let wanted = u64::from(self.replicas);
        for name in self.fleet.clusters.keys() {
            let [one, two] = REVISIONS.map(|revision| {
                let replicas = self.fleet.replicas(name, &format!("{revision}-testsvc"));
                replicas.unwrap_or_default()
            });
            let (desired, available) = (one.0 + two.0, one.1 + two.1);
            let floor = wanted.saturating_sub(u64::from(self.max_unavailable));
            assert!(
                available >= floor,
                "P3 in {name:?}: {available} available, floor {floor}"
            );
            // The budget is shared by the reachable clusters. A fault makes a cluster unreachable for a
            // while, so only the share of one cluster is bounded at any time; the model of the planner
            // checks the sum.
            let excess = desired.saturating_sub(self.allowed_without_surge(name));
            assert!(
                self.max_surge.is_none_or(|surge| excess <= surge),
                "P3 in {name:?}: {excess} replicas above source and target"
            );
            for (revision, weight) in self.weights(name) {
                let position = REVISIONS.iter().position(|name| *name == revision).unwrap();
                let available = [one.1, two.1][position];
                assert!(
                    weight == 0 || available > 0,
                    "P4 in {name:?}: {weight} % on {revision} without an available pod"
                );
            }
        }
    }

    /// Returns the larger of the replicas at the start and at the end of the current rollout.
    fn allowed_without_surge(&self, cluster: &str) -> u64 {
        let deployment = self.fleet.deployment();
        let rollout = &deployment["status"]["rollout"];
        let end = match rollout["direction"].as_str() {
            Some("Back") => "stable",
            _ => "target",
        };
        let total = |allocation: &str| -> u64 {
            let revisions = rollout[allocation]["placement"].as_array().into_iter().flatten();
            let places = revisions.flat_map(|revision| revision["clusters"].as_array().into_iter().flatten());
            let own = places.filter(|place| place["clusterName"].as_str().unwrap_or_default() == cluster);
            own.map(|place| place["replicas"].as_u64().unwrap_or_default())
                .sum()
        };
        total("source").max(total(end))
    }

    fn weights(&self, cluster: &str) -> Vec<(String, u64)> {
        let table = "virtualservices.networking.istio.io";
        let Some(route) = self.fleet.object(cluster, table, DEPLOYMENT) else {
            return Vec::new();
        };
        let rules = route["spec"]["http"].as_array().unwrap().iter();
        let routes = rules.flat_map(|rule| rule["route"].as_array().unwrap());
        let weight = |route: &Value| {
            let host = route["destination"]["host"].as_str().unwrap().to_owned();
            (host, route["weight"].as_u64().unwrap_or(100))
        };
        routes.map(weight).collect()
    }

    async fn request(&mut self, verb: &str) {
        self.counts.actions += 1;
        let action = json!({
            "apiVersion": API, "kind": "DeploymentAction",
            "metadata": {"name": format!("action-{}", self.counts.actions), "namespace": NAMESPACE},
            "spec": {"deploymentName": DEPLOYMENT, "verb": verb},
        });
        self.fleet.create(&action).await;
    }

    /// Revokes the token of a member. The Secret is updated later.
    fn revoke_token(&mut self) {
        let member = *self.random.pick(&MEMBERS);
        self.counts.rotations += 1;
        let token = format!("rotated-{}", self.counts.rotations);
        self.fleet.connector.set_token(member, &token);
        self.rotated.push((member, token));
    }

    async fn update_secrets(&mut self) {
        for (member, token) in std::mem::take(&mut self.rotated) {
            let secret = cluster_secret(NAMESPACE, member, &token);
            let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/kubeconfig-{member}");
            let change = json!({"data": secret["data"]});
            self.fleet.host().merge_patch(&path, &change).await.unwrap();
        }
    }

    async fn perform_random_event(&mut self) {
        match self.random.below(40) {
            0..4 => {
                let member = *self.random.pick(&MEMBERS);
                self.fleet.connector.set_unresponsive(member, true);
                self.counts.partitions += 1;
            }
            4..8 => self.reconnect(),
            8 | 9 => self.revoke_token(),
            10..13 => self.update_secrets().await,
            13 => self.request("Abort").await,
            14 => self.request("Retry").await,
            15 => self.request("Pause").await,
            16 | 17 => self.request("Resume").await,
            18 | 19 => self.request("Promote").await,
            20 => self.restart_with_another_clock(),
            21 => {
                let revision = *self.random.pick(&REVISIONS);
                self.fleet.set_spec(DEPLOYMENTS, &self.deployment(revision)).await;
            }
            _ => {}
        }
    }

    fn reconnect(&self) {
        for member in MEMBERS {
            self.fleet.connector.set_unresponsive(member, false);
        }
    }

    /// Ends all faults and waits for the end of the rollout. Pauses are ended.
    async fn finish(&mut self) {
        self.end_faults();
        self.reconnect();
        self.update_secrets().await;
        for _ in 0..60 {
            self.pass(Duration::from_mins(1)).await;
            let object = self.fleet.deployment();
            let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
            match object["status"]["phase"].as_str() {
                Some("Healthy" | "Aborted") if is_current => return,
                Some("Paused") => {
                    self.request("Resume").await;
                    self.request("Promote").await;
                }
                _ => {}
            }
        }
        panic!("P6: no end: {:#}", self.fleet.deployment()["status"]);
    }

    /// Checks that one revision is left in every cluster, and that it is the desired one unless the rollout
    /// was aborted.
    fn check_end(&self) {
        let deployment = self.fleet.deployment();
        let wanted = u64::from(self.replicas);
        let runs = |revision: &&&str| {
            self.fleet.replicas("", &format!("{revision}-testsvc")) == Some((wanted, wanted))
        };
        let running = REVISIONS.iter().find(runs);
        let revision = *running.unwrap_or_else(|| panic!("no revision runs"));
        if deployment["status"]["phase"] == "Healthy" {
            assert_eq!(deployment["spec"]["appRevisions"][0]["revisionName"], revision);
        }
        for (name, cluster) in &self.fleet.clusters {
            let replicas = self.fleet.replicas(name, &format!("{revision}-testsvc"));
            assert_eq!(replicas, Some((wanted, wanted)), "{name:?}");
            assert_eq!(self.weights(name), [(revision.to_owned(), 100)], "{name:?}");
            let objects = cluster.sim().with(|state| snapshot::dump(state));
            for object in objects {
                let labels = &object["metadata"]["labels"];
                let is_ours = labels[LABEL] == DEPLOYMENT && object["apiVersion"] != API;
                let is_leaked = is_ours && labels.get(REVISION_LABEL).is_some_and(|label| label != revision);
                assert!(
                    !is_leaked,
                    "leaked in {name:?}: {} {}",
                    object["kind"], object["metadata"]["name"]
                );
            }
        }
    }
}

fn simulate(seed: u64) -> Counts {
    run(async {
        let mut simulation = Simulation::start(seed).await;
        let before = simulation.fleet.writes();
        simulation.check_invariants();
        simulation.add_faults();
        let next = simulation.deployment(REVISIONS[1]);
        simulation.fleet.set_spec(DEPLOYMENTS, &next).await;
        for _ in 0..EVENTS {
            simulation.perform_random_event().await;
            let time = Duration::from_millis(500 + simulation.random.below(5000) as u64);
            simulation.pass(time).await;
        }
        simulation.finish().await;
        simulation.fleet.until_idle().await;
        simulation.check_invariants();
        simulation.check_end();
        // A rollout without writes checks nothing.
        simulation.counts.writes = simulation.fleet.writes() - before;
        assert!(simulation.counts.writes > 0, "no write");
        simulation.counts
    })
}

#[test]
fn random_rollouts_on_five_api_servers_survive_faults() {
    let simulations = case_count(SIMULATIONS);
    let mut total = Counts::default();
    for seed in 0..simulations as u64 {
        let outcome = std::panic::catch_unwind(|| simulate(seed));
        let counts = outcome
            .unwrap_or_else(|panic| panic!("seed {seed}: {}", crate::final_state::panic_message(&*panic)));
        total.add(&counts);
    }
    assert!(total.faults > 0, "no fault was injected");
    println!(
        "fleet simulation: {simulations} rollouts on 5 API servers, seeds 0 to {}: {} faulty calls, {} crashes, {} partitions, {} rotated tokens, {} actions; {} writes, invariants checked {} times",
        simulations - 1,
        total.faults,
        total.crashes,
        total.partitions,
        total.rotations,
        total.actions,
        total.writes,
        total.checks,
    );
}
