//! Controller for `DaemonSets`: runs one pod per eligible node, rolls out changes of the template, and
//! updates the status.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::Index;
use super::int_or_percent::{Rounding, scaled_value};
use super::pod::{Phase, Pod};
use super::revision::{Owner, Revision};
use super::{DAEMON_SETS, NODES, RequeueAt};
use crate::clock::Instant;
use crate::script::tolerates;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("daemonset-controller");
const HASH_LABEL: &str = "controller-revision-hash";
/// Keys and effects of the tolerations that are added to those of the template.
const ADDED_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Pods by node, and whether the node should have a pod.
type PodsByNode<'a> = BTreeMap<String, (bool, Vec<&'a Pod>)>;

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, set)) = actor::load(state, DAEMON_SETS, key) else {
        return Ok(None);
    };
    let owner = Owner {
        actor: ACTOR,
        kind: "DaemonSet",
        value: &set,
        label: HASH_LABEL,
    };
    let mut revisions = owner.list(state);
    let revision = owner.ensure_current(state, &mut revisions)?;
    let pods = index.pods_controlled_by(state, &object.meta().uid);
    let by_node = pods_by_node(state, &set, &pods);
    let current = DaemonSetSync {
        set: &set,
        revision: &revision,
        by_node: &by_node,
        now: state.now(),
        min_ready: tree::int(&set, &["spec", "minReadySeconds"]).unwrap_or(0),
    };
    let outcome = if object.meta().deleting {
        Ok(())
    } else {
        current.sync_nodes(state)
    };
    current.write_status(state)?;
    let used: Vec<&str> = pods
        .iter()
        .filter_map(|pod| pod.meta().label(HASH_LABEL))
        .chain([revision.name.as_str()])
        .collect();
    owner.clean_up(state, &revisions, &used)?;
    outcome?;
    Ok(super::replica_set::next_available(
        &pods,
        current.min_ready,
        current.now,
    ))
}

fn pods_by_node<'a>(state: &State, set: &Value, pods: &[&'a Pod]) -> PodsByNode<'a> {
    let template = with_tolerations(tree::get(set, &["spec", "template"]).cloned().unwrap_or_default());
    let node_selector = LabelSelector::from_map(tree::get(&template, &["spec", "nodeSelector"]));
    let mut nodes: PodsByNode<'a> = state
        .store
        .all(NODES)
        .map(|node| {
            let eligible =
                node_selector.matches(&|key| node.meta().label(key)) && tolerates(&node.packed(), &template);
            (node.meta().name.to_string(), (eligible, Vec::new()))
        })
        .collect();
    for pod in pods {
        let node = if pod.node.is_empty() {
            target_node(pod)
        } else {
            pod.node.to_string()
        };
        nodes.entry(node).or_default().1.push(pod);
    }
    for (_, pods) in nodes.values_mut() {
        pods.sort_by(|a, b| (a.created_at, a.name()).cmp(&(b.created_at, b.name())));
    }
    nodes
}

const NODE_SELECTOR_TERMS: [&str; 5] = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// Returns the name of the node for which an unscheduled pod was created.
fn target_node(pod: &Pod) -> String {
    let value = pod.object.packed();
    let term = tree::list(&value, &NODE_SELECTOR_TERMS).first();
    let field = term.and_then(|term| tree::list(term, &["matchFields"]).first());
    let name = field.and_then(|field| tree::list(field, &["values"]).first());
    name.and_then(Value::as_str).unwrap_or("").to_owned()
}

fn with_tolerations(mut template: Value) -> Value {
    let mut tolerations = tree::list(&template, &["spec", "tolerations"]).to_vec();
    for (key, effect) in ADDED_TOLERATIONS {
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    tree::set(&mut template, &["spec", "tolerations"], tolerations);
    template
}

fn delete_pod(state: &mut State, set: &Value, pod: &Pod) -> Result<()> {
    ACTOR.delete(state, GroupResource::PODS, &pod.object)?;
    ACTOR.trace(state, format_args!("Deleted pod: {} of {}", pod.name(), pod.node));
    ACTOR.record(
        state,
        set,
        "SuccessfulDelete",
        &format!("Deleted pod: {}", pod.name()),
    );
    Ok(())
}

/// State of one sync.
struct DaemonSetSync<'a> {
    set: &'a Value,
    revision: &'a Revision,
    by_node: &'a PodsByNode<'a>,
    now: Instant,
    min_ready: i64,
}

