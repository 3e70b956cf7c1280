//! Controller for `StatefulSets`: creates, deletes and replaces pods in order, and updates the status.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::RequeueAt;
use super::actor::{self, Actor, GroupResource};
use super::index::Index;
use super::pod::{Phase, Pod};
use super::revision::{Owner, Revision};
use crate::clock::Instant;
use crate::state::State;
use crate::status::Result;
use crate::tree;

const ACTOR: Actor = Actor("statefulset-controller");
const TABLE: &str = "statefulsets.apps";
const CLAIMS: GroupResource = GroupResource::new("", "persistentvolumeclaims");
const REVISION_LABEL: &str = "controller-revision-hash";
/// Maximum number of pods that are created per sync.
const BURST: i64 = 500;

/// State of one sync.
struct StatefulSetSync<'a> {
    state: &'a mut State,
    set: &'a Value,
    current: &'a Revision,
    update: &'a Revision,
    now: Instant,
    min_ready: i64,
    /// Whether pods are managed one at a time (`OrderedReady`).
    ordered: bool,
    /// Number of pods created in this sync.
    created: i64,
    /// Number of pods of the update revision created in this sync.
    created_updated: i64,
    /// Number of pods of the current revision created in this sync.
    created_current: i64,
    /// Number of pods of the current revision deleted in this sync.
    deleted_current: i64,
}

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, set)) = actor::load(state, TABLE, key) else {
        return Ok(None);
    };
    let owner = Owner {
        actor: ACTOR,
        kind: "StatefulSet",
        value: &set,
        label: "controller.kubernetes.io/hash",
    };
    let mut revisions = owner.list(state);
    let update = owner.ensure_current(state, &mut revisions)?;
    let known = tree::text(&set, &["status", "currentRevision"]);
    let current = revisions
        .iter()
        .find(|one| one.name == known)
        .unwrap_or(&update)
        .clone();
    let pods = index.pods_controlled_by(state, &object.meta().uid);
    let now = state.now();
    let min_ready = tree::int(&set, &["spec", "minReadySeconds"]).unwrap_or(0);
    let mut current_sync = StatefulSetSync {
        state,
        set: &set,
        current: &current,
        update: &update,
        now,
        min_ready,
        ordered: tree::text(&set, &["spec", "podManagementPolicy"]) != "Parallel",
        created: 0,
        created_updated: 0,
        created_current: 0,
        deleted_current: 0,
    };
    let outcome = if object.meta().deleting {
        Ok(())
    } else {
        current_sync.sync_pods(&pods)
    };
    current_sync.write_status(&pods)?;
    let mut used: Vec<&str> = pods
        .iter()
        .filter_map(|pod| pod.meta().label(REVISION_LABEL))
        .collect();
    used.extend([current.name.as_str(), update.name.as_str()]);
    owner.clean_up(state, &revisions, &used)?;
    outcome?;
    Ok(super::replica_set::next_available(&pods, min_ready, now))
}

fn ordinal(set: &Value, pod: &Pod) -> Option<i64> {
    let name = tree::text(set, &["metadata", "name"]);
    pod.name().strip_prefix(name)?.strip_prefix('-')?.parse().ok()
}

fn revision_of(pod: &Pod) -> &str {
    pod.meta().label(REVISION_LABEL).unwrap_or("")
}

fn running_and_ready(pod: &Pod) -> bool {
    pod.phase == Phase::Running && pod.ready
}

