//! Runs plans on the model of clusters with random delays and faults, and checks every write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    ApplicationDeployment, ApplicationRevision, Direction, Metric, Provider, RenderedComponent,
    RevisionPlacement, RevisionSpec, StrategyType,
};
use mainstay_rollout::manifest::{ObjectKey, Role};
use mainstay_rollout::model::{Behavior, Model, ModelCluster, ModelObject};
use mainstay_rollout::plan::{Action, MeasureRequest, Plan, Requeue, Step};
use mainstay_rollout::snapshot::Snapshot;
use mainstay_rollout::traffic::{WEIGHTS, parse_weights};
use mainstay_rollout::{IntOrPercent, plan};
use mainstay_testkit::Random;
use serde_json::{Value, json};

/// Behavior with random delays.
pub(crate) struct RandomBehavior {
    random: Random,
    /// Revisions whose pods never become ready.
    pub(crate) broken: BTreeSet<String>,
    /// Maximum number of seconds until a pod is ready.
    pub(crate) delay: usize,
    /// Seconds until a pod is ready, by revision. Replaces the random delay.
    pub(crate) slow: BTreeMap<String, i64>,
    /// Value of every metric; `None` for no data.
    pub(crate) metric: Option<f64>,
}

impl Behavior for RandomBehavior {
    fn pod_delay(&mut self, _: &str, revision: &str) -> Option<SignedDuration> {
        if self.broken.contains(revision) {
            return None;
        }
        let random = 1 + self.random.below(self.delay) as i64;
        let seconds = self.slow.get(revision).copied().unwrap_or(random);
        Some(SignedDuration::from_secs(seconds))
    }

    fn route_delay(&mut self) -> SignedDuration {
        SignedDuration::from_secs(self.random.below(4) as i64)
    }

    fn measure(&mut self, _: &MeasureRequest, _: Option<&Metric>) -> Option<f64> {
        self.metric
    }
}

/// Probabilities of faults in percent, per write or per tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) crash: usize,
    pub(crate) conflict: usize,
    pub(crate) lost_response: usize,
    pub(crate) partition: usize,
}

/// A violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) property: &'static str,
    pub(crate) detail: String,
}

/// A model with faults and checks.
pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) behavior: RandomBehavior,
    pub(crate) faults: Faults,
    /// Injected defect, which changes a plan before it is executed.
    pub(crate) defect: Option<fn(&mut Plan, &World)>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) writes: usize,
    pub(crate) plans: usize,
    /// Minimum number of ready pods at any time, by cluster.
    pub(crate) min_ready_pods: BTreeMap<String, u32>,
    /// Maximum number of clusters that may change at the same time.
    pub(crate) concurrency: Option<usize>,
    /// Number of components of each revision.
    pub(crate) components: usize,
}

impl Deref for World {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Model {
        &mut self.model
    }
}

pub(crate) fn revision(name: &str, components: &[&str]) -> ApplicationRevision {
    let component = |component: &&str| RenderedComponent {
        name: (*component).into(),
        manifests: vec![json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": component},
            "spec": {"template": {"spec": {"containers": [
                {"name": "main", "image": format!("registry/{name}"), "ports": [{"containerPort": 8080}]},
            ]}}},
        })],
    };
    let spec = RevisionSpec {
        application_name: "shop".into(),
        revision: 1,
        hash: name.into(),
        components: components.iter().map(component).collect(),
    };
    ApplicationRevision::new("default", name, spec)
}