impl DaemonSetSync<'_> {
    fn is_new(&self, pod: &Pod) -> bool {
        pod.meta().label(HASH_LABEL) == Some(self.revision.hash.as_str())
    }

    fn available(&self, pod: &Pod) -> bool {
        pod.available(self.min_ready, self.now)
    }

    /// Returns maximum surge and maximum unavailability as numbers of nodes.
    fn surge_and_unavailable(&self) -> (i64, i64) {
        let field = |name| tree::get(self.set, &["spec", "updateStrategy", "rollingUpdate", name]);
        let desired =
            i64::try_from(self.by_node.values().filter(|(eligible, _)| *eligible).count()).unwrap_or(0);
        let surge = scaled_value(field("maxSurge"), desired, Rounding::Up);
        let unavailable = scaled_value(field("maxUnavailable"), desired, Rounding::Up);
        match (surge, unavailable) {
            (0, 0) => (0, 1),
            bounds => bounds,
        }
    }

    fn is_rolling_update(&self) -> bool {
        tree::text(self.set, &["spec", "updateStrategy", "type"]) == "RollingUpdate"
    }

    fn sync_nodes(&self, state: &mut State) -> Result<()> {
        let before = state.store.version();
        for (node, (eligible, pods)) in self.by_node {
            self.sync_node(state, node, *eligible, pods)?;
        }
        if state.store.version() == before && self.is_rolling_update() {
            self.update_pods(state)?;
        }
        Ok(())
    }

    /// Ensures that an eligible node has one pod and other nodes have none. Deletes finished pods.
    fn sync_node(&self, state: &mut State, node: &str, eligible: bool, pods: &[&Pod]) -> Result<()> {
        if !eligible {
            for pod in pods.iter().filter(|pod| !pod.deleting()) {
                delete_pod(state, self.set, pod)?;
            }
            return Ok(());
        }
        for pod in pods.iter().filter(|pod| pod.finished() && !pod.deleting()) {
            delete_pod(state, self.set, pod)?;
        }
        let surging = self.is_rolling_update() && self.surge_and_unavailable().0 > 0;
        // With surge, the new pod may be created before the old one is deleted.
        let occupied = pods
            .iter()
            .any(|pod| !(pod.finished() || surging && pod.deleting() && !self.is_new(pod)));
        if !occupied && pods.iter().all(|pod| !pod.finished()) {
            return self.create_pod(state, node);
        }
        let active: Vec<&&Pod> = pods.iter().filter(|pod| pod.active()).collect();
        let (new, old): (Vec<&&Pod>, Vec<&&Pod>) = active.into_iter().partition(|pod| self.is_new(pod));
        let groups = if surging {
            vec![new, old]
        } else {
            vec![new.into_iter().chain(old).collect()]
        };
        for pod in groups.iter().flat_map(|group| group.iter().skip(1)) {
            delete_pod(state, self.set, pod)?;
        }
        Ok(())
    }

    fn create_pod(&self, state: &mut State, node: &str) -> Result<()> {
        let template = tree::get(self.set, &["spec", "template"])
            .cloned()
            .unwrap_or_default();
        let name = format!("{}-", tree::text(self.set, &["metadata", "name"]));
        let owner = actor::controller_reference("apps/v1", "DaemonSet", self.set);
        let mut pod = actor::pod_from_template(&with_tolerations(template), &name, &owner);
        tree::set(
            &mut pod,
            &["metadata", "labels", HASH_LABEL],
            self.revision.hash.as_str(),
        );
        let path = [
            "metadata",
            "annotations",
            "deprecated.daemonset.template.generation",
        ];
        let generation = tree::text(self.set, &path);
        if !generation.is_empty() {
            tree::set(
                &mut pod,
                &["metadata", "labels", "pod-template-generation"],
                generation,
            );
        }
        let term = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
        tree::set(&mut pod, &NODE_SELECTOR_TERMS, term);
        let created = ACTOR.create(
            state,
            GroupResource::PODS,
            tree::text(self.set, &["metadata", "namespace"]),
            pod,
        )?;
        ACTOR.trace(
            state,
            format_args!("Created pod: {} for {node}", created.meta().name),
        );
        let text = format!("Created pod: {}", created.meta().name);
        ACTOR.record(state, self.set, "SuccessfulCreate", &text);
        Ok(())
    }

    /// Returns the first pods of the current template and of an earlier template that are not terminating.
    fn new_and_old_pod<'b>(&self, pods: &[&'b Pod]) -> (Option<&'b Pod>, Option<&'b Pod>) {
        let find = |new: bool| {
            let mut remaining = pods.iter().filter(|pod| !pod.deleting());
            remaining.find(|pod| self.is_new(pod) == new).copied()
        };
        (find(true), find(false))
    }

    fn update_pods(&self, state: &mut State) -> Result<()> {
        let (surge, unavailable) = self.surge_and_unavailable();
        if surge == 0 {
            self.replace_by_deleting(state, unavailable)
        } else {
            self.replace_by_surging(state, surge)
        }
    }

    fn replace_by_deleting(&self, state: &mut State, limit: i64) -> Result<()> {
        let (mut unavailable, mut unavailable_old, mut candidates) = (0, Vec::new(), Vec::new());
        for (_, pods) in self
            .by_node
            .values()
            .filter(|(eligible, pods)| *eligible || !pods.is_empty())
        {
            match self.new_and_old_pod(pods) {
                (Some(new), None) => unavailable += i64::from(!self.available(new)),
                (None, Some(old)) if !self.available(old) => {
                    unavailable_old.push(old);
                    unavailable += 1;
                }
                (None, Some(old)) => candidates.push(old),
                _ => unavailable += 1,
            }
        }
        let budget = usize::try_from((limit - unavailable).max(0)).unwrap_or(0);
        for pod in unavailable_old
            .into_iter()
            .chain(candidates.into_iter().take(budget))
        {
            delete_pod(state, self.set, pod)?;
        }
        Ok(())
    }

    fn replace_by_surging(&self, state: &mut State, limit: i64) -> Result<()> {
        let (mut surging, mut unavailable, mut candidates) = (0, Vec::new(), Vec::new());
        for (node, (eligible, pods)) in self.by_node {
            match self.new_and_old_pod(pods) {
                (Some(new), Some(old)) if self.available(new) => delete_pod(state, self.set, old)?,
                (Some(_), Some(_)) => surging += 1,
                (None, Some(old)) if *eligible && !self.available(old) => unavailable.push(node),
                (None, Some(_)) if *eligible => candidates.push(node),
                _ => {}
            }
        }
        let budget = usize::try_from((limit - surging).max(0)).unwrap_or(0);
        for node in unavailable.into_iter().chain(candidates.into_iter().take(budget)) {
            self.create_pod(state, node)?;
        }
        Ok(())
    }

    fn write_status(&self, state: &mut State) -> Result<()> {
        let eligible = || self.by_node.values().filter(|(is_eligible, _)| *is_eligible);
        let count_nodes = |test: &dyn Fn(&Pod) -> bool| {
            let matches = |pods: &Vec<&Pod>| pods.first().is_some_and(|pod| test(pod));
            i64::try_from(eligible().filter(|(_, pods)| matches(pods)).count()).unwrap_or(0)
        };
        let desired = i64::try_from(eligible().count()).unwrap_or(0);
        let misscheduled = self
            .by_node
            .values()
            .filter(|(eligible, pods)| !eligible && !pods.is_empty())
            .count();
        let available = count_nodes(&|pod| self.available(pod) && pod.phase == Phase::Running);
        let mut status = json!({
            "currentNumberScheduled": count_nodes(&|_| true), "numberMisscheduled": misscheduled, "desiredNumberScheduled": desired,
            "numberReady": count_nodes(&|pod| pod.ready),
        });
        let numbers = [
            (
                "observedGeneration",
                tree::int(self.set, &["metadata", "generation"]).unwrap_or(0),
            ),
            ("updatedNumberScheduled", count_nodes(&|pod| self.is_new(pod))),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            tree::set(&mut status, &[field], number);
        }
        if self.set.get("status") == Some(&status) {
            return Ok(());
        }
        let mut set = self.set.clone();
        tree::set(&mut set, &["status"], status);
        ACTOR
            .update(state, GroupResource::new("apps", "daemonsets"), &set, "status")
            .map(drop)
    }
}
