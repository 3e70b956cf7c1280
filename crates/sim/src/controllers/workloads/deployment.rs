//! Controller for Deployments: performs the next step of a rollout, at most one scaling per sync, and
//! updates the status.

use serde_json::{Value, json};

use super::actor::{self, Actor, GroupResource};
use super::index::Index;
use super::{RequeueAt, condition};
use crate::state::State;
use crate::status::Result;
use crate::tree;

mod set;
mod sizes;
mod status;

use set::ReplicaSet;

const ACTOR: Actor = Actor("deployment-controller");
const TABLE: &str = "deployments.apps";
const DEPLOYMENTS: GroupResource = GroupResource::new("apps", "deployments");
const SETS: GroupResource = GroupResource::new("apps", "replicasets");

/// State of one sync.
struct Rollout<'a> {
    state: &'a mut State,
    index: &'a Index,
    deployment: Value,
    /// `ReplicaSets` of earlier templates, oldest first.
    old: Vec<ReplicaSet>,
    /// The `ReplicaSet` of the current template.
    new: Option<ReplicaSet>,
}

pub(super) fn sync(state: &mut State, index: &Index, key: &str) -> Result<RequeueAt> {
    let Some((object, deployment)) = actor::load(state, TABLE, key) else {
        return Ok(None);
    };
    let (old, new) = set::split_by_template(set::list_for_deployment(state, &object.meta().uid), &deployment);
    let mut rollout = Rollout {
        state,
        index,
        deployment,
        old,
        new,
    };
    if object.meta().deleting {
        return rollout.write_plain_status();
    }
    rollout.record_pause()?;
    if rollout.paused() || rollout.is_scaling() {
        return rollout.sync_scale();
    }
    if tree::text(&rollout.deployment, &["spec", "strategy", "type"]) == "Recreate" {
        rollout.recreate()
    } else {
        rollout.rolling_update()
    }
}