impl StatefulSetSync<'_> {
    fn replicas(&self) -> i64 {
        tree::int(self.set, &["spec", "replicas"]).unwrap_or(1)
    }

    fn start(&self) -> i64 {
        tree::int(self.set, &["spec", "ordinals", "start"]).unwrap_or(0)
    }

    fn available(&self, pod: &Pod) -> bool {
        running_and_ready(pod) && pod.available(self.min_ready, self.now)
    }

    fn unavailable(&self, pod: &Pod) -> bool {
        !self.available(pod) || pod.deleting()
    }

    fn name(&self, number: i64) -> String {
        format!("{}-{number}", tree::text(self.set, &["metadata", "name"]))
    }

    /// Creates missing pods, deletes surplus pods, and replaces pods of an old template.
    fn sync_pods(&mut self, pods: &[&Pod]) -> Result<()> {
        let range = self.start()..self.start() + self.replicas();
        let mut surplus: Vec<(i64, &Pod)> = Vec::new();
        let mut valid: BTreeMap<i64, &Pod> = BTreeMap::new();
        for pod in pods {
            match ordinal(self.set, pod) {
                Some(number) if range.contains(&number) => drop(valid.insert(number, pod)),
                Some(number) => surplus.push((number, pod)),
                None => {}
            }
        }
        surplus.sort_by_key(|(number, _)| Reverse(*number));
        for number in range.clone() {
            if self.ensure_pod(number, valid.get(&number).copied())? && self.ordered || self.created >= BURST
            {
                return Ok(());
            }
        }
        if self.delete_surplus(&valid, &surplus)? {
            return Ok(());
        }
        self.update_pods(range, &valid)
    }

    /// Ensures that one pod exists. Returns whether pods with higher ordinals must wait.
    fn ensure_pod(&mut self, number: i64, pod: Option<&Pod>) -> Result<bool> {
        let Some(pod) = pod else {
            self.create_pod(number)?;
            return Ok(true);
        };
        if pod.finished() {
            if !pod.deleting() {
                self.delete_pod(pod)?;
            }
            return Ok(true);
        }
        Ok(pod.deleting() || !self.available(pod))
    }

    fn create_pod(&mut self, number: i64) -> Result<()> {
        let revision = self.revision_for(number);
        let name = self.name(number);
        let namespace = tree::text(self.set, &["metadata", "namespace"]).to_owned();
        let owner = actor::controller_reference("apps/v1", "StatefulSet", self.set);
        let mut pod = actor::pod_from_template(&revision.template, &name, &owner);
        let set_name = tree::text(self.set, &["metadata", "name"]);
        tree::set(&mut pod, &["metadata", "generateName"], format!("{set_name}-"));
        for (label, text) in [
            (REVISION_LABEL, revision.name.as_str()),
            ("statefulset.kubernetes.io/pod-name", name.as_str()),
            ("apps.kubernetes.io/pod-index", &number.to_string()),
        ] {
            tree::set(&mut pod, &["metadata", "labels", label], text);
        }
        tree::set(&mut pod, &["spec", "hostname"], name.as_str());
        tree::copy(
            &json!({"spec": {"subdomain": tree::get(self.set, &["spec", "serviceName"])}}),
            &mut pod,
            &["spec", "subdomain"],
        );
        self.create_claims(&mut pod, &name, set_name)?;
        ACTOR.create(self.state, GroupResource::PODS, &namespace, pod)?;
        self.created += 1;
        self.created_updated += i64::from(revision.name == self.update.name);
        self.created_current += i64::from(revision.name == self.current.name);
        let text = format!("Pod {name} in StatefulSet {set_name} successful");
        ACTOR.trace(self.state, format_args!("create {text}"));
        ACTOR.record(
            self.state,
            self.set,
            "SuccessfulCreate",
            &format!("Create {text}"),
        );
        Ok(())
    }

    /// Creates the `PersistentVolumeClaims` of a pod and adds volumes for them.
    fn create_claims(&mut self, pod: &mut Value, name: &str, set_name: &str) -> Result<()> {
        let namespace = tree::text(self.set, &["metadata", "namespace"]).to_owned();
        let mut volumes = tree::list(pod, &["spec", "volumes"]).to_vec();
        let templates = tree::list(self.set, &["spec", "volumeClaimTemplates"]);
        for template in templates {
            let volume = tree::text(template, &["metadata", "name"]);
            let number = name.rsplit('-').next().unwrap_or("");
            let claim_name = format!("{volume}-{set_name}-{number}");
            volumes.retain(|existing| tree::text(existing, &["name"]) != volume);
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}}));
            let key = crate::object::key(&namespace, &claim_name);
            if self.state.store.get("persistentvolumeclaims", &key).is_none() {
                let mut claim = template.clone();
                tree::remove(&mut claim, &["status"]);
                tree::set(&mut claim, &["metadata", "name"], claim_name);
                if let Some(labels) = tree::get(self.set, &["spec", "selector", "matchLabels"]) {
                    tree::set(&mut claim, &["metadata", "labels"], labels.clone());
                }
                ACTOR.create(self.state, CLAIMS, &namespace, claim)?;
            }
        }
        if !templates.is_empty() {
            tree::set(pod, &["spec", "volumes"], volumes);
        }
        Ok(())
    }

    /// Returns the revision for a new pod: the update revision, unless the partition or the progress of
    /// the rollout requires the current revision.
    fn revision_for(&self, number: i64) -> Revision {
        let is_rolling_update = tree::text(self.set, &["spec", "updateStrategy", "type"]) == "RollingUpdate";
        let partition = tree::int(
            self.set,
            &["spec", "updateStrategy", "rollingUpdate", "partition"],
        );
        let current_replicas = tree::int(self.set, &["status", "currentReplicas"]).unwrap_or(0);
        let uses_current = is_rolling_update
            && match partition {
                None => number < self.start() + current_replicas,
                Some(partition) => number < self.start() + partition,
            };
        if uses_current {
            self.current.clone()
        } else {
            self.update.clone()
        }
    }

    fn delete_pod(&mut self, pod: &Pod) -> Result<()> {
        ACTOR.delete(self.state, GroupResource::PODS, &pod.object)?;
        let name = tree::text(self.set, &["metadata", "name"]);
        let text = format!("Pod {} in StatefulSet {name} successful", pod.name());
        ACTOR.trace(self.state, format_args!("delete {text}"));
        ACTOR.record(
            self.state,
            self.set,
            "SuccessfulDelete",
            &format!("Delete {text}"),
        );
        Ok(())
    }

    /// Deletes surplus pods in descending order. Returns whether the sync must wait.
    fn delete_surplus(&mut self, valid: &BTreeMap<i64, &Pod>, surplus: &[(i64, &Pod)]) -> Result<bool> {
        let first_unhealthy = valid
            .values()
            .copied()
            .chain(surplus.iter().rev().map(|(_, pod)| *pod))
            .find(|pod| self.unavailable(pod))
            .map(|pod| pod.meta().uid.clone());
        for (_, pod) in surplus {
            if pod.deleting() {
                if self.ordered {
                    return Ok(true);
                }
                continue;
            }
            let is_first_unhealthy = first_unhealthy.as_ref() == Some(&pod.meta().uid);
            if self.ordered && !self.available(pod) && !is_first_unhealthy {
                return Ok(true);
            }
            self.delete_pod(pod)?;
            if self.ordered {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces pods of an old template in descending order, one at a time.
    fn update_pods(&mut self, range: Range<i64>, valid: &BTreeMap<i64, &Pod>) -> Result<()> {
        if tree::text(self.set, &["spec", "updateStrategy", "type"]) == "OnDelete" {
            return Ok(());
        }
        let partition = tree::int(
            self.set,
            &["spec", "updateStrategy", "rollingUpdate", "partition"],
        );
        let first_updated = range.start + partition.unwrap_or(0);
        for number in (first_updated..range.end).rev() {
            let Some(pod) = valid.get(&number) else {
                // The pod was created in this sync.
                return Ok(());
            };
            if revision_of(pod) != self.update.name && !pod.deleting() {
                self.delete_pod(pod)?;
                self.deleted_current += i64::from(revision_of(pod) == self.current.name);
                return Ok(());
            }
            if self.unavailable(pod) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn write_status(&mut self, pods: &[&Pod]) -> Result<()> {
        let count = |test: &dyn Fn(&Pod) -> bool| {
            i64::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(0)
        };
        let count_revision = |revision: &str| count(&|pod| !pod.deleting() && revision_of(pod) == revision);
        let (replicas, ready) = (count(&|_| true) + self.created, count(&running_and_ready));
        let mut current = count_revision(&self.current.name) + self.created_current - self.deleted_current;
        let updated = count_revision(&self.update.name) + self.created_updated;
        let is_rolling_update = tree::text(self.set, &["spec", "updateStrategy", "type"]) == "RollingUpdate";
        let is_finished = is_rolling_update
            && updated == self.replicas()
            && ready == self.replicas()
            && replicas == self.replicas();
        let mut current_name = self.current.name.as_str();
        if is_finished {
            current = updated;
            current_name = &self.update.name;
        }
        let mut status = json!({
            "replicas": replicas, "availableReplicas": count(&|pod| self.available(pod)), "collisionCount": 0,
            "currentRevision": current_name, "updateRevision": self.update.name,
        });
        let generation = tree::int(self.set, &["metadata", "generation"]).unwrap_or(0);
        let numbers = [
            ("observedGeneration", generation),
            ("readyReplicas", ready),
            ("currentReplicas", current),
            ("updatedReplicas", updated),
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
            .update(
                self.state,
                GroupResource::new("apps", "statefulsets"),
                &set,
                "status",
            )
            .map(drop)
    }
}