impl World {
    pub(crate) fn new(seed: u64, spec: Value, clusters: &[&str]) -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let mut world = Self {
            model: Model::new(start, ApplicationDeployment::default()),
            behavior: RandomBehavior {
                random: Random::new(seed),
                broken: BTreeSet::new(),
                delay: 8,
                slow: BTreeMap::new(),
                metric: Some(1.0),
            },
            faults: Faults::default(),
            defect: None,
            violations: Vec::new(),
            writes: 0,
            plans: 0,
            min_ready_pods: BTreeMap::new(),
            concurrency: None,
            components: 2,
        };
        world.deployment.metadata.name = "shop".into();
        world.deployment.metadata.namespace = "default".into();
        world.deployment.metadata.uid = "deployment-uid".into();
        for name in ["v1", "v2", "v3"] {
            let name = format!("shop-{name}");
            world
                .revisions
                .insert(name.clone(), Arc::new(revision(&name, &["web", "api"])));
        }
        for name in clusters {
            let mut cluster = ModelCluster::new(Provider::Istio);
            cluster.labels.insert("tier".to_owned(), "prod".to_owned());
            world.clusters.insert((*name).to_owned(), cluster);
        }
        world.set_spec(spec);
        world
    }

    pub(crate) fn set_spec(&mut self, spec: Value) {
        self.model.set_spec(serde_json::from_value(spec).unwrap());
    }

    pub(crate) fn set_provider(&mut self, provider: Provider) {
        for cluster in self.clusters.values_mut() {
            cluster.providers = BTreeSet::from([provider]);
        }
    }

    /// Plans and executes once. Returns whether the plan had steps, and when to plan again.
    pub(crate) fn reconcile(&mut self) -> (bool, Requeue) {
        let snapshot = self.snapshot();
        let mut planned = plan(&snapshot);
        self.plans += 1;
        let again = plan(&snapshot);
        if again != planned {
            self.record_violation("P5", "two plans of one snapshot differ".into());
        }
        self.check_weights(&snapshot, &planned);
        self.check_concurrency();
        self.check_min_ready_pods();
        if let Some(defect) = self.defect {
            defect(&mut planned, self);
            self.check_weights(&snapshot, &planned);
        }
        let (has_steps, requeue) = (!planned.is_empty(), planned.requeue);
        self.execute(&planned);
        (has_steps, requeue)
    }

    fn execute(&mut self, plan: &Plan) {
        for step in &plan.prepare {
            if !self.run_step("", step) {
                return;
            }
        }
        for (cluster, steps) in &plan.clusters {
            for step in steps {
                match self.run_faulty(cluster, step) {
                    Outcome::Done => {}
                    Outcome::Failed => break,
                    Outcome::Crash => {
                        self.model.restart_controller();
                        return;
                    }
                }
            }
        }
        for step in &plan.finish {
            self.run_step("", step);
        }
    }

    fn run_step(&mut self, cluster: &str, step: &Step) -> bool {
        matches!(self.run_faulty(cluster, step), Outcome::Done)
    }

    fn run_faulty(&mut self, cluster: &str, step: &Step) -> Outcome {
        let faults = self.faults;
        if self.behavior.random.chance(faults.crash, 100) {
            return Outcome::Crash;
        }
        if self.behavior.random.chance(faults.conflict, 100) || !self.is_up(cluster) {
            return Outcome::Failed;
        }
        let done = self.run(cluster, &step.action);
        if !done || self.behavior.random.chance(faults.lost_response, 100) {
            return Outcome::Failed;
        }
        Outcome::Done
    }

    fn run(&mut self, cluster: &str, action: &Action) -> bool {
        self.writes += usize::from(!matches!(action, Action::Event { .. } | Action::Measure(_)));
        match action {
            Action::Apply(apply) => self.check_apply(cluster, apply),
            Action::Scale(scale) => {
                let object = self.object(cluster, &scale.key);
                if object.is_some_and(|object| object.observed.version == scale.precondition) {
                    self.check_scale(cluster, &scale.key, scale.replicas);
                }
            }
            Action::Delete(delete) => {
                let object = self.object(cluster, &delete.key);
                if object.is_some_and(|object| object.observed.version == delete.precondition) {
                    self.check_delete(cluster, &delete.key);
                }
            }
            _ => {}
        }
        self.model.run(cluster, action, &mut self.behavior)
    }

    fn check_apply(&mut self, cluster: &str, apply: &mainstay_rollout::plan::Apply) {
        let key = &apply.manifest.key;
        let seen = self.object(cluster, key).map(|object| &object.observed.version);
        if seen != apply.precondition.as_ref() {
            return;
        }
        let state = self.clusters.get(cluster);
        if !state.is_some_and(|cluster| cluster.inventory.objects.contains(key)) {
            self.record_violation("P11", format!("{key} applied before it is in the inventory"));
        }
        if apply.owner.is_some() != cluster.is_empty() {
            self.record_violation("P11", format!("owner of {key} in {cluster:?}"));
        }
        if let (None, Some(replicas)) = (&apply.precondition, apply.replicas) {
            self.check_growth(cluster, key, replicas);
        }
    }

    fn is_live(&self) -> bool {
        self.clusters.values().any(|cluster| !cluster.objects.is_empty())
    }

    /// Advances time. Partitions begin at random.
    pub(crate) fn tick(&mut self, seconds: i64) {
        self.advance(SignedDuration::from_secs(seconds));
        let chance = self.faults.partition;
        if chance > 0 && self.is_live() && self.behavior.random.chance(chance, 100) {
            let names: Vec<String> = self
                .clusters
                .keys()
                .filter(|name| !name.is_empty())
                .cloned()
                .collect();
            if !names.is_empty() {
                let name = self.behavior.random.pick(&names).clone();
                let length = 5 + self.behavior.random.below(120) as i64;
                self.disconnect(&name, length);
            }
        }
    }

    /// Makes a cluster unreachable for some time.
    pub(crate) fn disconnect(&mut self, name: &str, seconds: i64) {
        self.model.disconnect(name, SignedDuration::from_secs(seconds));
    }

    /// Runs until there is nothing to do, but at most `rounds`. Returns whether the deployment converged.
    pub(crate) fn run_until_idle(&mut self, rounds: usize) -> bool {
        let mut quiet = 0;
        for _ in 0..rounds {
            let (has_steps, requeue) = self.reconcile();
            if requeue == Requeue::Immediately {
                continue;
            }
            let is_pending = self.next_change().is_some();
            let is_waiting = matches!(requeue, Requeue::At(_));
            quiet = if has_steps || is_pending || is_waiting {
                0
            } else {
                quiet + 1
            };
            if quiet > 1 {
                return true;
            }
            let step = match requeue {
                Requeue::At(at) if !is_pending && !has_steps => {
                    (at.duration_since(self.now).as_secs() + 1).max(1)
                }
                _ => 1 + self.behavior.random.below(3) as i64,
            };
            self.tick(step);
        }
        false
    }

    pub(crate) fn record_violation(&mut self, property: &'static str, detail: String) {
        self.violations.push(Violation { property, detail });
    }

    // The following numbers are computed independently of the planner.

    /// Returns the replicas of a placement in a cluster.
    fn placed(placement: &[RevisionPlacement], cluster: &str) -> u32 {
        let entries = placement.iter().flat_map(|revision| &revision.clusters);
        let own = entries.filter(|entry| entry.cluster_name == cluster);
        own.filter_map(|entry| entry.replicas).sum()
    }

    fn bounds(&self, cluster: &str) -> (u32, u32) {
        let Some(rollout) = &self.deployment.status.rollout else {
            return (0, 0);
        };
        let end = match rollout.direction {
            Direction::Forward => &rollout.target,
            Direction::Back => &rollout.stable,
        };
        (
            Self::placed(&rollout.source.placement, cluster),
            Self::placed(&end.placement, cluster),
        )
    }

    /// Returns the largest number of pods of a component, by revision.
    fn replicas(
        &self,
        cluster: &str,
        count: impl Fn(&ModelObject) -> u32,
        largest: bool,
    ) -> BTreeMap<String, u32> {
        let mut by_revision: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let objects = self
            .clusters
            .get(cluster)
            .into_iter()
            .flat_map(|cluster| &cluster.objects);
        for (key, object) in objects {
            if Role::for_kind(&key.kind) == Role::Workload {
                let revision = object.observed.revision.clone().unwrap_or_default();
                by_revision.entry(revision).or_default().push(count(object));
            }
        }
        let pick = |counts: Vec<u32>| {
            // A missing component has no pods.
            let smallest = if counts.len() < self.components {
                0
            } else {
                counts.iter().copied().min().unwrap_or(0)
            };
            if largest {
                counts.into_iter().max().unwrap_or(0)
            } else {
                smallest
            }
        };
        by_revision
            .into_iter()
            .map(|(name, counts)| (name, pick(counts)))
            .collect()
    }

    fn ready(&self, cluster: &str) -> BTreeMap<String, u32> {
        let now = self.now;
        let count = |object: &ModelObject| object.ready_pods(now);
        self.replicas(cluster, count, false)
    }

    fn spec_total(&self, cluster: &str) -> u32 {
        self.replicas(cluster, |object| object.observed.replicas, true)
            .values()
            .sum()
    }

    /// Returns the surge and the number of unavailable pods that the strategy allows.
    pub(crate) fn budget(&self) -> (Option<u32>, u32) {
        let strategy = self.deployment.spec.strategy.clone().unwrap_or_default();
        let bounds: Vec<(u32, u32)> = self.clusters.keys().map(|name| self.bounds(name)).collect();
        let total: u32 = bounds.iter().map(|(source, end)| (*source).max(*end)).sum();
        let largest: u32 = bounds.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let resolve = |text: Option<String>, default: &str, up: bool| {
            let value: IntOrPercent = text.as_deref().unwrap_or(default).parse().unwrap();
            match value {
                IntOrPercent::Int(number) => number,
                IntOrPercent::Percent(percent) if up => (total * percent).div_ceil(100),
                IntOrPercent::Percent(percent) => total * percent / 100,
            }
        };
        let unavailable = resolve(strategy.max_unavailable.map(|text| text.to_string()), "0", false);
        let surge = resolve(strategy.max_surge.map(|text| text.to_string()), "25%", true);
        // Weights are whole percents.
        let surge = surge.max(largest.div_ceil(100).max(1) * 2);
        match strategy.kind.unwrap_or_default() {
            StrategyType::Direct | StrategyType::BlueGreen => (None, unavailable),
            _ => (Some(surge), unavailable),
        }
    }

    fn excess(&self) -> u32 {
        let clusters = self.clusters.keys().filter(|name| self.is_up(name));
        clusters
            .map(|name| {
                let (source, end) = self.bounds(name);
                self.spec_total(name).saturating_sub(source.max(end))
            })
            .sum()
    }

    /// Checks the upper bound of P3: growth does not exceed the surge.
    fn check_growth(&mut self, cluster: &str, key: &ObjectKey, replicas: u32) {
        let before = self.excess();
        let probe = |world: &mut Self, count: u32| {
            let Some(cluster) = world.clusters.get_mut(cluster) else {
                return 0;
            };
            let object = cluster.objects.entry(key.clone()).or_default();
            // The name of a workload is REVISION-COMPONENT.
            let revision = key.name.rsplit_once('-').map(|(revision, _)| revision.to_owned());
            object.observed.revision = revision;
            std::mem::replace(&mut object.observed.replicas, count)
        };
        let existed = self.object(cluster, key).is_some();
        let old = probe(self, replicas);
        let after = self.excess();
        probe(self, old);
        if !existed && let Some(cluster) = self.clusters.get_mut(cluster) {
            cluster.objects.remove(key);
        }
        if let (Some(surge), _) = self.budget()
            && after > surge.max(before)
        {
            let detail = format!(
                "{key} in {cluster:?} to {replicas}: {after} above the desired number, surge {surge}"
            );
            self.record_violation("P3", detail);
        }
    }

    /// Checks both bounds of P3, and P4: a revision that receives requests is not scaled to 0.
    fn check_scale(&mut self, cluster: &str, key: &ObjectKey, replicas: u32) {
        let Some(old) = self.object(cluster, key).map(|object| object.observed.replicas) else {
            return;
        };
        if replicas > old {
            self.check_growth(cluster, key, replicas);
            return;
        }
        let revision = self
            .object(cluster, key)
            .and_then(|object| object.observed.revision.clone())
            .unwrap_or_default();
        let before: u32 = self.ready(cluster).values().sum();
        let own = self.ready(cluster).get(&revision).copied().unwrap_or(0);
        let after = before - own + own.min(replicas);
        let (source, end) = self.bounds(cluster);
        let (_, unavailable) = self.budget();
        let floor = source.min(end).saturating_sub(unavailable);
        if after < before.min(floor) {
            let detail = format!("{key} in {cluster:?} to {replicas}: {after} available, floor {floor}");
            self.record_violation("P3", detail);
        }
        if replicas == 0 {
            self.check_unrouted(cluster, &revision);
        }
    }

    fn check_unrouted(&mut self, cluster: &str, revision: &str) {
        let Some(state) = self.clusters.get(cluster) else {
            return;
        };
        let services: BTreeSet<&str> = state
            .objects
            .iter()
            .filter(|(key, object)| {
                key.kind == "Service" && object.observed.revision.as_deref() == Some(revision)
            })
            .map(|(key, _)| key.name.as_str())
            .collect();
        let routed = state.objects.values().find_map(|object| {
            let weights = object.effective.iter().chain(&object.observed.weights);
            let mut used =
                weights.filter(|(service, weight)| **weight > 0 && services.contains(service.as_str()));
            used.next().map(|(service, _)| service.clone())
        });
        if let Some(service) = routed {
            self.record_violation(
                "P4",
                format!("{revision} in {cluster:?} is removed while routes refer to {service}"),
            );
        }
    }

    fn check_delete(&mut self, cluster: &str, key: &ObjectKey) {
        let Some(state) = self.clusters.get(cluster) else {
            return;
        };
        if !state.inventory.objects.contains(key) {
            self.record_violation(
                "P11",
                format!("{key} in {cluster:?} is deleted but not in the inventory"),
            );
            return;
        }
        let object = state.objects.get(key);
        if object
            .is_some_and(|object| object.observed.deployment.as_ref() != Some(&self.deployment.metadata.name))
        {
            self.record_violation(
                "P11",
                format!("{key} in {cluster:?} is deleted but has another owner"),
            );
        }
        if Role::for_kind(&key.kind) == Role::Workload
            && self.deployment.metadata.deletion_timestamp.is_none()
        {
            self.check_scale(cluster, key, 0);
        }
    }

    /// P4: no revision without available pods has a weight, unless no revision of the rule has available
    /// pods.
    fn check_weights(&mut self, snapshot: &Snapshot, plan: &Plan) {
        let mut wrong = Vec::new();
        let components = self.components;
        for (cluster, steps) in &plan.clusters {
            let view = &snapshot.clusters[cluster];
            let mut available: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for (key, observed) in &view.objects {
                if Role::for_kind(&key.kind) == Role::Workload {
                    let revision = observed.revision.as_deref().unwrap_or_default();
                    let count = observed.available.min(observed.replicas);
                    available.entry(revision).or_default().push(count);
                }
            }
            let is_available = |service: &str| {
                available
                    .iter()
                    .find(|(revision, _)| service.starts_with(**revision))
                    .is_some_and(|(_, counts)| {
                        counts.len() >= components && counts.iter().all(|count| *count > 0)
                    })
            };
            for step in steps {
                let Action::Apply(apply) = &step.action else {
                    continue;
                };
                let pointer = format!("/metadata/annotations/{}", WEIGHTS.replace('/', "~1"));
                let Some(text) = apply.manifest.object.pointer(&pointer).and_then(Value::as_str) else {
                    continue;
                };
                let weights = parse_weights(text).unwrap();
                let any = weights.keys().any(|service| is_available(service));
                for (service, weight) in &weights {
                    if *weight > 0 && any && !is_available(service) {
                        wrong.push(format!("{service} in {cluster:?} has weight {weight}"));
                    }
                }
            }
        }
        for detail in wrong {
            self.record_violation("P4", detail);
        }
    }

    /// P8: during a rollback, no cluster has fewer ready pods than its minimum.
    fn check_min_ready_pods(&mut self) {
        for (cluster, floor) in self.min_ready_pods.clone() {
            let ready: u32 = self.ready(&cluster).values().sum();
            if ready < floor {
                self.record_violation("P8", format!("{ready} ready pods in {cluster:?}, floor {floor}"));
            }
        }
    }

    /// P9: limits the number of clusters that have started to change and are not complete.
    fn check_concurrency(&mut self) {
        let (Some(limit), Some(rollout)) = (self.concurrency, self.deployment.status.rollout.clone()) else {
            return;
        };
        let layout = self.replicas_by_revision();
        let count = |placement: &[RevisionPlacement], cluster: &str, revision: &str| {
            let own = placement.iter().filter(|entry| entry.revision_name == revision);
            let own = own.flat_map(|entry| &entry.clusters);
            own.filter(|entry| entry.cluster_name == cluster)
                .find_map(|entry| entry.replicas)
        };
        let is_changing = |cluster: &&String| {
            let revisions = ["shop-v1", "shop-v2", "shop-v3"];
            let differs = |placement: &[RevisionPlacement]| {
                revisions.iter().any(|revision| {
                    let now = layout.get(&((*cluster).clone(), (*revision).to_owned())).copied();
                    now.unwrap_or(0) != count(placement, cluster, revision).unwrap_or(0)
                })
            };
            differs(&rollout.source.placement) && differs(&rollout.target.placement)
        };
        let changing: Vec<String> = self.clusters.keys().filter(is_changing).cloned().collect();
        if changing.len() > limit {
            self.record_violation(
                "P9",
                format!("{changing:?} change at the same time, limit {limit}"),
            );
        }
    }

    /// Returns a step that scales a workload, for planted defects.
    pub(crate) fn scale_step(&self, cluster: &str, key: &ObjectKey, replicas: u32) -> Option<Step> {
        let object = self.object(cluster, key)?;
        Some(Step {
            action: Action::Scale(mainstay_rollout::plan::Scale {
                key: key.clone(),
                replicas,
                precondition: object.observed.version.clone(),
            }),
            reason: mainstay_api::Reason::ScaledDown,
        })
    }

    /// Ends all faults.
    pub(crate) fn end_faults(&mut self) {
        self.faults = Faults::default();
        for cluster in self.clusters.values_mut() {
            (cluster.down_since, cluster.down_until) = (None, None);
        }
    }

    /// Returns the objects of this deployment by cluster.
    pub(crate) fn objects(&self) -> BTreeMap<String, BTreeSet<ObjectKey>> {
        let own = |cluster: &ModelCluster| cluster.objects.keys().cloned().collect();
        self.clusters
            .iter()
            .map(|(name, cluster)| (name.clone(), own(cluster)))
            .collect()
    }

    /// Returns the replicas by revision and cluster, without revisions that have no replicas.
    pub(crate) fn replicas_by_revision(&self) -> BTreeMap<(String, String), u32> {
        let mut layout = BTreeMap::new();
        for name in self.clusters.keys() {
            for (revision, count) in self.replicas(name, |object| object.observed.replicas, true) {
                layout.insert((name.clone(), revision), count);
            }
        }
        layout
    }

    /// P11 and no leaked objects: after convergence, exactly the objects in the inventories exist.
    pub(crate) fn check_inventories(&mut self) {
        let mut wrong = Vec::new();
        for (name, cluster) in &self.clusters {
            let exists: BTreeSet<&ObjectKey> = cluster.objects.keys().collect();
            let listed: BTreeSet<&ObjectKey> = cluster.inventory.objects.iter().collect();
            if exists != listed {
                let leaked: Vec<String> = exists.difference(&listed).map(ToString::to_string).collect();
                let gone: Vec<String> = listed.difference(&exists).map(ToString::to_string).collect();
                wrong.push(format!("{name:?}: leaked {leaked:?}, listed but gone {gone:?}"));
            }
        }
        for detail in wrong {
            self.record_violation("P11", detail);
        }
    }
}

enum Outcome {
    Done,
    Failed,
    Crash,
}