impl Rollout<'_> {
    fn replicas(&self) -> i64 {
        tree::int(&self.deployment, &["spec", "replicas"]).unwrap_or(1)
    }

    fn paused(&self) -> bool {
        tree::flag(&self.deployment, &["spec", "paused"])
    }

    fn name(&self) -> &str {
        tree::text(&self.deployment, &["metadata", "name"])
    }

    fn is_rolling(&self) -> bool {
        tree::text(&self.deployment, &["spec", "strategy", "type"]) != "Recreate"
    }

    fn max_surge(&self) -> i64 {
        if self.is_rolling() {
            sizes::surge_and_unavailable(&self.deployment).0
        } else {
            0
        }
    }

    fn max_unavailable(&self) -> i64 {
        if !self.is_rolling() || self.replicas() == 0 {
            return 0;
        }
        sizes::surge_and_unavailable(&self.deployment)
            .1
            .min(self.replicas())
    }

    fn all_sets(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// Returns the sum of the replicas of all sets.
    fn total_replicas(&self) -> i64 {
        self.all_sets().map(ReplicaSet::replicas).sum()
    }

    /// Returns whether the replicas of the Deployment have changed since a set was scaled.
    fn is_scaling(&self) -> bool {
        self.all_sets().filter(|set| set.replicas() > 0).any(|set| {
            set.desired_replicas()
                .is_some_and(|desired| desired != self.replicas())
        })
    }

    /// Updates the revision of the set of the current template. With `create`, creates the set if it does
    /// not exist.
    fn ensure_new_set(&mut self, create: bool) -> Result<()> {
        let newest = self.old.iter().map(ReplicaSet::revision).max().unwrap_or(0);
        let next = newest.saturating_add(1);
        if let Some(mut set) = self.new.take() {
            let changed =
                set.copy_annotations(&self.deployment, next, true) | set.copy_min_ready(&self.deployment);
            if changed {
                set.store(self.state)?;
                self.new = Some(set);
                return Ok(());
            }
            let text = format!("Found new replica set {:?}", set.name());
            self.record_revision(set.revision(), "FoundNewReplicaSet", &text)?;
            self.new = Some(set);
            return Ok(());
        }
        if create { self.create_new_set(next) } else { Ok(()) }
    }

    fn create_new_set(&mut self, revision: i64) -> Result<()> {
        let mut set = ReplicaSet::from_template(&self.deployment);
        let replicas = sizes::new_size(&self.deployment, self.total_replicas(), 0, self.max_surge());
        tree::set(&mut set.value, &["spec", "replicas"], replicas);
        set.copy_annotations(&self.deployment, revision, false);
        set.set_size_annotations(self.replicas(), self.replicas() + self.max_surge());
        let namespace = tree::text(&self.deployment, &["metadata", "namespace"]).to_owned();
        let created = match ACTOR.create(self.state, SETS, &namespace, set.value.clone()) {
            Ok(created) => created,
            Err(error) => return self.handle_create_error(&set, error),
        };
        set.value = created.packed();
        if replicas > 0 {
            let text = format!("Scaled up replica set {} from 0 to {replicas}", set.name());
            ACTOR.record_and_trace(self.state, &self.deployment, "ScalingReplicaSet", &text);
        }
        let text = format!("Created new replica set {:?}", set.name());
        self.record_revision(set.revision(), "NewReplicaSetCreated", &text)?;
        self.new = Some(set);
        Ok(())
    }

    /// Handles a failed creation: increments the collision count if the name exists already, otherwise
    /// records the failure in the status.
    fn handle_create_error(&mut self, set: &ReplicaSet, error: crate::status::Status) -> Result<()> {
        if error.is_webhook_pending() {
            return Err(error);
        }
        if error.reason() == "AlreadyExists" {
            let count = tree::int(&self.deployment, &["status", "collisionCount"]).unwrap_or(0);
            tree::set(&mut self.deployment, &["status", "collisionCount"], count + 1);
        } else {
            let text = format!("Failed to create new replica set {:?}: {error}", set.name());
            let now = self.state.now();
            self.set_condition(condition::new(
                now,
                "Progressing",
                "False",
                "ReplicaSetCreateError",
                &text,
            ));
        }
        self.store_status()?;
        Err(error)
    }

    /// Records the revision in the annotation, and the condition `Progressing` if it changes.
    fn record_revision(&mut self, revision: i64, reason: &str, text: &str) -> Result<()> {
        let path = ["metadata", "annotations", set::REVISION];
        let before = self.deployment.clone();
        if tree::text(&before, &path) != revision.to_string() {
            tree::set(&mut self.deployment, &path, revision.to_string());
        }
        let known = condition::find(tree::list(&before, &["status", "conditions"]), "Progressing").is_some();
        if status::has_deadline(&before) && (!known || reason == "NewReplicaSetCreated") {
            let now = self.state.now();
            self.set_condition(condition::new(now, "Progressing", "True", reason, text));
        }
        if self.deployment == before {
            return Ok(());
        }
        self.store_status()
    }

    fn set_condition(&mut self, new: Value) {
        let mut conditions = tree::list(&self.deployment, &["status", "conditions"]).to_vec();
        condition::set(&mut conditions, new);
        tree::set(&mut self.deployment, &["status", "conditions"], conditions);
    }

    fn store_status(&mut self) -> Result<()> {
        let object = ACTOR.update(self.state, DEPLOYMENTS, &self.deployment, "status")?;
        self.deployment = object.packed();
        Ok(())
    }

    /// Performs one step of a rolling update: scales the new set up, otherwise scales old sets down,
    /// otherwise deletes old revisions.
    fn rolling_update(&mut self) -> Result<RequeueAt> {
        self.ensure_new_set(true)?;
        if self.scale_up_new()? || self.scale_down_old()? {
            return self.sync_rollout_status();
        }
        if self.is_complete() {
            self.clean_up()?;
        }
        self.sync_rollout_status()
    }

    /// Scales the new set up. Returns whether it changed.
    fn scale_up_new(&mut self) -> Result<bool> {
        let Some(current) = self.new.as_ref().map(ReplicaSet::replicas) else {
            return Ok(false);
        };
        let desired = self.replicas();
        let size = if current > desired {
            desired
        } else {
            sizes::new_size(&self.deployment, self.total_replicas(), current, self.max_surge())
        };
        let Some(mut set) = self.new.take() else {
            return Ok(false);
        };
        let changed = self.resize(&mut set, size);
        self.new = Some(set);
        changed
    }

    /// Scales the old sets down as far as the maximum unavailability allows. Returns whether any changed.
    fn scale_down_old(&mut self) -> Result<bool> {
        if self.old.iter().all(|set| set.replicas() == 0) {
            return Ok(false);
        }
        let min_available = self.replicas() - self.max_unavailable();
        let new_unavailable = self
            .new
            .as_ref()
            .map_or(0, |new| new.replicas() - new.available());
        let limit = self.total_replicas() - min_available - new_unavailable;
        if limit <= 0 {
            return Ok(false);
        }
        let mut old = std::mem::take(&mut self.old);
        let outcome = self.scale_down_unhealthy(&mut old, limit);
        self.old = old;
        let removed = outcome?;
        let available: i64 = self.all_sets().map(ReplicaSet::available).sum();
        if available <= min_available {
            return Ok(removed > 0);
        }
        let mut old = std::mem::take(&mut self.old);
        let outcome = self.scale_down_healthy(&mut old, available - min_available);
        self.old = old;
        Ok(outcome? + removed > 0)
    }

    fn scale_down_unhealthy(&mut self, old: &mut [ReplicaSet], limit: i64) -> Result<i64> {
        let mut removed = 0;
        for set in old.iter_mut().filter(|set| set.replicas() > 0) {
            if removed >= limit {
                break;
            }
            let count = (limit - removed).min(set.replicas() - set.available()).max(0);
            self.resize(set, set.replicas() - count)?;
            removed += count;
        }
        Ok(removed)
    }

    fn scale_down_healthy(&mut self, old: &mut [ReplicaSet], limit: i64) -> Result<i64> {
        let mut removed = 0;
        for set in old.iter_mut().filter(|set| set.replicas() > 0) {
            if removed >= limit {
                break;
            }
            let count = set.replicas().min(limit - removed);
            self.resize(set, set.replicas() - count)?;
            removed += count;
        }
        Ok(removed)
    }

    /// Performs one step of a Recreate rollout: deletes all old pods before it creates new ones.
    fn recreate(&mut self) -> Result<RequeueAt> {
        self.ensure_new_set(false)?;
        let mut old = std::mem::take(&mut self.old);
        let mut changed = false;
        for set in &mut old {
            changed |= self.resize(set, 0)?;
        }
        self.old = old;
        if changed || self.has_running_old_pods() {
            return self.sync_rollout_status();
        }
        self.ensure_new_set(true)?;
        if let Some(mut set) = self.new.take() {
            let desired = self.replicas();
            let outcome = self.resize(&mut set, desired);
            self.new = Some(set);
            outcome?;
        }
        if self.is_complete() {
            self.clean_up()?;
        }
        self.sync_rollout_status()
    }

    fn has_running_old_pods(&self) -> bool {
        let mut sets = self.old.iter();
        sets.any(|set| {
            set.status_field("replicas") > 0
                || self
                    .index
                    .pods_controlled_by(self.state, set.uid())
                    .iter()
                    .any(|pod| !pod.finished())
        })
    }

    /// Scales the existing sets if the replicas have changed or the rollout is paused.
    fn sync_scale(&mut self) -> Result<RequeueAt> {
        self.ensure_new_set(false)?;
        self.scale()?;
        if self.paused() {
            self.clean_up()?;
        }
        self.write_plain_status()
    }

    fn scale(&mut self) -> Result<()> {
        let desired = self.replicas();
        let mut sets: Vec<ReplicaSet> = std::mem::take(&mut self.old);
        let old_count = sets.len();
        sets.extend(self.new.take());
        let outcome = self.scale_sets(&mut sets, old_count, desired);
        let mut rest = sets.split_off(old_count.min(sets.len()));
        self.new = rest.pop();
        self.old = sets;
        outcome
    }

    fn scale_sets(&mut self, sets: &mut [ReplicaSet], old_count: usize, desired: i64) -> Result<()> {
        let active = sets.iter().filter(|set| set.replicas() > 0).count();
        if active <= 1 {
            // Scales the set that has replicas, otherwise the newest set.
            let at = sets.iter().position(|set| set.replicas() > 0);
            let at = at.or_else(|| sets.len().checked_sub(1));
            if let Some(set) = at.and_then(|at| sets.get_mut(at)) {
                self.resize(set, desired)?;
            }
            return Ok(());
        }
        let is_saturated = sets.get(old_count).is_some_and(|new| {
            new.replicas() == desired && new.desired_replicas() == Some(desired) && new.available() == desired
        });
        if is_saturated {
            for set in sets.iter_mut().take(old_count) {
                self.resize(set, 0)?;
            }
            return Ok(());
        }
        if self.is_rolling() {
            self.scale_proportionally(sets)?;
        }
        Ok(())
    }

    fn scale_proportionally(&mut self, sets: &mut [ReplicaSet]) -> Result<()> {
        let set_sizes: Vec<sizes::SetSize> = sets.iter().map(ReplicaSet::set_size).collect();
        let known = tree::int(&self.deployment, &["status", "replicas"]).unwrap_or(0);
        let plan = sizes::proportional_sizes(self.replicas(), self.max_surge(), known, &set_sizes);
        for (at, size) in plan {
            let (desired, limit) = (self.replicas(), self.replicas() + self.max_surge());
            if let Some(set) = sets.get_mut(at) {
                let annotated = set.set_size_annotations(desired, limit);
                if set.replicas() != size {
                    self.resize(set, size)?;
                } else if annotated {
                    set.store(self.state)?;
                }
            }
        }
        Ok(())
    }

    /// Scales a set. Returns whether it changed.
    fn resize(&mut self, set: &mut ReplicaSet, size: i64) -> Result<bool> {
        let before = set.replicas();
        if before == size {
            return Ok(false);
        }
        set.set_size_annotations(self.replicas(), self.replicas() + self.max_surge());
        tree::set(&mut set.value, &["spec", "replicas"], size);
        set.store(self.state)?;
        let direction = if size > before { "up" } else { "down" };
        let text = format!(
            "Scaled {direction} replica set {} from {before} to {size}",
            set.name()
        );
        ACTOR.record_and_trace(self.state, &self.deployment, "ScalingReplicaSet", &text);
        Ok(true)
    }

    /// Deletes the oldest sets that exceed the history limit.
    fn clean_up(&mut self) -> Result<()> {
        let Some(limit) = tree::int(&self.deployment, &["spec", "revisionHistoryLimit"]) else {
            return Ok(());
        };
        let mut sets: Vec<&ReplicaSet> = self.old.iter().filter(|set| !set.deleting()).collect();
        let surplus = sets.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        sets.sort_by_key(|set| set.revision());
        for set in sets.into_iter().take(surplus).filter(|set| set.is_idle()) {
            ACTOR.delete(self.state, SETS, &set.object)?;
            ACTOR.trace(self.state, format_args!("Deleted replica set {}", set.name()));
        }
        Ok(())
    }

    /// Records in the condition `Progressing` that the Deployment was paused or resumed.
    fn record_pause(&mut self) -> Result<()> {
        if !status::has_deadline(&self.deployment) {
            return Ok(());
        }
        let conditions = tree::list(&self.deployment, &["status", "conditions"]);
        let reason = condition::find(conditions, "Progressing").map(|one| tree::text(one, &["reason"]));
        let now = self.state.now();
        let new = match (reason, self.paused()) {
            (Some("ProgressDeadlineExceeded"), _) | (Some("DeploymentPaused"), true) => return Ok(()),
            (_, true) => ("DeploymentPaused", "Deployment is paused"),
            (Some("DeploymentPaused"), false) => ("DeploymentResumed", "Deployment is resumed"),
            (_, false) => return Ok(()),
        };
        self.set_condition(condition::new(now, "Progressing", "Unknown", new.0, new.1));
        self.store_status()
    }

    fn selector_with_hash(deployment: &Value, hash: &str) -> Value {
        let mut selector = tree::get(deployment, &["spec", "selector"])
            .cloned()
            .unwrap_or_else(|| json!({}));
        tree::set(&mut selector, &["matchLabels", set::HASH_LABEL], hash);
        selector
    }
}
