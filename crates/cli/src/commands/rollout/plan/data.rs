//! Result of a plan as data.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use mainstay_api::delivery::{ApplicationDeployment, DeploymentPhase};
use mainstay_rollout::manifest::{ObjectKey, Role};
use mainstay_rollout::model::{
    Behavior, End, Frame, Model, ModelObject, Timeline, TimelineOptions, timeline,
};
use serde_json::{Value, json};

use super::end_word;
use crate::commands::rollout::warnings::weight_warnings;

/// Result of a run.
pub(crate) struct Report {
    /// The deployment at the end.
    pub(crate) deployment: ApplicationDeployment,
    /// Objects that are created, changed or deleted.
    pub(super) changes: Vec<Change>,
    /// States over time.
    pub(crate) timeline: Timeline,
    /// Assumptions, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// Change of one object.
pub(super) struct Change {
    pub(super) cluster: String,
    pub(super) word: &'static str,
    pub(super) key: ObjectKey,
    /// For a workload: replicas before and after the change.
    pub(super) replicas: Option<(u32, u32)>,
}

impl Report {
    /// Runs a model and records its timeline and the changed objects.
    pub(super) fn record(
        mut model: Model,
        behavior: &mut dyn Behavior,
        options: TimelineOptions,
        notes: Vec<String>,
    ) -> Self {
        let before = objects(&model);
        let timeline = timeline(&mut model, behavior, options);
        let changes = changes(&before, &objects(&model));
        Self {
            deployment: model.deployment,
            changes,
            timeline,
            notes,
        }
    }

    /// Whether the rollout reaches its target.
    pub(crate) fn is_complete(&self) -> bool {
        self.timeline.end == End::Settled && self.deployment.status.phase == DeploymentPhase::Healthy
    }

    /// Returns the duration of the rollout up to its last change.
    pub(crate) fn duration(&self) -> SignedDuration {
        self.timeline
            .frames
            .last()
            .map_or(SignedDuration::ZERO, |frame| frame.at)
    }

    /// Returns the number of promotions that were assumed.
    pub(crate) fn promotions(&self) -> usize {
        self.timeline
            .frames
            .iter()
            .filter(|frame| frame.is_promoted)
            .count()
    }

    /// Returns warnings about the spec, one sentence each.
    pub(super) fn warnings(&self) -> Vec<String> {
        weight_warnings(&self.deployment.spec)
    }

    /// Returns the report as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let status = &self.deployment.status;
        json!({
            "namespace": self.deployment.namespace(),
            "name": self.deployment.name(),
            "end": end_word(self.timeline.end),
            "phase": status.phase,
            "seconds": self.duration().as_secs(),
            "promotions": self.promotions(),
            "assumptions": self.notes,
            "warnings": self.warnings(),
            "changes": self.changes.iter().map(Change::to_json).collect::<Vec<_>>(),
            "timeline": self.timeline.frames.iter().map(frame_json).collect::<Vec<_>>(),
            "conditions": status.conditions,
        })
    }
}

impl Change {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "cluster": self.cluster,
            "change": self.word,
            "apiVersion": self.key.api_version,
            "kind": self.key.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
        });
        if let (Some((before, after)), Value::Object(map)) = (self.replicas, &mut value) {
            map.insert("replicas".to_owned(), json!({"before": before, "after": after}));
        }
        value
    }
}

fn frame_json(frame: &Frame) -> Value {
    let replicas = frame.replicas.iter().map(|((cluster, revision), count)| {
        json!({
            "cluster": cluster, "revision": revision,
            "desired": count.desired, "available": count.available,
        })
    });
    let writes = frame
        .writes
        .iter()
        .map(|write| json!({"cluster": write.cluster, "action": write.action, "reason": write.reason}));
    json!({
        "seconds": frame.at.as_secs(),
        "phase": frame.phase,
        "reason": frame.reason,
        "wave": frame.wave,
        "step": frame.step,
        "promoted": frame.is_promoted,
        "replicas": replicas.collect::<Vec<_>>(),
        "weights": frame.traffic,
        "writes": writes.collect::<Vec<_>>(),
    })
}

type Objects = BTreeMap<(String, ObjectKey), ModelObject>;

fn objects(model: &Model) -> Objects {
    let clusters = model.clusters.iter();
    clusters
        .flat_map(|(name, cluster)| {
            let objects = cluster.objects.iter();
            objects.map(move |(key, object)| ((name.clone(), key.clone()), object.clone()))
        })
        .collect()
}

fn changes(before: &Objects, after: &Objects) -> Vec<Change> {
    let mut keys: Vec<&(String, ObjectKey)> = before.keys().chain(after.keys()).collect();
    keys.sort_by(|left, right| {
        let order =
            |(cluster, key): &&(String, ObjectKey)| (cluster.clone(), key.kind.clone(), key.name.clone());
        order(left).cmp(&order(right))
    });
    keys.dedup();
    keys.into_iter()
        .filter_map(|key| change(key, before.get(key), after.get(key)))
        .collect()
}

fn change(
    (cluster, key): &(String, ObjectKey),
    before: Option<&ModelObject>,
    after: Option<&ModelObject>,
) -> Option<Change> {
    let replicas = |object: Option<&ModelObject>| object.map_or(0, |object| object.observed.replicas);
    let hash = |object: Option<&ModelObject>| object.and_then(|object| object.observed.hash.clone());
    let word = match (before, after) {
        (None, Some(_)) => "create",
        (Some(_), None) => "delete",
        _ if hash(before) != hash(after) => "update",
        _ if replicas(before) != replicas(after) => "scale",
        _ => return None,
    };
    let is_workload = Role::for_kind(&key.kind) == Role::Workload;
    Some(Change {
        cluster: cluster.clone(),
        word,
        key: key.clone(),
        replicas: is_workload.then(|| (replicas(before), replicas(after))),
    })
}
